"""The sabotages themselves: their tables are read in full, and one that proves nothing any more fails the run."""

import sys

import pytest
import sabotage
import sabotages


@pytest.fixture
def run(monkeypatch):
    """A function: the exit code of the command for one sabotage, in an empty repository."""
    monkeypatch.setattr(sabotage, "copy_repository", lambda folder: (folder / "a.py").write_text("x", encoding="utf-8"))
    monkeypatch.setattr(sys, "argv", ["sabotage.py", "--list"])

    def command(function):
        monkeypatch.setattr(sabotage, "SABOTAGES", {"one": function})
        return sabotage.main()

    return command


@pytest.mark.parametrize(("old", "code"), [("x", 0), ("y", 1)])
def test_a_text_that_is_gone_fails_the_run(run, old, code):
    assert run(lambda copy: copy.replace("a.py", old, "z") or (["test"], "test")) == code


def test_a_file_that_is_gone_fails_the_run_and_a_notebook_does_not(run):
    assert run(lambda copy: copy.replace("b.py", "x", "z")) == 1
    assert run(lambda copy: copy.edit_book(bool, print)) == 0


def test_tables_are_read_in_full():
    for kind in ("LIBRARY", "EXERCISES"):
        lines = getattr(sabotages, kind).splitlines()[1:]
        titles = sum(not line.startswith(("==", " ")) for line in lines)
        prefix = {"LIBRARY": "library: ", "EXERCISES": "exercise: "}[kind]
        assert titles == sum(name.startswith(prefix) for name in sabotages.SABOTAGES) > 30
