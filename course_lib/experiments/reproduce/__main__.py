"""The command line of ``python -m course_lib.experiments.reproduce``."""

import argparse
import os
import sys

from .small import small
from .system_a import system_a
from .system_c import system_c
from .trajectories import trajectories

SYSTEMS = {"a": system_a, "c": system_c, "small": small, "trajectories": trajectories}


def main():
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.experiments.reproduce",
        description="Run systems of the course in full, in both tracks; expected beside measured.",
    )
    parser.add_argument("systems", nargs="*", metavar="system", help=f"of {', '.join(SYSTEMS)} (default: all)")
    parser.add_argument("--jobs", type=int, default=max(1, min(2, os.cpu_count() or 1)), help="runs at a time")
    options = parser.parse_args()  # argparse's own choices would refuse an empty list
    for name in options.systems:
        if name not in SYSTEMS:
            parser.error(f"there is no system {name!a}: choose from {', '.join(SYSTEMS)}")
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: at least one run at a time")
    held = [SYSTEMS[name](options.jobs) for name in options.systems or SYSTEMS]
    print("everything holds" if all(held) else "something does NOT hold: see the NO above")
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
