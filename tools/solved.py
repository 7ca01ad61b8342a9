#!/usr/bin/env python
"""Exercises in notebooks: the cells they consist of, and copies of notebooks in which all are solved.

    python tools/solved.py cells 05.2 [...]            print the cells of these exercises, to be put into a notebook
    python tools/solved.py copies FOLDER [notebook...] write solved copies of notebooks into a folder and run them

An exercise stands in three cells. Their ids name it, so that nothing else has to be stored:

    task-05-2    markdown                      title, minutes, difficulty, the task
    ex-05-2      code, tag `exercise`          the stub, exactly as course_lib/exercises makes it
    check-05-2   code, tag `check`             check("05.2", merge_heads), with hint and solution as comments
"""

import ast
import copy
import os
import re
import sys
import tempfile
from pathlib import Path
from unittest import mock

import nbformat

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # for `tools`, from any folder

from course_lib.exercises import every, find
from tools import nb

STUB = re.compile(r"ex-(\d\d)-(\d+)")


def exercise_id(cell):
    """ "05.2" for a cell whose id is ex-05-2; None for any other."""
    found = STUB.fullmatch(cell.get("id", ""))
    return found and ".".join(found.groups())


def stubs(book):
    """{exercise id: cell} of the stubs of a notebook."""
    return {exercise_id(cell): cell for cell in book.cells if cell.cell_type == "code" and exercise_id(cell)}


def check_call(cell):
    """The exercise id that a cell checks, as in check("05.2", f); None if it checks none."""
    try:
        calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    except SyntaxError:  # a magic: no check
        return None
    for call in calls:
        if getattr(call.func, "id", "") == "check" and len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
            return call.args[0].value
    return None


def cells(exercise):
    """The three cells of an exercise."""
    suffix, v4 = exercise.id.replace(".", "-"), nbformat.v4
    task = f"**{exercise.id} · {exercise.title} ({exercise.minutes} minutes, {exercise.difficulty}).**"
    text = " ".join(exercise.task.split())
    check = f'check("{exercise.id}", {exercise.name})\n# hint("{exercise.id}")\n# solution("{exercise.id}")'
    return [
        v4.new_markdown_cell(f"{task} {text}", id=f"task-{suffix}"),
        v4.new_code_cell(exercise.stub, id=f"ex-{suffix}", metadata={"tags": ["exercise"]}),
        v4.new_code_cell(check, id=f"check-{suffix}", metadata={"tags": ["check"]}),
    ]


def problems(book):
    """Sentences about exercises of a notebook that are not as they should be."""
    found, known = stubs(book), {exercise.id for exercise in every()}
    checks = {check_call(cell): i for i, cell in enumerate(book.cells) if cell.cell_type == "code"}
    for key in sorted(set(checks) - {None} - known):
        yield f"there is no exercise {key!r} to check"
    for key in sorted(set(checks) & known - set(found)):
        yield f"exercise {key} is checked, and no cell ex-{key.replace('.', '-')} holds its stub"
    for key, cell in found.items():
        where = f"cell {cell.id}"
        if key not in known:
            yield f"{where}: there is no exercise {key}"
            continue
        if cell.source.strip() != find(key).stub:
            yield f"{where}: not the stub of exercise {key}. Get it with: python tools/solved.py cells {key}"
        if "exercise" not in nb.tags(cell):
            yield f"{where}: without the tag 'exercise'"
        if checks.get(key, -1) < book.cells.index(cell):
            yield f'{where}: no check("{key}", {find(key).name}) follows'


def solved(book, shortened=False):
    """A copy of the notebook with the solution in place of each stub. ``shortened``: with imports, exercises and their
    checks only, for notebooks that train at length."""
    book = copy.deepcopy(book)
    if shortened:
        book.cells = [cell for cell in book.cells if _is_needed(cell)]
    for key, cell in stubs(book).items():
        cell.source = find(key).solved
    return book


def _is_needed(cell):
    if cell.cell_type != "code":
        return False
    if exercise_id(cell) or check_call(cell):
        return True
    lines = [line for line in cell.source.splitlines() if not line.lstrip().startswith("%")]
    try:
        body = ast.parse("\n".join(lines)).body
    except SyntaxError:
        return False
    return bool(body) and all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in body)


def verdicts(book, folder, timeout=300):
    """{exercise id: what its check printed}, of a notebook that is run here in a fresh kernel."""
    nb.kernel_environment()
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory(prefix="course-solved-") as home:
        with mock.patch.dict(os.environ, COURSE_PROGRESS=str(Path(home) / "progress.json"), COURSE_OFFLINE="1"):
            nb.client(book, folder, timeout).execute()
    found = {}
    for cell in book.cells:
        if cell.cell_type == "code" and (key := check_call(cell)):
            found[key] = "".join(out.get("data", {}).get("text/plain", "") for out in cell.outputs)
    return found


def write_copies(folder, paths):
    """Write and run solved copies; returns 1 if a solution is not right in its notebook."""
    folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for path in paths:
        book = solved(nb.read(path))
        if not stubs(book):
            continue
        for said in verdicts(book, path.parent).values():
            first = said.splitlines()[0] if said else "(nothing)"
            print(f"{path.name}: {first}".encode("ascii", "backslashreplace").decode())
            bad |= not first.endswith(": right")
        nb.write(folder / path.name, book)
    return int(bad)


def main(argv):
    if len(argv) < 2 or argv[0] not in ("cells", "copies"):
        sys.exit(__doc__)
    if argv[0] == "copies":
        return write_copies(Path(argv[1]), [Path(name).resolve() for name in argv[2:]] or nb.books())
    for key in argv[1:]:
        for cell in cells(find(key)):
            print(f"--- {cell.id} ({cell.cell_type}{', tag ' + cell.metadata.tags[0] if cell.metadata else ''})")
            print(cell.source)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
