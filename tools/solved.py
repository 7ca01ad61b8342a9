#!/usr/bin/env python
"""Exercises in notebooks: the cells they consist of, and copies of notebooks with all of them solved.

    python tools/solved.py cells 06.2 [...]            print the cells of these exercises, for a notebook
    python tools/solved.py copies FOLDER [notebook...] write solved copies of notebooks into a folder and run them

An exercise consists of three cells. Their ids name it, so that nothing else has to be stored:

    task-06-2    markdown                      title, minutes, difficulty, the task
    ex-06-2      code, tag `exercise`          the stub, exactly as course_lib/exercises makes it
    check-06-2   code, tag `check`             check("06.2", merge_stack), with hint and solution as comments
"""

import ast
import builtins
import copy
import os
import re
import symtable
import sys
import tempfile
from pathlib import Path
from unittest import mock

import nbformat

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # for `tools`, from any folder

from course_lib.exercises import every, find
from tools import notebook

STUB = re.compile(r"ex-(\d\d)-(\d+)")


def exercise_id(cell):
    """Return "06.2" for a cell whose id is ex-06-2, and None for any other."""
    found = STUB.fullmatch(cell.get("id", ""))
    return found and ".".join(found.groups())


def stubs(book):
    """Return {exercise id: cell} of the stubs of a notebook."""
    return {exercise_id(cell): cell for cell in book.cells if cell.cell_type == "code" and exercise_id(cell)}


def check_call(cell):
    """Return the id of the exercise that a cell checks, as in check("06.2", f), or None."""
    try:
        calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    except SyntaxError:  # a magic: no check
        return None
    for call in calls:
        if getattr(call.func, "id", "") == "check" and len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
            return call.args[0].value
    return None


def heading(exercise):
    """The card with which the cell of the task begins; the task itself is the notebook's own."""
    return f"---\n\n### {exercise.id} · {exercise.title}\n\n*{exercise.minutes} minutes · {exercise.difficulty}*"


def cells(exercise):
    """The three cells of an exercise, without the text of its task."""
    suffix, v4 = exercise.id.replace(".", "-"), nbformat.v4
    check = f'check("{exercise.id}", {exercise.name})\n# hint("{exercise.id}")\n# solution("{exercise.id}")'
    return [
        v4.new_markdown_cell(f"{heading(exercise)}\n\n…", id=f"task-{suffix}"),
        v4.new_code_cell(exercise.stub, id=f"ex-{suffix}", metadata={"tags": ["exercise"]}),
        v4.new_code_cell(check, id=f"check-{suffix}", metadata={"tags": ["check"]}),
    ]


def problems(book):
    """Yield sentences about exercises of a notebook that are not as they should be."""
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
        task, wanted = cell.id.replace("ex-", "task-"), " ".join(heading(find(key)).split())
        tasks = [" ".join(other.source.split()) for other in book.cells if other.get("id") == task]
        if len(tasks) != 1 or not tasks[0].startswith(f"{wanted} "):
            yield f"{where}: cell {task} does not begin with {wanted}, or has no text"
        if "exercise" not in notebook.tags(cell):
            yield f"{where}: without the tag 'exercise'"
        if checks.get(key, -1) < book.cells.index(cell):
            yield f'{where}: no check("{key}", {find(key).name}) follows'
        yield from _names_missing(book, cell, key)


def _names_missing(book, cell, key):
    """Yield sentences about names of a solution that nothing imports before it, or that a cell rebinds."""
    wanted = set().union(*(free_names(text) for text in (find(key).stub, find(key).solved)))
    imported = set()
    for other in book.cells[: book.cells.index(cell)]:
        if other.cell_type != "code" or exercise_id(other):
            continue
        names = symtable.symtable(_python(other), other.get("id", ""), "exec").get_symbols()
        imported |= {name.get_name() for name in names if name.is_imported()}
        for name in names:
            if name.get_name() in wanted and name.is_assigned() and not name.is_imported():
                yield f"cell {other.id}: gives {name.get_name()!r} another meaning, and exercise {key} needs it"
    for name in sorted(wanted - imported):
        yield f"cell {cell.id}: the solution of {key} uses {name!r}, and no cell before it imports that"


def free_names(text):
    """Return the names that functions in this text take from outside, Python's builtins excepted."""
    tables, found = [symtable.symtable(text, "solution", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if table.get_type() != "module":
            found |= {name.get_name() for name in table.get_symbols() if name.is_global()}
    return found - set(dir(builtins))


def _python(cell):
    """Return the source of a cell without IPython's lines, or "" if it is not Python."""
    text = "\n".join(line for line in cell.source.splitlines() if not line.lstrip().startswith(("%", "!")))
    try:
        ast.parse(text)
    except SyntaxError:
        return ""
    return text


def solved(book, shortened=False):
    """Return a copy of the notebook with the solution in place of each stub.

    shortened: keep only imports, exercises and their checks. Whether the solutions find their names in the whole
    notebook is what ``problems`` says.
    """
    book = copy.deepcopy(book)
    if shortened:
        book.cells = [cell for cell in map(_needed, book.cells) if cell is not None]
    for key, cell in stubs(book).items():
        cell.source = find(key).solved
    return book


def ends_with_exercises(book):
    """Return True if nothing but exercises and their checks follows the first stub."""
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    first = next((i for i, cell in enumerate(code) if exercise_id(cell)), len(code))
    return all(exercise_id(cell) or check_call(cell) for cell in code[first:])


def _needed(cell):
    """Return an exercise or a check as it is, of other cells only the imports; None if nothing is left."""
    if cell.cell_type != "code" or exercise_id(cell) or check_call(cell):
        return cell if cell.cell_type == "code" else None
    imports = [node for node in ast.parse(_python(cell)).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    cell.source = "\n".join(map(ast.unparse, imports))
    return cell if imports else None


def verdicts(book, folder, timeout=300):
    """Run a notebook in a fresh kernel; return {exercise id: what its check printed}."""
    notebook.kernel_environment()
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory(prefix="course-solved-") as home:
        with mock.patch.dict(os.environ, COURSE_PROGRESS=str(Path(home) / "progress.json"), COURSE_OFFLINE="1"):
            notebook.client(book, folder, timeout).execute()
    found = {}
    for cell in book.cells:
        if cell.cell_type == "code" and (key := check_call(cell)):
            found[key] = "".join(out.get("data", {}).get("text/plain", "") for out in cell.outputs)
    return found


def write_copies(folder, paths):
    """Write and run solved copies; return 1 if a solution is not right in its notebook, else 0."""
    folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for path in paths:
        book = solved(notebook.read(path))
        if not stubs(book):
            continue
        for said in verdicts(book, path.parent).values():
            first = said.splitlines()[0] if said else "(nothing)"
            print(f"{path.name}: {first}".encode("ascii", "backslashreplace").decode())
            bad |= not first.endswith(": right")
        notebook.write(folder / path.name, book)
    return int(bad)


def main(argv):
    if len(argv) < 2 or argv[0] not in ("cells", "copies"):
        sys.exit(__doc__)
    if argv[0] == "copies":
        return write_copies(Path(argv[1]), [Path(name).resolve() for name in argv[2:]] or notebook.books())
    for key in argv[1:]:
        for cell in cells(find(key)):
            print(f"--- {cell.id} ({cell.cell_type}{', tag ' + cell.metadata.tags[0] if cell.metadata else ''})")
            print(cell.source)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
