"""Which exercises are done in this folder: a small JSON file next to the notebooks, never part of the repository.

It is written to a temporary file, then renamed, so that it is whole at every moment, whatever kills the kernel. Reading
and writing are locked together, so that two kernels in the same folder cannot overwrite each other's entries. A file
that cannot be read is set aside under another name and the course goes on; likewise where nothing can be written. The
functions return what happened as a sentence; ``commands`` shows it.
"""

import contextlib
import json
import os
import time
import uuid
from pathlib import Path

FILE = ".course_progress.json"
DONE, TRIED = "done", "tried"
STALE_PART = 60  # seconds after which a half-written file must have been left by a killed kernel
STALE_LOCK = 5  # seconds after which a lock must have been left by a killed kernel; a write takes milliseconds
WAIT = 10  # seconds after which we go on without the lock: saving late is worse than a rare double write


def path():
    """Return the file: ``.course_progress.json`` in the current folder, or the one named by COURSE_PROGRESS."""
    return Path(os.environ.get("COURSE_PROGRESS") or FILE)


def load(everything=False):
    """Return ({exercise id: "done" or "tried"}, a sentence about a file that could not be read, "" if all is well).

    Other entries, of a later version perhaps, are left out unless ``everything`` is asked for.
    """
    file = path()
    try:
        states = dict(json.loads(file.read_text(encoding="utf-8-sig"))["exercises"])  # an editor may have put a BOM
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"The progress file {file.name} cannot be read ({error.strerror}): the course goes on without it."
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}, _set_aside(file)
    return {id: state for id, state in states.items() if everything or state in (DONE, TRIED)}, ""


def note(id, done):
    """Record that an exercise was tried, or is done, as it then stays. Return a sentence about what failed, or ""."""
    try:
        with _locked(path()):
            states, problem = load(everything=True)  # read again each time: another notebook may have written
            state = DONE if done or states.get(id) == DONE else TRIED
            if states.get(id) != state:
                save({**states, id: state})
            return problem
    except OSError as error:
        return f"Your progress could not be saved ({error.strerror}): the course goes on without it."


def save(states):
    """Replace the file by one with these ``states``; at every moment either the old or the new one is whole."""
    file = path()
    part = file.with_name(f"{file.name}.{_own()}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as f:
            json.dump({"exercises": dict(sorted(states.items()))}, f, indent=1)
            f.write("\n")
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)
    for left in file.parent.glob(f"{file.name}.*.part"):
        with contextlib.suppress(OSError):  # another kernel may be clearing away, too
            if time.time() - left.stat().st_mtime > STALE_PART:
                left.unlink()


def _own():
    """Return a part of a name that nobody else uses: in containers that share a folder, every process is number 1."""
    return uuid.uuid4().hex[:12]


def _set_aside(file):
    """Rename a damaged file; return a sentence about it."""
    aside = next(
        name
        for n in range(1, 1000)
        if not (name := file.with_name(f"{file.name}.damaged{'' if n == 1 else f'-{n}'}")).exists()
    )
    try:
        os.replace(file, aside)
        where = f"It is kept as {aside.name}"
    except OSError as error:
        where = f"It could not be moved away ({error.strerror})"
    return f"The progress file {file.name} was damaged. {where}, and the table starts over."


@contextlib.contextmanager
def _locked(file):
    """Hold the lock of ``file`` inside this block: at most one process does, on Linux, macOS and Windows.

    The lock is a file next to it: creating one that must not exist yet (O_EXCL) succeeds for one process only. A stale
    lock, left by a killed kernel, is removed. Raises OSError as ``open`` does.
    """
    lock = file.with_name(f"{file.name}.lock")
    mine = _taken(lock)
    try:
        yield
    finally:
        if mine:
            with contextlib.suppress(OSError):
                lock.unlink()


def _taken(lock):
    """Wait for the lock and take it; return False if it was not released in time."""
    end = time.monotonic() + WAIT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            pass
        except PermissionError:
            # Windows says this, too, for a moment, of a file that is just being removed
            if os.name != "nt" or time.monotonic() > end - WAIT + 1:
                raise
        if _cleared(lock):
            continue
        if time.monotonic() > end:
            return False
        time.sleep(0.01)


def _cleared(lock):
    """Remove a stale lock and return True. It is renamed first: of several kernels waiting for it only one can."""
    with contextlib.suppress(OSError):  # it may be gone already
        if time.time() - lock.stat().st_mtime > STALE_LOCK:
            aside = lock.with_name(f"{lock.name}.{_own()}")
            os.replace(lock, aside)
            aside.unlink()
            return True
    return False
