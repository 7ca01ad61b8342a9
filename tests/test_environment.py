"""The check at the start of the course names this Python, and says how to install what is missing (W09)."""

import importlib.metadata
import sys

from course_lib import jupyter as environment


def test_W09_it_names_this_python_and_the_versions(capsys):
    assert environment.check_environment() is True
    out = capsys.readouterr().out
    assert f"Python {sys.version.split()[0]} at " in out and out.endswith("everything is there\n")
    assert f"here: ipywidgets {importlib.metadata.version('ipywidgets')}\n" in out


def test_W09_a_missing_package_gets_the_command_for_exactly_this_python(capsys, monkeypatch):
    monkeypatch.setattr(environment, "PACKAGES", ("numpy", "no-such-package"))
    assert environment.check_environment() is False
    out = capsys.readouterr().out
    assert f'"{sys.executable}" -m pip install no-such-package' in out and "everything is there" not in out


def test_an_old_python_is_named(capsys, monkeypatch):
    monkeypatch.setattr(environment, "OLDEST", (99, 0))
    assert environment.check_environment() is False
    assert "needs 99.0 or newer" in capsys.readouterr().out
