"""Break the course on purpose, one thing at a time, and see that the tests notice: ``make sabotage``.

    make sabotage ARGS="--list"        the names of the sabotages, and which do not apply (seconds)
    make sabotage ARGS="--only mask"   those whose name contains the word
    make sabotage ARGS="--book 04"     take victims from this notebook (usual: the first that has one)

All of them take about half an hour. Each works on a copy of the repository in a temporary folder, uncommitted changes
included. The tests that should notice run on the untouched copy first. The exit code is 1 if a sabotage is not noticed
by the test that should notice it, or if the text it replaces is no longer there. What is broken is in sabotages.py.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sabotages import SABOTAGES, Copy, DoesNotApply, Stale  # noqa: E402


def copy_repository(folder):
    """Copy what git tracks or would track, and tinyshakespeare if it is here."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    ).stdout.split("\n")
    for name in [*filter(None, names), "data/tinyshakespeare.txt"]:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def mend(copy, clean):
    """Put back what a sabotage has changed, with the old times, by which Python knows what it has compiled."""
    for name in copy.changed:
        (copy.root / name).unlink(missing_ok=True)
        if (clean / name).exists():
            shutil.copy2(clean / name, copy.root / name)
    copy.changed.clear()


def pytest_run(folder, arguments):
    """Run pytest in this copy up to the first failure; return exit code, last line, and the ids of what failed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "--tb=no", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]]
    failed = [m[1] for line in lines if (m := re.match(r"(?:FAILED|ERROR) (\S+(?: budget)?)", line))]
    return done.returncode, lines[-1].strip("= "), failed


def say(word, name, text):
    print(f"{word:5} {name:60} {text}".encode("ascii", "backslashreplace").decode(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--book", default="", help="victims from notebooks whose name begins with this")
    parser.add_argument("--list", action="store_true", help="break nothing")
    options = parser.parse_args()
    baselines, bad, noticed = {}, [], 0
    with tempfile.TemporaryDirectory(prefix="course-sabotage-") as temporary:
        clean, work = Path(temporary).resolve() / "clean", Path(temporary).resolve() / "work"
        clean.mkdir()
        copy_repository(clean)
        shutil.copytree(clean, work)
        copy = Copy(work, options.book)
        for name, sabotage in SABOTAGES.items():
            if options.only not in name:
                continue
            mend(copy, clean)
            try:
                arguments, expected = sabotage(copy)
            except DoesNotApply as reason:
                say("-", name, f"does not apply: {reason}")
                continue
            except Stale as reason:
                say("STALE", name, reason)
                bad.append(name)
                continue
            if options.list:
                say("", name, " ".join(arguments))
                continue
            file = arguments[0]
            if file not in baselines and (clean / file).exists():  # one untouched run for all sabotages of a file
                baselines[file] = pytest_run(clean, [file])
                if baselines[file][0] != 0:
                    say("?", file, f"red before: {' '.join(baselines[file][2])}")
                    bad.append(f"the untouched {file}")
            start = time.perf_counter()
            code, last, failed = pytest_run(work, arguments)
            seen = code == 1 and any(expected in test for test in failed)
            say(
                "RED" if seen else "WRONG" if failed else "green",
                name,
                f"{time.perf_counter() - start:5.1f} s  {last}  {' '.join(failed)}",
            )
            noticed += seen
            bad += [] if seen else [name]
    if bad:
        print(f"\n{len(bad)} not noticed, or not as expected: {'; '.join(bad)}")
    elif not options.list:
        print(f"\n{noticed} sabotages, each noticed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
