"""Break the course on purpose, one thing at a time, and see that the tests notice. By hand:

    python tests/sabotage.py                  all; exit 1 if one stays green (minutes)
    python tests/sabotage.py --list           their names, and which do not apply yet
    python tests/sabotage.py --only mask      those whose name contains the word
    python tests/sabotage.py --book 04        take victims from this notebook (usual: the first that has one)

Each sabotage works on a fresh copy of the repository in a temporary folder: uncommitted changes go along. It runs the
tests that should notice, first on the untouched copy, and is RED only if the expected one is among the new failures.
What is broken stands in sabotages.py beside this file.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import nbformat  # noqa: E402

from tools import nb  # noqa: E402


class DoesNotApply(Exception):
    """Nothing here to break: no such notebook, cell or file yet."""


@dataclass
class Copy:
    """A copy of the repository."""

    root: Path
    only: str = ""  # victims come from notebooks whose name begins with this

    def books(self):
        """Notebooks, the quick ones first."""
        found = [p for p in nb.books(self.root / "notebooks") if p.name.startswith(self.only)]
        return sorted(found, key=lambda p: (nb.budget(p), p.name))

    def replace(self, path, old, new):
        """Replace text that must be there, once, in a file."""
        file = self.root / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if text.count(old) != 1:
            raise DoesNotApply(f"{path} has {text.count(old)} times {old!r}")
        file.write_text(text.replace(old, new), encoding="utf-8")

    def edit_book(self, wanted, change):
        """Change the first notebook cell for which `wanted(cell)` is true; `change(book, cell)`. Gives path, cell."""
        for path in self.books():
            book = nb.read(path)
            for cell in book.cells:
                if wanted(cell):
                    change(book, cell)
                    path.write_text(nb.text(book), encoding="utf-8", newline="\n")
                    return path.relative_to(self.root).as_posix(), cell
        raise DoesNotApply("no notebook has such a cell")


def copy_repository(folder):
    """What git tracks or would track, and tinyshakespeare if it is here."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    ).stdout.split("\n")
    for name in [*filter(None, names), "data/tinyshakespeare.txt"]:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def pytest_run(folder, arguments):
    """(exit code, last line, ids of what failed) of pytest in this copy."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-200:]]
    failed = [m[1] for line in lines if (m := re.match(r"(?:FAILED|ERROR) (\S+(?: budget)?)", line))]
    return done.returncode, lines[-1].strip("= "), failed


def main():
    from sabotages import SABOTAGES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--book", default="", help="victims from notebooks whose name begins with this")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    baselines, bad = {}, []
    with tempfile.TemporaryDirectory(prefix="course-sabotage-") as temporary:
        clean, work = Path(temporary).resolve() / "clean", Path(temporary).resolve() / "work"
        clean.mkdir()
        copy_repository(clean)
        for name, sabotage in SABOTAGES.items():
            if options.only not in name:
                continue
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(clean, work)
            try:
                arguments, expected = sabotage(Copy(work, options.book))
            except DoesNotApply as reason:
                print(f"-     {name:44} does not apply: {reason}", flush=True)
                continue
            if options.list:
                print(f"      {name:44} {' '.join(arguments)}", flush=True)
                continue
            key = tuple(arguments)
            if key not in baselines:
                there = [a for a in arguments if a.startswith("-") or (clean / a.split("::")[0]).exists()]
                baselines[key] = pytest_run(clean, there)
                if baselines[key][0] != 0:
                    print(f"?     {' '.join(arguments)}: red before: {' '.join(baselines[key][2][:3])}", flush=True)
                    bad.append(f"the untouched {' '.join(arguments)}")
            start = time.perf_counter()
            code, last, failed = pytest_run(work, arguments)
            failed = [test for test in failed if test not in baselines[key][2]]
            seen = any(expected in test for test in failed)
            word = "RED  " if code == 1 and seen else "WRONG" if failed else "green"
            print(f"{word} {name:44} {time.perf_counter() - start:5.1f}s  {last}  {' '.join(failed[:3])}", flush=True)
            if word != "RED  ":
                bad.append(name)
    if bad:
        print(f"\nnot noticed, or not as expected: {'; '.join(bad)}")
    return bool(bad)


def code(cell):
    return cell.cell_type == "code"


def compared(cell):
    """A code cell with printed text that nbval compares on every machine."""
    return code(cell) and not nb.tags(cell) & {"nbval-ignore-output", "shakespeare", "raises-exception"}


def printed(cell):
    return "".join(out.get("text", "") for out in cell.get("outputs", []))


def stream(text):
    return [nbformat.v4.new_output("stream", name="stdout", text=text)]


if __name__ == "__main__":
    sys.modules.setdefault("sabotage", sys.modules["__main__"])  # so that sabotages.py finds this very module
    sys.exit(main())
