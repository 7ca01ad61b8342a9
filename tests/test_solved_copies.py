"""Exercises in notebooks: as shipped none is attempted, and in a solved copy all are right."""

import nbformat
import pytest

from course_lib.exercises import every, find
from tools import notebook, solved

IMPORTS = (
    "import math\n\nimport numpy as np\n\nfrom course_lib.common.positions import rotary_angles\n"
    "from course_lib.exercises import check, hint, progress, solution\n"
    "from course_lib.numpy_track import AdamW\nfrom course_lib.numpy_track import functional as F"
)


def page_of_all():
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(IMPORTS, id="imports")])
    for exercise in every():
        book.cells += solved.cells(exercise)
    book.cells.append(nbformat.v4.new_code_cell("progress()", id="progress"))
    return book


def said(verdicts):
    return {key: text.splitlines()[0].rsplit(": ", 1)[1] for key, text in verdicts.items()}


@pytest.fixture(scope="module")
def page():
    return page_of_all()


@pytest.mark.slow
def test_as_shipped_nothing_is_attempted(page, tmp_path):
    verdicts = solved.verdicts(page, tmp_path)
    assert said(verdicts) == {exercise.id: "not attempted yet" for exercise in every()}
    again = page_of_all()
    solved.verdicts(again, tmp_path)
    assert [c.get("outputs") for c in page.cells] == [c.get("outputs") for c in again.cells]  # what nbval compares
    for cell in page.cells:
        for out in cell.get("outputs", []):
            assert out.output_type == "display_data" and set(out.data) == {"text/plain", "text/html"}
    assert page.cells[-1].outputs[0].data["text/plain"].startswith("0 of ")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_in_a_solved_copy_all_are_right(page, tmp_path):
    copy = solved.solved(page)
    assert said(solved.verdicts(copy, tmp_path)) == {exercise.id: "right" for exercise in every()}
    count = len(every())
    assert copy.cells[-1].outputs[0].data["text/plain"].startswith(f"{count} of {count} ")
    assert solved.stubs(page)["06.2"].source == find("06.2").stub  # the page itself is as it was


WITH_EXERCISES = [path for path in notebook.books() if solved.stubs(notebook.read(path))]


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_EXERCISES, ids=lambda path: path.stem)
def test_solved_copy_of(path):
    """Lessons that train at length, or end with their exercises, run shortened: imports and exercises."""
    book = notebook.read(path)
    copy = solved.solved(book, shortened=path.name.startswith(notebook.LONG) or solved.ends_with_exercises(book))
    wanted = dict.fromkeys(solved.stubs(copy), "right")
    assert said(solved.verdicts(copy, path.parent)) == wanted


@pytest.mark.slow
def test_a_wrong_solution_would_be_seen(tmp_path, capsys, monkeypatch):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(IMPORTS, id="imports")])
    book.cells += solved.cells(find("06.2"))
    assert list(solved.problems(book)) == []
    path = tmp_path / "05_small.ipynb"
    path.write_text(notebook.text(book), encoding="utf-8")
    assert solved.main(["copies", str(tmp_path / "copies"), str(path)]) == 0
    assert find("06.2").solution in notebook.read(tmp_path / "copies" / path.name).cells[2].source
    monkeypatch.setattr(solved, "solved", lambda book: book)  # nothing solved
    assert solved.main(["copies", str(tmp_path / "copies"), str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[1].endswith("not attempted yet")


def test_a_shortened_copy_keeps_imports_and_exercises():
    book = page_of_all()
    book.cells.insert(1, nbformat.v4.new_code_cell("train_for_hours()", id="train"))
    book.cells.insert(1, nbformat.v4.new_code_cell("%config x = 1\nimport sys\n\nlong = train()", id="more-imports"))
    cells = solved.solved(book, shortened=True).cells
    short = [cell.id for cell in cells]
    assert cells[1].source == "import sys"
    assert short[:4] == ["imports", "more-imports", "ex-01-1", "check-01-1"] and "train" not in short


@pytest.mark.parametrize("path", WITH_EXERCISES, ids=lambda path: path.stem)
def test_solutions_find_their_names_in(path):
    assert list(solved.problems(notebook.read(path))) == []


def test_every_exercise_stands_on_one_page():
    on_pages = [key for path in WITH_EXERCISES for key in solved.stubs(notebook.read(path))]
    assert sorted(on_pages) == sorted(exercise.id for exercise in every())


def test_a_task_without_its_heading_or_text_is_reported():
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(IMPORTS, id="imports"), *solved.cells(find("06.2"))]
    )
    heading = "--- ### 06.2 · Merge a stack of heads *8 minutes · easy*"
    book.cells[1].source = heading.replace(" ", "\n", 3) + " A task."  # lines may be broken anywhere
    assert list(solved.problems(book)) == []
    for text in (heading, f"A task. {heading}", heading.replace("*8", "*7") + " A task."):
        book.cells[1].source = text
        said = f"cell ex-06-2: cell task-06-2 does not begin with {heading}, or has no text"
        assert list(solved.problems(book)) == [said]


def test_a_name_that_a_solution_does_not_find_is_reported():
    code = nbformat.v4.new_code_cell
    cells = [code("import numpy as np\nimport math", id="imports"), code("math = 3", id="rebound")]
    book = nbformat.v4.new_notebook(cells=[*cells, *solved.cells(find("06.3")), *solved.cells(find("03.3"))])
    assert list(solved.problems(book)) == [
        "cell ex-06-3: the solution of 06.3 uses 'F', and no cell before it imports that",
        "cell rebound: gives 'math' another meaning, and exercise 03.3 needs it",
    ]


def test_exercises_in_the_middle_are_told_from_those_at_the_end():
    book = page_of_all()
    assert not solved.ends_with_exercises(book)  # progress() follows
    del book.cells[-1]
    assert solved.ends_with_exercises(book)
