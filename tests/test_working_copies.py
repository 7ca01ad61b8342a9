"""A learner's copies: made once, never overwritten, and a changed lesson comes beside them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import hygiene, links, notebook, working_copies

ROOT = Path(__file__).resolve().parents[1]


def book(*sources, output="1\n"):
    out = [{"output_type": "stream", "name": "stdout", "text": output}]
    cells = [{"cell_type": "code", "id": f"c{i}", "source": s, "outputs": out} for i, s in enumerate(sources)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def course(tmp_path):
    """(write a notebook of the course, update the copies, folder of the copies)"""
    source, target = tmp_path / "notebooks", tmp_path / "my course"
    (source / "pictures").mkdir(parents=True)
    (source / "pictures" / "map.png").write_bytes(b"png 1")
    (source / "manifest.json").write_text("{}", encoding="utf-8")

    def ship(text, name="05_heads.ipynb"):
        (source / name).write_text(text, encoding="utf-8")

    ship(book("one"))
    return ship, lambda: working_copies.update(source, target), target


def names(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name[0] != ".")


def test_copies_are_made_with_their_pictures(course):
    ship, update, mine = course
    assert update() == [] == update()
    assert names(mine) == ["05_heads.ipynb", "pictures/map.png"]
    assert (mine / "05_heads.ipynb").read_text(encoding="utf-8") == book("one")


def saved(copy, change=lambda cell: None):
    """What JupyterLab writes when it saves a notebook that was opened: more metadata, lines apart, another layout."""
    opened = json.loads(copy.read_text(encoding="utf-8"))
    opened["metadata"] = {"language_info": {"name": "python", "version": "3.99", "mimetype": "text/x-python"}}
    for cell in opened["cells"]:
        cell |= {"execution_count": None, "metadata": {"trusted": True}, "source": cell["source"].splitlines(True)}
        for output in cell["outputs"]:
            output["text"] = output["text"].splitlines(True)
        change(cell)
    copy.write_text(json.dumps(opened, indent=1), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "worked"),
    [(lambda cell: None, False), (lambda cell: cell.update(execution_count=7), False),
     (lambda cell: cell.update(source=["mine"]), True), (lambda cell: cell.update(outputs=[]), True),
     (lambda cell: cell["outputs"][0].update(text=["2\n"]), True), (lambda cell: cell.update(cell_type="raw"), True)],
    ids=["opened", "counted", "answer", "cleared", "other output", "other kind"],
)  # fmt: skip
def test_opening_is_not_working(course, change, worked):
    ship, update, mine = course
    update()
    saved(mine / "05_heads.ipynb", change)
    ship(book("two"))
    assert bool(update()) is worked
    assert ((mine / "05_heads.ipynb").read_text(encoding="utf-8") == book("two")) is not worked
    assert (mine / "05_heads.new.ipynb").exists() is worked


def test_a_learners_file_is_never_overwritten(course):
    ship, update, mine = course
    update()
    copy = mine / "05_heads.ipynb"
    copy.write_text(book("my answer"), encoding="utf-8")
    (mine / "notes.ipynb").write_text("notes", encoding="utf-8")
    for lesson in ("two", "three"):
        ship(book(lesson))
        assert update() == [
            "05_heads.ipynb has changed in the course, and you have worked in your copy: "
            "the new version is beside it as 05_heads.new.ipynb."
        ]
        assert update() == []  # said and offered once
        assert (mine / "05_heads.new.ipynb").read_text(encoding="utf-8") == book(lesson)
    assert copy.read_text(encoding="utf-8") == book("my answer")
    assert (mine / "notes.ipynb").read_text(encoding="utf-8") == "notes"
    (mine / "05_heads.new.ipynb").unlink()  # not wanted
    assert update() == [] and names(mine) == ["05_heads.ipynb", "notes.ipynb", "pictures/map.png"]


def test_work_in_an_offered_version_is_kept_too(course):
    ship, update, mine = course
    update()
    for name, lesson in (("05_heads", "two"), ("05_heads.new", "three"), ("05_heads.new-2", "four")):
        (mine / f"{name}.ipynb").write_text(book("mine in", name), encoding="utf-8")
        ship(book(lesson))
        assert len(update()) == 1
    for name in ("05_heads", "05_heads.new", "05_heads.new-2"):
        assert (mine / f"{name}.ipynb").read_text(encoding="utf-8") == book("mine in", name)
    assert (mine / "05_heads.new-3.ipynb").read_text(encoding="utf-8") == book("four")


def test_an_untouched_copy_follows_the_course(course):
    ship, update, mine = course
    update()
    ship(book("two"))
    assert update() == []
    assert (mine / "05_heads.ipynb").read_text(encoding="utf-8") == book("two")


def test_a_copy_that_was_only_run_counts_as_the_learners(course):
    ship, update, mine = course
    update()
    (mine / "05_heads.ipynb").write_text(book("one", output="my output\n"), encoding="utf-8")
    ship(book("two"))
    assert len(update()) == 1
    assert "my output" in (mine / "05_heads.ipynb").read_text(encoding="utf-8")


def test_copies_name_the_python_that_runs_them(tmp_path):
    """JupyterLab compares what is stored with what the kernel says, and marks a difference as a change."""
    for version in ("3.99.1", "3.99.2"):
        assert working_copies.update(ROOT / "notebooks", tmp_path, version) == []
    for path in notebook.books(tmp_path):
        made, committed = (notebook.read(p) for p in (path, ROOT / "notebooks" / path.name))
        assert made.metadata.language_info == notebook.LANGUAGE | {"version": "3.99.2"}
        assert made.cells == committed.cells


def test_new_outputs_are_no_new_lesson(course):
    ship, update, mine = course
    update()
    (mine / "05_heads.ipynb").write_text(book("my answer"), encoding="utf-8")
    ship(book("one", output="2\n"))
    assert update() == [] and names(mine) == ["05_heads.ipynb", "pictures/map.png"]


def test_taking_the_new_version_over_or_starting_afresh(course):
    ship, update, mine = course
    update()
    copy = mine / "05_heads.ipynb"
    copy.write_text(book("my answer"), encoding="utf-8")
    ship(book("two"))
    update()
    os.replace(mine / "05_heads.new.ipynb", copy)
    assert update() == []
    ship(book("three"))
    assert update() == [] and copy.read_text(encoding="utf-8") == book("three")
    copy.unlink()
    assert update() == [] and copy.read_text(encoding="utf-8") == book("three")


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"05_heads.ipynb": 3}'])
def test_without_its_notes_everything_that_differs_is_the_learners(course, damage):
    ship, update, mine = course
    update()
    (mine / working_copies.STATE).write_text(damage, encoding="utf-8")
    assert update() == []  # nothing differs
    (mine / working_copies.STATE).write_text(damage, encoding="utf-8")
    (mine / "05_heads.ipynb").write_text(book("my answer"), encoding="utf-8")
    assert len(update()) == 1
    assert (mine / "05_heads.ipynb").read_text(encoding="utf-8") == book("my answer")


def test_an_interrupted_copy_leaves_nothing_half_done(course, monkeypatch):
    ship, update, mine = course

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(working_copies.os, "replace", full)
        with pytest.raises(OSError, match="space"):
            update()
    assert not [p for p in mine.rglob("*") if p.is_file()]
    assert update() == [] and len(names(mine)) == 2


# ------------------------------------------------------------------ the real notebooks
def test_links_and_pictures_work_in_copies_of_the_real_notebooks(tmp_path):
    """As in the repository: every link of a copy leads somewhere, in a folder that lies beside the others."""
    for name in ("course_lib", "data", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert working_copies.update(ROOT / "notebooks", tmp_path / "my_course") == []
    copies = notebook.books(tmp_path / "my_course")
    assert [path.name for path in copies] == [path.name for path in notebook.books()]
    for path in copies:
        copy = hygiene.Book.at(path)
        assert [trouble for cell in copy.prose for trouble in links.broken_links(cell, copy)] == []


def test_git_pull_never_meets_a_learners_edits(tmp_path):
    """A clone with copies and edits: nothing to commit there, and a pull of a changed notebook goes through."""
    if shutil.which("git") is None:
        pytest.skip("no git here")

    def git(folder, *words):
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
        done = subprocess.run(["git", *author, *words], cwd=folder, capture_output=True, encoding="utf-8", check=True)
        return done.stdout

    course, clone = tmp_path / "course", tmp_path / "clone"
    (course / "notebooks").mkdir(parents=True)
    shutil.copy(ROOT / ".gitignore", course)
    lesson = course / "notebooks" / "05_heads.ipynb"
    lesson.write_text(book("one"), encoding="utf-8")
    git(course, "init", "-q")
    git(course, "add", ".")
    git(course, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", str(course), str(clone))
    working_copies.update(clone / "notebooks", clone / "my_course")
    mine = clone / "my_course" / "05_heads.ipynb"
    mine.write_text(book("my answer"), encoding="utf-8")
    (clone / "my_course" / ".course_progress.json").write_text("{}", encoding="utf-8")
    assert git(clone, "status", "--porcelain") == ""
    lesson.write_text(book("two"), encoding="utf-8")
    git(course, "commit", "-qam", "two")
    git(clone, "pull", "-q")
    assert len(working_copies.update(clone / "notebooks", clone / "my_course")) == 1
    assert mine.read_text(encoding="utf-8") == book("my answer") and git(clone, "status", "--porcelain") == ""


def test_it_needs_nothing_but_python():
    text = (ROOT / "tools" / "working_copies.py").read_text(encoding="utf-8")
    assert set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE)) <= {
        "hashlib",
        "json",
        "os",
        "pathlib",
        "uuid",
    }
