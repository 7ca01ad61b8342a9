#!/usr/bin/env python
"""Notebook housekeeping.

    python tools/nb.py run   [notebook ...]   execute in a fresh kernel and save, in committed form
    python tools/nb.py clean [notebook ...]   put in committed form without executing
    python tools/nb.py check [notebook ...]   list what breaks a rule of tools/hygiene.py; exit 1 if anything does
    python tools/nb.py manifest               record the cells of every notebook in notebooks/manifest.json

Without names, all notebooks. `run` saves a notebook only if every cell of it succeeded.
"""

import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # for `tools`, from any folder

from tools import hygiene, notebook


def check(path):
    """Print what is wrong with a notebook; return True if anything is."""
    found = list(hygiene.problems(path))
    for problem in found:
        print(f"{path.name}: {problem}".encode("ascii", "backslashreplace").decode())
    return bool(found)


def main(argv):
    if not argv or argv[0] not in ("run", "clean", "check", "manifest"):
        sys.exit(__doc__)
    command, names = argv[0], argv[1:]
    if command == "manifest":
        if names:
            sys.exit(f"manifest is of all notebooks: it takes no names, and got {' '.join(names)}")
        notebook.write_manifest()
        return 0
    paths = [Path(name).resolve() for name in names] or notebook.books()
    for path in paths:
        if not path.is_file():
            sys.exit(f"there is no notebook {path}")
    if command == "check":
        return int(sum(check(path) for path in paths) > 0)
    for path in paths:
        start = time.perf_counter()
        book = notebook.execute(path) if command == "run" else notebook.read(path)
        notebook.write(path, notebook.clean(book))
        seconds = f"  {time.perf_counter() - start:.1f} s of {notebook.budget(path)} s"
        print(f"{command} {path.name}" + seconds * (command == "run"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
