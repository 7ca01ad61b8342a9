"""run.py: its set-up, its sentences and its commands, each through a small seam; no environment is built here.

How it was tried: syntax newer than Python 3.6 in run.py, the space check deleted, the stamp written before pip has
finished, a foreign .venv deleted, pip's failure ignored, pytest's exit code dropped and the kernel variable left out
were each put in, and each turned a test here red. The real set-up (clean clone, path with spaces, second run) is what
`make test` itself goes through.
"""

import ast
import importlib
import json
import re
import shutil
import socket
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

import run
from course_lib import on_save

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def course(tmp_path, monkeypatch):
    """run.py in a course folder with a space in its name, and nothing real behind it."""
    root = tmp_path / "a course"
    (root / "notebooks").mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt"):
        (root / name).write_text("", encoding="utf-8")
    monkeypatch.setattr(run, "ROOT", root)
    monkeypatch.setattr(run, "VENV", root / ".venv")
    monkeypatch.setattr(run, "STAMP", root / ".venv" / "course-setup.json")
    monkeypatch.setattr(run, "works", lambda python, code: True)
    monkeypatch.setattr(run, "installed", [], raising=False)
    monkeypatch.setattr(run, "pip_install", lambda python, what: run.installed.append(what))
    monkeypatch.setattr(run.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, "", ""))
    for name in ("PORT", "ARGS", "TORCH_INDEX"):
        monkeypatch.setenv(name, "")
    return root


def sentence(function, *arguments):
    with pytest.raises(run.Stop) as stop:
        function(*arguments)
    return str(stop.value)


# ---------------------------------------------------------------- old Pythons


def test_run_py_is_readable_for_old_pythons():
    text = (ROOT / "run.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 7))  # the oldest that ast knows
    assert not [n for n in ast.walk(tree) if isinstance(n, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr))]
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.Raise) and n.cause]


def test_wrong_python_says_what_to_do(tmp_path):
    """The file as an old Python sees it: only the limit is moved."""
    text = (ROOT / "run.py").read_text(encoding="utf-8").replace("OLDEST = (3, 11)", "OLDEST = (9, 0)")
    (tmp_path / "run.py").write_text(text, encoding="utf-8")
    result = subprocess.run([sys.executable, "run.py", "lab"], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert re.match(r"This is Python 3\.\d+, and the course needs Python 3\.11 or newer\. ", result.stderr)
    assert "make lab PYTHON=" in result.stderr or "python.org/downloads" in result.stderr
    assert not (tmp_path / ".venv").exists()


def test_old_pythons_themselves():
    """The real thing, where an old Python is at hand; elsewhere the two tests above have to do."""
    found = [p for p in (shutil.which(f"python3.{minor}") for minor in range(6, 11)) if p]
    old = [p for p in found if subprocess.run([p, "-c", ""], capture_output=True).returncode == 0]
    if not old:
        pytest.skip("no Python older than 3.11 here")
    for python in old:
        result = subprocess.run([python, "run.py", "test"], cwd=ROOT, capture_output=True, encoding="utf-8")
        assert result.returncode == 1 and "needs Python 3.11" in result.stderr and "Traceback" not in result.stderr


# ---------------------------------------------------------------- set-up


def test_no_space_says_how_much(course, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(run.shutil, "disk_usage", lambda path: usage(10, 10, 4e8))
    told = sentence(run.set_up)
    assert "3 GB" in told and "0.4 GB are free" in told and "a course" in told
    assert not run.VENV.exists()


def test_missing_venv_module_says_what_to_install(course, monkeypatch):
    monkeypatch.setattr(run, "works", lambda python, code: "ensurepip" not in code)
    told = sentence(run.set_up)
    assert "apt install python3-venv" in told and not run.VENV.exists()


def test_venv_that_fails_is_a_sentence(course, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "noise\nError: the last line", "")
    monkeypatch.setattr(run.subprocess, "run", lambda *a, **k: failed)
    assert "(Error: the last line)" in sentence(run.set_up) and not run.installed


def test_folder_that_cannot_be_written(course, monkeypatch):
    def denied(*arguments, **options):
        raise PermissionError(13, "Permission denied", str(run.VENV))

    monkeypatch.setattr(Path, "mkdir", denied)
    told = sentence(run.set_up)
    assert "No permission" in told and str(run.VENV) in told and "folder of yours" in told


def test_set_up_once_then_only_when_something_changed(course):
    run.set_up()
    run.set_up()
    assert run.installed == ["."]
    run.set_up("test")  # lab had not installed the test tools
    run.set_up("test")
    run.set_up()
    assert run.installed == [".", ".[test]"]
    (course / "constraints.txt").write_text("numpy==3\n", encoding="utf-8")
    run.set_up()
    assert run.installed == [".", ".[test]", ".[test]"]  # brought up to date with all that was there
    assert run.read_stamp()["done"] == run.fingerprint()


def test_half_made_environment_is_made_again(course, monkeypatch, capsys):
    def interrupted(python, what):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "pip_install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.set_up()
    (run.VENV / "rest").write_text("", encoding="utf-8")
    run.set_up()
    assert "not complete" in capsys.readouterr().out
    assert run.installed == ["."] and not (run.VENV / "rest").exists()


def test_environment_whose_python_is_gone_is_made_again(course, monkeypatch):
    run.set_up()
    (run.VENV / "rest").write_text("", encoding="utf-8")
    inside = str(run.VENV)
    monkeypatch.setattr(run, "works", lambda python, code: inside not in str(python))
    run.set_up()
    assert run.installed == [".", "."] and not (run.VENV / "rest").exists()


def test_somebody_elses_environment_is_used_and_never_deleted(course, monkeypatch):
    run.VENV.mkdir()
    (run.VENV / "mine").write_text("", encoding="utf-8")
    run.set_up()
    run.write_stamp(ours=False)  # as after an interrupted installation
    run.set_up()
    assert run.installed == [".", "."] and (run.VENV / "mine").exists()
    assert "did not make" in sentence(run.clean_all, [])
    run.write_stamp(ours=False)
    monkeypatch.setattr(run, "works", lambda python, code: False)
    assert "Rename or delete" in sentence(run.set_up) and (run.VENV / "mine").exists()


@pytest.mark.parametrize(
    "errors, words",
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        (
            "WARNING: Retrying ... NewConnectionError('...: [Errno -2]')\nERROR: No matching distribution found",
            "network",
        ),
        ("ERROR: No matching distribution found for torch==2.13.0", "no build for Python 3."),
        ("ERROR: something else\n", "pip failed: ERROR: something else"),
        ("", "see above"),
    ],
)
def test_pip_failures(errors, words):
    told = run.explain_pip(errors)
    assert words in told and "\n" not in told


def test_pip_gets_the_constraints_and_its_failure_becomes_a_sentence(tmp_path, monkeypatch, capsys):
    seen = {}

    class Pip:
        stderr = iter(["ERROR: No matching distribution found for torch\n"])

        def __init__(self, command, **options):
            seen.update(options, command=command)

        def wait(self):
            return 1

    monkeypatch.setattr(run.subprocess, "Popen", Pip)
    monkeypatch.setenv("TORCH_INDEX", "")
    monkeypatch.setenv("PIP_USER", "1")
    python = tmp_path / "a course" / "python"
    assert "no build" in sentence(run.pip_install, python, ".[test]")
    assert "found for torch" in capsys.readouterr().err  # pip's own words are shown as well
    assert seen["command"][0] == str(python)
    assert seen["command"][-4:] == ["-c", "constraints.txt", "-e", ".[test]"]
    assert "PIP_USER" not in seen["env"]


def test_cpu_index_is_used_on_linux_only_and_only_if_it_answers(monkeypatch, capsys):
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    monkeypatch.setattr(run.sys, "platform", "linux")
    monkeypatch.setattr(run, "reachable", lambda url: True)
    assert run.torch_index() == ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
    monkeypatch.setattr(run, "reachable", lambda url: False)
    assert run.torch_index() == [] and "cannot be reached" in capsys.readouterr().out
    monkeypatch.setenv("TORCH_INDEX", "/a mirror/simple")
    assert run.torch_index() == ["--extra-index-url", "/a mirror/simple"]
    monkeypatch.setenv("TORCH_INDEX", "")
    assert run.torch_index() == []
    monkeypatch.delenv("TORCH_INDEX")
    monkeypatch.setattr(run.sys, "platform", "darwin")
    assert run.torch_index() == []


def test_index_that_does_not_answer():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # bound, and nobody listens
        assert not run.reachable(f"http://127.0.0.1:{s.getsockname()[1]}/whl/cpu")
    assert not run.reachable("no address")


# ---------------------------------------------------------------- commands


@pytest.fixture
def called(course, monkeypatch):
    calls = []
    monkeypatch.setattr(run, "call", lambda command, **options: calls.append((list(map(str, command)), options)) or 0)
    monkeypatch.setattr(run, "running_lab", lambda python, folder: None)
    return calls


def test_lab(called, course):
    (course / "notebooks" / "00_start_here.ipynb").write_text("", encoding="utf-8")
    assert run.main(["lab", "PORT=9001"]) == 0
    ((command, options),) = called
    assert "--ServerApp.port=9001" in command and command[-1].endswith("/lab/tree/00_start_here.ipynb")
    assert options["cwd"] == str(course / "my_course")  # the learner's copies
    assert options["env"]["JUPYTER_PREFER_ENV_PATH"] == "1"  # a kernel registered by the user does not win (W09)


def test_lab_opens_copies_and_edit_the_notebooks(called, course, capsys):
    shipped = course / "notebooks" / "00_start_here.ipynb"
    shipped.write_text("{}", encoding="utf-8")
    assert run.main(["lab"]) == run.main(["edit"]) == 0
    assert [options["cwd"] for _, options in called] == [str(course / "my_course"), str(course / "notebooks")]
    mine = course / "my_course" / "00_start_here.ipynb"
    mine.write_text("mine", encoding="utf-8")
    shipped.write_text('{"new": 1}', encoding="utf-8")
    run.main(["lab"])
    assert "00_start_here.new.ipynb" in capsys.readouterr().out
    assert mine.read_text(encoding="utf-8") == "mine"


def test_lab_asks_no_questions(called):
    run.main(["lab"])
    config = json.loads((run.VENV / "etc/jupyter/labconfig/page_config.json").read_text(encoding="utf-8"))
    assert config == {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    saving = run.VENV / "etc/jupyter/jupyter_server_config.d/gpt-twice.json"
    assert json.loads(saving.read_text(encoding="utf-8")) == on_save.CONFIG


@pytest.mark.parametrize("port", ["abc", "0", "70000", "-1", "88 88", "\u00b2", "\u0665"])
def test_wrong_port(called, port):
    assert "not a port number" in sentence(run.main, ["lab", "PORT=" + port]) and not called


def test_arguments_with_an_open_quotation_mark(called):
    assert "quotation mark" in sentence(run.main, ["test", 'ARGS="x']) and not called


@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        ("course_lib.bench", ["--threads", "0"], "'0' is not a number from 1 on"),
        ("course_lib.bench", ["--rounds", "0"], "'0' is not a number from 1 on"),
        ("course_lib.bench", ["--rounds", "x"], "'x' is not a number from 1 on"),
        ("course_lib.bench_generation", ["--contexts", "32", "0"], "'0' is not a number from 1 on"),
        ("course_lib.make_checkpoints", ["nobody"], "there is no model 'nobody': choose from market-gpt"),
        ("course_lib.reproduce", ["a", "--jobs", "0"], "at least one run"),
        ("course_lib.reproduce", ["c", "b"], "there is no system 'b': choose from a, c, small, trajectories"),
        ("course_lib.ladder", ["--rungs", "bigram,cusal"], "there is no rung 'cusal': choose from bigram, positions"),
        ("course_lib.ladder", ["--steps", "0"], "at least one step"),
    ],
)
def test_command_lines_refuse_with_a_sentence(module, arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(SystemExit) as stop:
        importlib.import_module(module).main()
    assert stop.value.code == 2 and words in capsys.readouterr().err


def test_help_of_make_checkpoints_names_the_models(monkeypatch, capsys):
    from course_lib import make_checkpoints

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
    monkeypatch.setattr(run, "running_lab", lambda python, folder: running)
    monkeypatch.setattr(run, "no_desktop", lambda: True)
    assert run.main(["lab"]) == 0 and not called
    assert "http://localhost:8888/lab/tree/00_start_here.ipynb?token=t" in capsys.readouterr().out
    run.main(["lab", "PORT=9001"])  # a second one, on purpose
    assert len(called) == 1


def test_running_lab_is_this_course_and_answers(course, monkeypatch):
    here, other = str(course / "notebooks"), str(course)

    def servers(*found):
        listed = subprocess.CompletedProcess([], 0, json.dumps(found), "")
        monkeypatch.setattr(run.subprocess, "run", lambda *a, **k: listed)
        return run.running_lab("python", course / "notebooks")

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        assert servers({"root_dir": other, "port": port}) is None
        assert servers({"root_dir": other, "port": port}, {"root_dir": here, "port": port})["root_dir"] == here
    assert servers({"root_dir": here, "port": port}) is None  # it crashed and left its entry behind


def test_test_is_one_pytest_process_and_returns_its_code(called, monkeypatch, capsys):
    monkeypatch.setenv("ARGS", "-k 'a mask'")
    monkeypatch.setattr(run.os, "cpu_count", lambda: 4)
    codes = {"ruff": 0, "pytest": 3}
    monkeypatch.setattr(run, "call", lambda command, **o: called.append((command, o)) or codes[command[2]])
    assert run.main(["test", "-x"]) == 3
    assert [command[2:4] for command, _ in called[:2]] == [["ruff", "check"], ["ruff", "format"]]
    assert called[2][0][2:] == ["pytest", "-n", "2", "-k", "a mask", "-x"]
    assert called[2][1]["env"]["OMP_NUM_THREADS"] == "1"
    assert re.search(r"make test: failed \(pytest\) in 0 min 0\d s\n$", capsys.readouterr().out)
    codes.update(ruff=1, pytest=0)
    assert run.main(["test", "-n0"]) == 1
    assert called[-1][0][2:] == ["pytest", "-k", "a mask", "-n0"]


def test_unknown_command_and_failed_system_call():
    assert "There is no command fly" in sentence(run.main, ["fly"])
    assert "No such file" in run.explain_os_error(FileNotFoundError(2, "No such file or directory", "/x"))


def test_clean_keeps_what_is_not_a_cache(course):
    for name in (".venv/lib/__pycache__", "course_lib/__pycache__", "build/x", "notebooks/build", "x.egg-info"):
        (course / name).mkdir(parents=True)
    (course / "my_course" / ".ipynb_checkpoints").mkdir(parents=True)  # a learner's
    run.write_stamp(ours=True)
    run.clean([])
    left = sorted(p.relative_to(course).as_posix() for p in course.rglob("*") if p.is_dir())
    mine = ["my_course", "my_course/.ipynb_checkpoints"]
    assert left == [".venv", ".venv/lib", ".venv/lib/__pycache__", "course_lib", *mine, "notebooks", "notebooks/build"]
    run.clean_all([])
    assert not run.VENV.exists()
