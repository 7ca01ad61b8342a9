"""Corpora by name: `hello`, `market`, `tinyshakespeare`, or any text file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .market import MARKET_SEED, MARKET_SENTENCES, market_text

CORPUS_NAMES = ("hello", "market", "tinyshakespeare")


class CorpusUnavailable(OSError):
    """A known corpus is neither on this machine nor to be had from the network now; the message says what to do."""


@dataclass(frozen=True)
class Corpus:
    """A text that knows its name and where it came from.

    >>> Corpus("greeting", "hello", source="typed by hand")
    Corpus('greeting', 5 characters, 4 symbols, from: typed by hand)
    """

    name: str
    text: str
    source: str = ""

    def __repr__(self) -> str:
        symbols = len(set(self.text))
        return f"Corpus({self.name!r}, {len(self.text):,} characters, {symbols} symbols, from: {self.source})"


def data_folder() -> Path:
    """The folder of the course's texts: `data/` of the repository, or what the variable COURSE_DATA names."""
    chosen = os.environ.get("COURSE_DATA")
    if chosen:
        return Path(chosen).expanduser()
    return _shipped_folder()


def _shipped_folder() -> Path:
    return Path(__file__).resolve().parents[2] / "data"


def decode_text(content: bytes, where: str) -> str:
    r"""The text of UTF-8 bytes, with every line end as "\n"; `where` is named if the bytes are not UTF-8.

    The bytes are decoded here, and not by `open`, because files are hashed as bytes first. A byte-order mark, which
    some Windows editors put in front, is no part of the text.

    >>> decode_text(b"a\r\nb", "an example")
    'a\nb'
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = error.start + len(content) - len(error.object)  # the decoder counts without the byte-order mark
        raise ValueError(
            f"{where} is not UTF-8 text: byte 0x{content[place]:02x} at place {place}. "
            "Save it as UTF-8 in an editor and try again."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file; its line ends become newlines on every system."""
    path = Path(path)
    return decode_text(path.read_bytes(), str(path))


def load_corpus(name: str | Path) -> Corpus:
    r"""Load `hello`, `market`, `tinyshakespeare` or the text file at a path.

    `hello` is shipped and `market` is made on the spot: both need no network. `tinyshakespeare` is looked for in the
    data folder and downloaded once if it is not there.

    Errors: FileNotFoundError for an unknown name, CorpusUnavailable when a known text cannot be had, ValueError for
    a file that is not what it should be.

    >>> load_corpus("hello").text[:12]
    'hello world\n'
    """
    if name == "hello":
        path = data_folder() / "hello.txt"
        if not path.is_file():  # COURSE_DATA may name a folder for the downloaded text alone
            path = _shipped_folder() / "hello.txt"
        if not path.is_file():
            raise CorpusUnavailable(
                f"{path} is missing. Install the course from its repository (pip install -e .), "
                "or let the environment variable COURSE_DATA name the folder that holds hello.txt."
            )
        return Corpus("hello", read_text(path), source="data/hello.txt")
    if name == "market":
        text = market_text(MARKET_SENTENCES, seed=MARKET_SEED)
        return Corpus("market", text, source=f"the grammar in course_lib/text/market.py, seed {MARKET_SEED}")
    if name == "tinyshakespeare":
        from .download import tinyshakespeare  # here, because download itself uses the names above

        return tinyshakespeare()
    path = Path(name)
    if not _is_file(path):
        shown = str(name) if len(str(name)) <= 80 else str(name)[:79] + "…"
        raise FileNotFoundError(
            f"{shown!r} is neither a corpus of the course ({', '.join(CORPUS_NAMES)}) nor a file; "
            f"looked in {Path.cwd()}" + ("" if shown == str(name) else ". A text of your own is Corpus(name, text)")
        )
    return Corpus(path.stem, read_text(path), source=str(path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # longer than a file's name may be, or with a null character
        return False
