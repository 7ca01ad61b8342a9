"""Files from the network: downloaded once, checked before they get their name. And the one text that comes so.

tinyshakespeare is found on this machine or downloaded; its bytes are checked either way.
"""

import hashlib
import os
import uuid
from pathlib import Path

from .corpus import Corpus, CorpusUnavailable, data_folder, decode_text

FILE_NAME = "tinyshakespeare.txt"
URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SIZE = 1_115_394
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"

_failed = {}  # address -> why it failed: a notebook asks for the text more than once


def tinyshakespeare():
    """Return the Corpus of Shakespeare's plays, from the data folder, the user's cache or the network.

    Environment variables: COURSE_NO_SHAKESPEARE=1 acts as if there were no such file, COURSE_OFFLINE=1 forbids the
    network, COURSE_SHAKESPEARE_URL names another address. Raises CorpusUnavailable when the text cannot be had,
    ValueError when a file on this machine holds other bytes.
    """
    if _is_on("COURSE_NO_SHAKESPEARE"):
        raise CorpusUnavailable(
            "tinyshakespeare is switched off: the environment variable COURSE_NO_SHAKESPEARE is set"
        )
    for folder in _folders():
        path = folder / FILE_NAME
        if path.is_file():
            content = path.read_bytes()
            wrong = what_is_wrong(content, str(path))
            if wrong:
                raise ValueError(f"{wrong} Delete {path} and run this again, or put the right file in its place.")
            return Corpus("tinyshakespeare", decode_text(content, str(path)), source=str(path))
    path = download(os.environ.get("COURSE_SHAKESPEARE_URL") or URL)
    return Corpus("tinyshakespeare", decode_text(path.read_bytes(), str(path)), source=str(path))


def cache_folder():
    """Return the user's cache folder, where the text goes when the data folder is read-only."""
    import pooch  # here, because it is slow to import

    return Path(pooch.os_cache("gpt-twice"))


def download(url):
    """Download tinyshakespeare, check it and return its path.

    If the data folder is read-only, the file goes to the user's cache. Raises CorpusUnavailable, whose message says
    what to do.
    """
    if offline():
        raise CorpusUnavailable(
            "tinyshakespeare is not on this machine, and the environment variable COURSE_OFFLINE forbids the network.\n"
            + _by_hand(url)
        )
    if url in _failed:
        raise CorpusUnavailable(_failed[url])
    target = _writable_folder() / FILE_NAME
    try:
        fetch(url, target, lambda part: what_is_wrong(part.read_bytes(), f"the download from {url}"), _by_hand(url))
    except DownloadFailed as error:
        _failed[url] = str(error)
        raise CorpusUnavailable(str(error)) from error
    return target


class DownloadFailed(OSError):
    """The error for a file that did not come, or came as another. Its message says what to do."""


def fetch(url, target, wrong, advice):
    """Download ``url`` to the path ``target``, with a progress bar.

    The bytes arrive under a temporary name; ``wrong`` takes its path and returns what is wrong, in words, or "". Only
    then do they get the final name, so a broken download is never taken for the file. Raises DownloadFailed with a
    message that ends in ``advice``.
    """
    import pooch  # here, because it is slow to import

    part = target.with_name(f"{target.name}.{uuid.uuid4().hex[:12]}.part")  # two notebooks may download at a time
    download_to = pooch.HTTPDownloader(progressbar=True, timeout=(5, 30))  # seconds to connect, to wait for bytes
    try:
        try:
            download_to(url, str(part), None)
        except (OSError, RuntimeError) as error:  # errors of requests, ssl and socket are OSErrors
            raise DownloadFailed(
                f"{target.name} could not be downloaded ({type(error).__name__}).\n{advice}\nIn detail: {error}"
            ) from error
        if said := wrong(part):
            raise DownloadFailed(f"{said}\n{advice}")
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def what_is_wrong(content, where):
    """Return what differs from the real tinyshakespeare, in words; an empty string if nothing does."""
    found = hashlib.sha256(content).hexdigest()
    if found == SHA256:
        return ""
    start = content[:200].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        guess = "It is an HTML page: perhaps the login page of your network; open it in a browser first."
    elif hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() == SHA256:
        guess = "Its line endings were changed to those of Windows: copy the file unchanged, or download it again."
    elif len(content) < SIZE:
        guess = "It is too short: perhaps the copy was cut off."
    else:
        guess = "It is a different text."
    return (
        f"{where} is not tinyshakespeare: it has {len(content):,} bytes, {SIZE:,} are expected; "
        f"SHA-256 {found[:12]}..., {SHA256[:12]}... is expected; it begins with {content[:40]!r}. {guess}"
    )


def _by_hand(url):
    return (
        f"What to do: on a machine with a network, download {url}\n"
        f"and copy the file to {data_folder() / FILE_NAME}; "
        "or continue with load_corpus('market'), which needs no network."
    )


def _folders():
    """Yield the folders in which the text may be: the user's cache last, and only if the user has a home."""
    yield data_folder()
    try:
        cache = cache_folder()
    except RuntimeError:  # no HOME and no entry in passwd, as in some containers
        return
    yield cache


def _writable_folder():
    problems = []
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / f".writable.{uuid.uuid4().hex[:12]}"
            probe.touch()  # try it: the mode bits say little on Windows, or to an administrator
            probe.unlink()
            return folder
        except OSError as error:
            problems.append(f"{folder} ({_short(error)})")
    raise CorpusUnavailable(
        "there is no folder to keep tinyshakespeare in: " + "; ".join(problems) + ".\n"
        "What to do: set the environment variable COURSE_DATA to a folder that you may write to."
    )


def _short(error):
    return f"{type(error).__name__}: {error}"[:200]


def offline():
    """Return whether the environment variable COURSE_OFFLINE forbids the network."""
    return _is_on("COURSE_OFFLINE")


def _is_on(variable):
    return os.environ.get(variable, "").strip().lower() not in ("", "0", "no", "off", "false")
