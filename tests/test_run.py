"""run.py and tools/course.py: set-up, sentences and commands, each through a small seam; nothing is installed here.

The real set-up (clean clone, path with spaces, second run) is what `make test` itself goes through.
"""

import ast
import importlib
import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib import jupyter as on_save
from tools import course

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A course folder with a space in its name, in which nothing is installed."""
    root = tmp_path / "a course"
    (root / "notebooks").mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt"):
        (root / name).write_text("", encoding="utf-8")
    monkeypatch.setattr(course, "ROOT", root)
    monkeypatch.setattr(course, "VENV", root / ".venv")
    monkeypatch.setattr(course, "STAMP", root / ".venv" / "course-setup.json")
    monkeypatch.setattr(course, "works", lambda python, code: True)
    monkeypatch.setattr(course, "installed", [], raising=False)
    monkeypatch.setattr(course, "pip_install", lambda python, what: course.installed.append(what))
    monkeypatch.setattr(course.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, "", ""))
    for name in ("PORT", "ARGS", "TORCH_INDEX"):
        monkeypatch.setenv(name, "")
    return root


def sentence(function, *arguments):
    with pytest.raises(course.Stop) as stop:
        function(*arguments)
    return str(stop.value)


# ---------------------------------------------------------------- old Pythons


def test_run_py_is_readable_for_old_pythons():
    text = (ROOT / "run.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 7))  # the oldest that ast knows
    assert not [n for n in ast.walk(tree) if isinstance(n, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr))]


def test_wrong_python_says_what_to_do(tmp_path):
    """The file as an old Python sees it: only the limit is moved."""
    text = (ROOT / "run.py").read_text(encoding="utf-8").replace("OLDEST = (3, 11)", "OLDEST = (9, 0)")
    (tmp_path / "run.py").write_text(text, encoding="utf-8")
    result = subprocess.run([sys.executable, "run.py", "lab"], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert re.match(r"This is Python 3\.[\d.]+, and the course needs Python 3\.11 or newer\. ", result.stderr)
    assert "make lab PYTHON=" in result.stderr or "python.org/downloads" in result.stderr
    assert not (tmp_path / ".venv").exists()


def test_old_pythons_themselves():
    """Try old Pythons where there are any; elsewhere the two tests above have to do."""
    found = [p for p in (shutil.which(f"python3.{minor}") for minor in range(6, 11)) if p]
    old = [p for p in found if subprocess.run([p, "-c", ""], capture_output=True).returncode == 0]
    if not old:
        pytest.skip("no Python older than 3.11 here")
    for python in old:
        result = subprocess.run([python, "run.py", "test"], cwd=ROOT, capture_output=True, encoding="utf-8")
        assert result.returncode == 1 and "needs Python 3.11" in result.stderr and "Traceback" not in result.stderr


# ---------------------------------------------------------------- set-up


def test_missing_venv_module_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(course, "works", lambda python, code: "ensurepip" not in code)
    told = sentence(course.set_up)
    assert "apt install python3-venv" in told and not course.VENV.exists()


def test_venv_that_fails_is_a_sentence(folder, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "noise\nError: the last line", "")
    monkeypatch.setattr(course.subprocess, "run", lambda *a, **k: failed)
    assert "(Error: the last line)" in sentence(course.set_up) and not course.installed


def test_the_commands_need_nothing_installed():
    result = subprocess.run([sys.executable, "-S", "run.py"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert result.returncode == 0 and result.stdout.rstrip() == course.__doc__.rstrip()


def test_folder_that_cannot_be_written(folder, monkeypatch):
    def denied(*arguments, **options):
        raise PermissionError(13, "Permission denied", str(course.VENV))

    monkeypatch.setattr(Path, "mkdir", denied)
    told = sentence(course.set_up)
    assert "No permission" in told and str(course.VENV) in told and "folder of yours" in told


def test_set_up_once_then_only_when_something_changed(folder):
    course.set_up()
    course.set_up()
    assert course.installed == ["."]
    course.set_up("test")  # lab had not installed the test tools
    course.set_up("test")
    course.set_up()
    assert course.installed == [".", ".[test]"]
    (folder / "constraints.txt").write_text("numpy==3\n", encoding="utf-8")
    course.set_up()
    assert course.installed == [".", ".[test]", ".[test]"]  # brought up to date with all that was there
    assert course.read_stamp()["done"] == course.fingerprint()


def test_another_hook_in_jupyter_brings_the_set_up_up_to_date(folder, monkeypatch):
    """R30: what a server does before it saves is a module of the course, and modules move."""
    saving = course.VENV / "etc/jupyter/jupyter_server_config.d/gpt-twice.json"
    hook = {"ContentsManager": {"pre_save_hook": "course_lib.old_place.pictures_only"}}
    with monkeypatch.context() as patch:
        patch.setitem(course.JUPYTER, "jupyter_server_config.d/gpt-twice.json", hook)
        course.set_up()
        assert json.loads(saving.read_text(encoding="utf-8")) == hook
    course.set_up()
    assert json.loads(saving.read_text(encoding="utf-8")) == on_save.CONFIG
    course.set_up()
    assert course.installed == [".", "."]


def test_half_made_environment_is_made_again(folder, monkeypatch, capsys):
    def interrupted(python, what):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(course, "pip_install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            course.set_up()
    (course.VENV / "rest").write_text("", encoding="utf-8")
    course.set_up()
    assert "not complete" in capsys.readouterr().out
    assert course.installed == ["."] and not (course.VENV / "rest").exists()


def test_environment_whose_python_is_gone_is_made_again(folder, monkeypatch):
    course.set_up()
    (course.VENV / "rest").write_text("", encoding="utf-8")
    inside = str(course.VENV)
    monkeypatch.setattr(course, "works", lambda python, code: inside not in str(python))
    course.set_up()
    assert course.installed == [".", "."] and not (course.VENV / "rest").exists()


def test_somebody_elses_environment_is_used_and_never_deleted(folder, monkeypatch):
    course.VENV.mkdir()
    (course.VENV / "mine").write_text("", encoding="utf-8")
    course.set_up()
    course.write_stamp(ours=False)  # as after an interrupted installation
    course.set_up()
    assert course.installed == [".", "."] and (course.VENV / "mine").exists()
    assert "did not make" in sentence(course.clean_all, [])
    course.write_stamp(ours=False)
    monkeypatch.setattr(course, "works", lambda python, code: False)
    assert "Rename or delete" in sentence(course.set_up) and (course.VENV / "mine").exists()


@pytest.mark.parametrize(
    "errors, words",
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("WARNING: Retrying after connection broken by 'X'\nERROR: No matching distribution found", "network"),
        ("ERROR: No matching distribution found for torch==2.13.0", "no build for Python 3."),
        ("ERROR: something else\n", "pip failed: ERROR: something else"),
        ("", "see above"),
    ],
)
def test_pip_failures(errors, words):
    told = course.explain_pip(errors)
    assert words in told and "\n" not in told


@pytest.fixture
def pip(monkeypatch):
    """The calls of pip, each of which says what ``pip.error`` holds."""
    monkeypatch.delenv("TORCH_INDEX", raising=False)

    class Pip:
        calls, error = [], ""

        def __init__(self, command, **options):
            self.calls.append((list(map(str, command)), options))
            self.stderr = self.error.splitlines(keepends=True)

        def wait(self):
            return bool(self.error)

    monkeypatch.setattr(course.subprocess, "Popen", Pip)
    return Pip


def test_pip_gets_the_constraints_and_its_failure_becomes_a_sentence(pip, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TORCH_INDEX", "")
    monkeypatch.setenv("PIP_USER", "1")
    pip.error = "ERROR: No matching distribution found for torch\n"
    python = tmp_path / "a course" / "python"
    assert "no build" in sentence(course.pip_install, python, ".[test]")
    assert "found for torch" in capsys.readouterr().err  # pip's own words are shown as well
    ((command, options),) = pip.calls
    assert command[0] == str(python) and command[-4:] == ["-c", "constraints.txt", "-e", ".[test]"]
    assert "PIP_USER" not in options["env"]


@pytest.mark.parametrize(
    ("platform", "setting", "index"),
    [
        ("linux", None, course.CPU_INDEX),
        ("linux", "/a mirror/simple", "/a mirror/simple"),
        ("linux", "", None),
        ("darwin", None, None),
    ],
)
def test_index_of_pytorch(pip, monkeypatch, platform, setting, index):
    """It is asked for PyTorch only: no other package waits for it."""
    monkeypatch.setattr(course.sys, "platform", platform)
    if setting is not None:
        monkeypatch.setenv("TORCH_INDEX", setting)
    course.pip_install("python", ".")
    *first, last = [command[command.index("-c") + 2 :] for command, _ in pip.calls]
    assert first == ([["--extra-index-url", index, "--no-deps", "torch"]] if index else []) and last == ["-e", "."]


# ---------------------------------------------------------------- commands


@pytest.fixture
def called(folder, monkeypatch):
    calls = []
    monkeypatch.setattr(
        course, "call", lambda command, **options: calls.append((list(map(str, command)), options)) or 0
    )
    monkeypatch.setattr(course, "running_lab", lambda python, folder: None)
    return calls


def test_lab(called, folder):
    (folder / "notebooks" / "00_start_here.ipynb").write_text("", encoding="utf-8")
    assert course.main(["lab", "PORT=9001"]) == 0
    ((command, options),) = called
    assert "--ServerApp.port=9001" in command and command[-1].endswith("/lab/tree/00_start_here.ipynb")
    assert options["cwd"] == folder / "my_course"  # the learner's copies
    assert options["env"]["JUPYTER_PREFER_ENV_PATH"] == "1"  # a kernel registered by the user does not win (W09)


def test_lab_opens_copies_and_edit_the_notebooks(called, folder, capsys):
    shipped = folder / "notebooks" / "00_start_here.ipynb"
    shipped.write_text("{}", encoding="utf-8")
    assert course.main(["lab"]) == course.main(["edit"]) == 0
    assert [options["cwd"] for _, options in called] == [folder / "my_course", folder / "notebooks"]
    mine = folder / "my_course" / "00_start_here.ipynb"
    mine.write_text("mine", encoding="utf-8")
    shipped.write_text('{"new": 1}', encoding="utf-8")
    course.main(["lab"])
    assert "00_start_here.new.ipynb" in capsys.readouterr().out
    assert mine.read_text(encoding="utf-8") == "mine"


def test_lab_asks_no_questions(called):
    course.main(["lab"])
    config = json.loads((course.VENV / "etc/jupyter/labconfig/page_config.json").read_text(encoding="utf-8"))
    assert config == {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    saving = course.VENV / "etc/jupyter/jupyter_server_config.d/gpt-twice.json"
    assert json.loads(saving.read_text(encoding="utf-8")) == on_save.CONFIG


@pytest.mark.parametrize("port", ["abc", "0", "70000", "-1", "88 88", "\u00b2", "\u0665"])
def test_wrong_port(called, port):
    assert "not a port number" in sentence(course.main, ["lab", "PORT=" + port]) and not called


def test_arguments_with_an_open_quotation_mark(called):
    assert "quotation mark" in sentence(course.main, ["test", 'ARGS="x']) and not called


@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        ("course_lib.experiments.bench.training", ["--threads", "0"], "'0' is not a number from 1 on"),
        ("course_lib.experiments.bench.training", ["--rounds", "0"], "'0' is not a number from 1 on"),
        ("course_lib.experiments.bench.training", ["--rounds", "x"], "'x' is not a number from 1 on"),
        ("course_lib.experiments.bench.generation", ["--contexts", "32", "0"], "'0' is not a number from 1 on"),
        ("course_lib.experiments.make_checkpoints", ["nobody"], "there is no model 'nobody': choose from market-gpt"),
        ("course_lib.experiments.reproduce.__main__", ["a", "--jobs", "0"], "at least one run"),
        (
            "course_lib.experiments.reproduce.__main__",
            ["c", "b"],
            "there is no system 'b': choose from a, c, small, trajectories",
        ),
        (
            "course_lib.experiments.ladder",
            ["--rungs", "bigram,cusal"],
            "there is no rung 'cusal': choose from bigram, positions",
        ),
        ("course_lib.experiments.ladder", ["--steps", "0"], "at least one step"),
    ],
)
def test_command_lines_refuse_with_a_sentence(module, arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(SystemExit) as stop:
        importlib.import_module(module).main()
    assert stop.value.code == 2 and words in capsys.readouterr().err


def test_help_of_make_checkpoints_names_the_models(monkeypatch, capsys):
    from course_lib.experiments import make_checkpoints

    made = []
    monkeypatch.setattr(make_checkpoints, "make", made.append)
    monkeypatch.setattr(sys, "argv", ["make_checkpoints", "--help"])
    with pytest.raises(SystemExit):
        make_checkpoints.main()
    told = capsys.readouterr().out
    assert "market-gpt or shakespeare-gpt" in told and "[]" not in told and ",}" not in told
    monkeypatch.setattr(sys, "argv", ["make_checkpoints"])
    make_checkpoints.main()
    assert made == ["market-gpt", "shakespeare-gpt"]


def test_lab_twice_shows_the_one_that_runs(called, monkeypatch, capsys):
    running = {"url": "http://localhost:8888/", "port": 8888, "token": "t"}
    monkeypatch.setattr(course, "running_lab", lambda python, folder: running)
    monkeypatch.setattr(course, "no_desktop", lambda: True)
    assert course.main(["lab"]) == 0 and not called
    assert "http://localhost:8888/lab/tree/00_start_here.ipynb?token=t" in capsys.readouterr().out
    course.main(["lab", "PORT=9001"])  # a second one, on purpose
    assert len(called) == 1


def test_running_lab_is_this_course_and_answers(folder, monkeypatch):
    here, other = str(folder / "notebooks"), str(folder)

    def servers(*found):
        listed = subprocess.CompletedProcess([], 0, json.dumps(found), "")
        monkeypatch.setattr(course.subprocess, "run", lambda *a, **k: listed)
        return course.running_lab("python", folder / "notebooks")

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        assert servers({"root_dir": other, "port": port}) is None
        assert servers({"root_dir": other, "port": port}, {"root_dir": here, "port": port})["root_dir"] == here
    assert servers({"root_dir": here, "port": port}) is None  # it crashed and left its entry behind


def test_check_leaves_slow_tests_out(called, capsys):
    assert course.main(["check", "-n0"]) == 0
    assert called[-1][0][2:] == ["pytest", "-q", "-m", "not slow", "-n0"]
    assert "make check: passed" in capsys.readouterr().out


def test_test_is_one_pytest_process_and_returns_its_code(called, monkeypatch, capsys):
    monkeypatch.setenv("ARGS", "-k 'a mask'")
    monkeypatch.setattr(course.os, "cpu_count", lambda: 4)
    codes = {"ruff": 0, "pytest": 3}
    monkeypatch.setattr(course, "call", lambda command, **o: called.append((command, o)) or codes[command[2]])
    assert course.main(["test", "-x"]) == 3
    assert [command[2:4] for command, _ in called[:2]] == [["ruff", "check"], ["ruff", "format"]]
    assert called[2][0][2:] == ["pytest", "-n", "2", "-k", "a mask", "-x"]
    assert called[2][1]["env"]["OMP_NUM_THREADS"] == "1"
    assert re.search(r"make test: failed \(pytest\) in 0 min 0\d s\n$", capsys.readouterr().out)
    codes.update(ruff=1, pytest=0)
    assert course.main(["test", "-n0"]) == 1
    assert called[-1][0][2:] == ["pytest", "-k", "a mask", "-n0"]


def test_unknown_command_and_failed_system_call():
    assert "There is no command fly" in sentence(course.main, ["fly"])
    assert "No such file" in course.explain_os_error(FileNotFoundError(2, "No such file or directory", "/x"))


def test_clean_keeps_what_is_not_a_cache(folder):
    for name in (".venv/lib/__pycache__", "course_lib/__pycache__", "build/x", "notebooks/build", "x.egg-info"):
        (folder / name).mkdir(parents=True)
    (folder / "my_course" / ".ipynb_checkpoints").mkdir(parents=True)  # a learner's
    course.write_stamp(ours=True)
    course.clean([])
    left = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_dir())
    mine = ["my_course", "my_course/.ipynb_checkpoints"]
    assert left == [".venv", ".venv/lib", ".venv/lib/__pycache__", "course_lib", *mine, "notebooks", "notebooks/build"]
    course.clean_all([])
    assert not course.VENV.exists()
