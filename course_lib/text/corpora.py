"""Corpora by name: ``hello``, ``market``, ``tinyshakespeare``, or any text file."""

from pathlib import Path

from .corpus import Corpus, CorpusUnavailable, data_folder, read_text, shipped_folder
from .download import tinyshakespeare
from .market import MARKET_SEED, MARKET_SENTENCES, market_text

CORPUS_NAMES = ("hello", "market", "tinyshakespeare")


def load_corpus(name):
    r"""Load ``hello``, ``market``, ``tinyshakespeare`` or the text file at a path: a Corpus.

    ``hello`` is shipped and ``market`` is generated on the spot: neither needs a network. ``tinyshakespeare`` is looked
    for in the data folder and downloaded once if it is not there.

    Raises FileNotFoundError for an unknown name, CorpusUnavailable when a known text cannot be had, ValueError for a
    file that is not what it should be.

    >>> load_corpus("hello").text[:12]
    'hello world\n'
    """
    if name == "hello":
        path = data_folder() / "hello.txt"
        if not path.is_file():  # COURSE_DATA may name a folder for the downloaded text alone
            path = shipped_folder() / "hello.txt"
        if not path.is_file():
            raise CorpusUnavailable(
                f"{path} is missing. Install the course from its repository (pip install -e .), "
                "or set the environment variable COURSE_DATA to the folder that holds hello.txt."
            )
        return Corpus("hello", read_text(path), source="data/hello.txt")
    if name == "market":
        text = market_text(MARKET_SENTENCES, seed=MARKET_SEED)
        return Corpus("market", text, source=f"the grammar in course_lib/text/market.py, seed {MARKET_SEED}")
    if name == "tinyshakespeare":
        return tinyshakespeare()
    path = Path(name)
    if not _is_file(path):
        shown = str(name) if len(str(name)) <= 80 else str(name)[:79] + "…"
        raise FileNotFoundError(
            f"{shown!r} is neither a corpus of the course ({', '.join(CORPUS_NAMES)}) nor a file; "
            f"looked in {Path.cwd()}"
            + ("" if shown == str(name) else ". For a text of your own, use Corpus(name, text)")
        )
    return Corpus(path.stem, read_text(path), source=str(path))


def _is_file(path):
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a file name, or with a null character
        return False


def shakespeare_or_market():
    """Return (tinyshakespeare, ""), or (market, a sentence that says why) where tinyshakespeare cannot be had."""
    try:
        return load_corpus("tinyshakespeare"), ""
    except CorpusUnavailable as error:
        reason = str(error).split("\n")[0]
        note = f"This page runs on the market text instead of tinyshakespeare, so its numbers differ. Why: {reason}"
        return load_corpus("market"), note
