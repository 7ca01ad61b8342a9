#!/usr/bin/env python3
"""Start a command of the course: ``python3 run.py lab``; ``python3 run.py help`` lists them.

The commands are in tools/course.py. This file must be readable for old Pythons, so that they can say that they are too
old: no newer syntax here.
"""

import sys

OLDEST = (3, 11)


def advice():
    """Return what to do about a Python that is too old."""
    import shutil
    import subprocess

    message = "This is Python " + sys.version.split()[0] + ", and the course needs Python 3.11 or newer."
    find = getattr(shutil, "which", lambda name: None)  # not in Python 2
    for minor in range(19, 10, -1):
        name = "python3." + str(minor)
        if find(name) and not subprocess.call([name, "-c", ""], stderr=subprocess.DEVNULL):
            return message + " Use the one that is here: make lab PYTHON=" + name + " (or: " + name + " run.py lab)"
    return message + " Get one from https://www.python.org/downloads/ and run this command with it."


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(advice())
    from tools import course

    sys.exit(course.run(sys.argv[1:]))
