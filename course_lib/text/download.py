"""tinyshakespeare: found on this machine, or downloaded once; its bytes are checked either way."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from .corpora import Corpus, CorpusUnavailable, data_folder, decode_text, load_corpus

FILE_NAME = "tinyshakespeare.txt"
URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SIZE = 1_115_394
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"

_failed: dict[str, str] = {}  # address → why it could not be had: a notebook asks for the text more than once


def tinyshakespeare() -> Corpus:
    """The plays of Shakespeare in 1,115,394 characters, from the data folder, the cache of the user, or the network.

    Environment variables: COURSE_NO_SHAKESPEARE=1 acts as if there were no such file; COURSE_OFFLINE=1 forbids the
    network; COURSE_SHAKESPEARE_URL names another address.
    Errors: CorpusUnavailable when it cannot be had; ValueError when a file on this machine holds other bytes.
    """
    if _is_on("COURSE_NO_SHAKESPEARE"):
        raise CorpusUnavailable(
            "tinyshakespeare is switched off: the environment variable COURSE_NO_SHAKESPEARE is set"
        )
    for folder in (data_folder(), cache_folder()):
        path = folder / FILE_NAME
        if path.is_file():
            content = path.read_bytes()
            wrong = what_is_wrong(content, str(path))
            if wrong:
                raise ValueError(f"{wrong} Delete {path} and run this again, or put the right file in its place.")
            return Corpus("tinyshakespeare", decode_text(content, str(path)), source=str(path))
    path = download(os.environ.get("COURSE_SHAKESPEARE_URL") or URL)
    return Corpus("tinyshakespeare", decode_text(path.read_bytes(), str(path)), source=str(path))


def shakespeare_or_market() -> tuple[Corpus, str]:
    """tinyshakespeare with an empty note, or, where it cannot be had, `market` with the sentence that says so."""
    try:
        return load_corpus("tinyshakespeare"), ""
    except CorpusUnavailable as error:
        reason = str(error).split("\n")[0]
        note = f"This page runs on the market text instead of tinyshakespeare, so its numbers differ. Why: {reason}"
        return load_corpus("market"), note


def cache_folder() -> Path:
    """Where the text goes when the data folder may not be written to: the cache of the user."""
    import pooch  # here, so that importing the course does not wait for it

    return Path(pooch.os_cache("gpt-twice"))


def download(url: str = URL, progress: bool = True) -> Path:
    """Download tinyshakespeare, check it, and return its path.

    The bytes arrive under a temporary name and get the final name only when their hash is right, so that a broken
    download never passes for a text. A read-only data folder sends it to the cache of the user.
    Errors: CorpusUnavailable, with what to do.
    """
    if _is_on("COURSE_OFFLINE"):
        raise CorpusUnavailable(
            "tinyshakespeare is not on this machine, and the environment variable COURSE_OFFLINE forbids the network.\n"
            + _by_hand(url)
        )
    if url in _failed:
        raise CorpusUnavailable(_failed[url])
    import pooch

    folder = _writable_folder()
    part = folder / f"{FILE_NAME}.{os.getpid()}.part"  # two notebooks may download at the same time
    fetch = pooch.HTTPDownloader(progressbar=progress, timeout=(5, 30))  # seconds to connect, to wait for bytes
    try:
        try:
            fetch(url, str(part), None)
        except (OSError, RuntimeError) as error:  # errors of requests, ssl and socket are OSErrors
            _fail(
                url,
                f"{FILE_NAME} could not be downloaded ({type(error).__name__}).\n{_by_hand(url)}\nIn detail: {error}",
            )
        wrong = what_is_wrong(part.read_bytes(), f"the download from {url}")
        if wrong:
            _fail(url, f"{wrong}\n" + _by_hand(url))
        os.replace(part, folder / FILE_NAME)
    finally:
        part.unlink(missing_ok=True)
    return folder / FILE_NAME


def what_is_wrong(content: bytes, where: str) -> str:
    """What differs from the real tinyshakespeare, in words; an empty string if nothing does."""
    found = hashlib.sha256(content).hexdigest()
    if found == SHA256:
        return ""
    start = content[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        guess = "It is an HTML page: perhaps a login page of the network, to be opened in a browser first."
    elif hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() == SHA256:
        guess = "Its line ends were changed to those of Windows: copy the file as it is, or download it anew."
    elif len(content) < SIZE:
        guess = "It is too short: perhaps a copy that was cut off."
    else:
        guess = "It is another text."
    return (
        f"{where} is not tinyshakespeare: {len(content):,} bytes where {SIZE:,} are expected, SHA-256 {found[:12]}... "
        f"where {SHA256[:12]}... is expected; it begins with {content[:40]!r}. {guess}"
    )


def _by_hand(url: str) -> str:
    return (
        f"What to do: on a machine with network, download {url}\n"
        f"and copy the file to {data_folder() / FILE_NAME}; "
        "or go on with load_corpus('market'), which needs no network."
    )


def _writable_folder() -> Path:
    problems = []
    for folder in (data_folder(), cache_folder()):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / f".writable.{os.getpid()}"
            probe.touch()  # try it: the mode bits say little on Windows, or to an administrator
            probe.unlink()
            return folder
        except OSError as error:
            problems.append(f"{folder} ({_short(error)})")
    raise CorpusUnavailable(
        "there is no folder to keep tinyshakespeare in: " + "; ".join(problems) + ".\n"
        "What to do: let the environment variable COURSE_DATA name a folder that may be written to."
    )


def _fail(url: str, message: str) -> None:
    _failed[url] = message
    raise CorpusUnavailable(message)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "no", "off", "false")
