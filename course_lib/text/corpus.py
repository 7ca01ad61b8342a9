"""A named text, the folder where the course keeps its texts, and how text files are read."""

import os
from dataclasses import dataclass
from pathlib import Path


class CorpusUnavailable(OSError):
    """The error for a known corpus that is neither on this machine nor available from the network.

    Its message says what to do.
    """


@dataclass(frozen=True)
class Corpus:
    """A text with its name and its source.

    >>> Corpus("greeting", "hello", source="typed by hand")
    Corpus('greeting', 5 characters, 4 symbols, from: typed by hand)
    """

    name: str
    text: str
    source: str = ""

    def __repr__(self):
        symbols = len(set(self.text))
        return f"Corpus({self.name!r}, {len(self.text):,} characters, {symbols} symbols, from: {self.source})"


def data_folder():
    """Return the folder of the course's texts: what COURSE_DATA names, or else the one that ships with the course."""
    chosen = os.environ.get("COURSE_DATA")
    return Path(chosen).expanduser() if chosen else shipped_folder()


def shipped_folder():
    """Return the folder that ships with the course: ``data/`` of the repository, in a wheel ``course_lib/data/``."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "data"
    return inside if inside.is_dir() else package.parent / "data"


def decode_text(content, where):
    r"""Return the text of UTF-8 bytes, with every line ending as "\n".

    The bytes are decoded here, not by ``open``, because files are hashed as bytes first. A byte-order mark, which some
    Windows editors put in front, is not part of the text. Raises ValueError that names ``where`` if the bytes are not
    UTF-8.

    >>> decode_text(b"a\r\nb", "an example")
    'a\nb'
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        position = error.start + len(content) - len(error.object)  # the decoder counts without the byte-order mark
        raise ValueError(
            f"{where} is not UTF-8 text: byte 0x{content[position]:02x} at position {position}. "
            "Save it as UTF-8 in an editor and try again."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_text(path):
    """Read a UTF-8 text file; line endings become newlines on every system. Raises ValueError if it is not UTF-8."""
    path = Path(path)
    return decode_text(path.read_bytes(), str(path))
