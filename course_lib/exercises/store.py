"""Which exercises are done in this folder: a small JSON file beside the notebooks, never part of the repository.

It is written beside and renamed, so that it is whole at every moment, whatever kills the kernel. Reading and writing
are locked together, so that two kernels in the same folder cannot overwrite each other's entries. A file that cannot be
read is set aside under another name and the course goes on; so it does where nothing can be written.
"""

import contextlib
import json
import os
import time
from pathlib import Path

from .lock import locked
from .show import note_page, show

FILE = ".course_progress.json"
DONE, TRIED = "done", "tried"
STALE = 60  # seconds after which a half-written file must be one that a killed kernel has left


def path():
    """The file: ``.course_progress.json`` in the current folder, or what COURSE_PROGRESS names."""
    return Path(os.environ.get("COURSE_PROGRESS") or FILE)


def load():
    """{exercise id: "done" or "tried"}; a damaged file is set aside, with a message, and nothing is known then."""
    file = path()
    try:
        states = json.loads(file.read_text(encoding="utf-8"))["exercises"]
        if not all(isinstance(key, str) and state in (DONE, TRIED) for key, state in states.items()):
            raise ValueError("unknown entries")
    except FileNotFoundError:
        return {}
    except OSError as error:
        show(
            note_page(
                f"The progress file {file.name} cannot be read ({error.strerror}): the course goes on without it."
            )
        )
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        _set_aside(file)
        return {}
    return states


def note(id, done):
    """Write down that an exercise was tried, or is done. Once done it stays done."""
    try:
        with locked(path()):
            states = load()  # read again each time: another notebook may have written
            state = DONE if done or states.get(id) == DONE else TRIED
            if states.get(id) != state:
                save({**states, id: state})
    except OSError as error:
        show(note_page(f"Your progress could not be saved ({error.strerror}): the course goes on without it."))


def save(states):
    """Replace the file by one with these ``states``; at every moment either the old or the new one is whole."""
    file = path()
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
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
        with contextlib.suppress(OSError):  # another kernel may clear away, too
            if time.time() - left.stat().st_mtime > STALE:
                left.unlink()


def _set_aside(file):
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
    show(note_page(f"The progress file {file.name} was damaged. {where}, and the table starts anew."))
