"""The set-up: requirements, environment.yml, workflow, the package, text encodings. (run.py has its own file.)

How it was tried: an upper bound in pyproject.toml, another range in environment.yml, an open() without encoding in
course_lib, a non-ASCII print in run.py, `import torch` in course_lib/__init__.py, a path of one machine in .ci/run
and a pin that needs Python 3.11.5 were each put in, and each turned a test here red.
"""

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import run

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = [Requirement(line) for line in PROJECT["dependencies"]]
TEST_REQUIREMENTS = [Requirement(line) for line in PROJECT["optional-dependencies"]["test"]]
CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}
SOURCES = sorted(p for top in ("course_lib", "tools", "tests") for p in (ROOT / top).rglob("*.py"))
SOURCES += [p for p in (ROOT / "run.py", ROOT / "conftest.py") if p.exists()]
SCRIPTS = (
    "run.py",
    "bench.py",
    "bench_generation.py",
    "bench_gpt2.py",
    "make_checkpoints.py",
    "ladder.py",
    "train_ddp.py",
)
COMMAND_LINES = [p for p in SOURCES if p.name in SCRIPTS or p.parent.name in ("tools", "reproduce")]


def pins():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.lower().split("==") for line in lines if line and not line.startswith("#"))


def python(*arguments, cwd=ROOT, **env):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=dict(os.environ, **env),
    )


# ---------------------------------------------------------------- requirements


def test_requirements_are_ranges_without_upper_bound():
    """B11, I01: nothing that is there has to be downgraded, and a new Python finds its wheels."""
    assert PROJECT["requires-python"] == ">=3.11"
    for requirement in REQUIREMENTS:
        assert [s.operator for s in requirement.specifier] == [">="], str(requirement)


def test_constraints_are_exact_and_inside_the_ranges():
    pinned = pins()
    assert all(Version(version).local is None for version in pinned.values())  # 2.13.0+cpu satisfies 2.13.0
    for requirement in REQUIREMENTS + TEST_REQUIREMENTS:
        assert pinned[requirement.name] in requirement.specifier, str(requirement)
    assert not {"colorama", "pywinpty", "appnope"} & pinned.keys()  # not run on Linux: no tested version to pin


def test_pins_suit_the_oldest_python():
    """I01: no pin asks for a Python newer than requires-python, or pip would find nothing on Debian's 3.11.2."""
    for name, version in pins().items():
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        asked = found.metadata["Requires-Python"]
        if asked and Version(found.version).public == version:
            assert Requirement("python" + asked).specifier.contains("3.11.0"), f"{name} {version}: Python {asked}"


def test_environment_yml_equals_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *conda, last = environment["dependencies"]
    assert last == {"pip": ["-e ."]}  # conda has everything else, so that pip installs the course alone
    assert environment["channels"][0] == "conda-forge"
    wanted = {CONDA_NAMES.get(r.name, r.name) + str(r.specifier) for r in REQUIREMENTS}
    assert set(conda) == wanted | {"python" + PROJECT["requires-python"], "pip"}


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda p: p.name)
def test_workflow(path):
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert "3.11" in matrix["python"] and len(matrix["python"]) > 1
    said = json.dumps(jobs)
    assert "make test" in said and "run.py test" in said and "pytest --nbval" in said


def test_ci_knows_no_other_place():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert text.splitlines()[-1] == "make test"  # its exit code is the one of the script
    assert set(re.findall(r"(?<![\w.])/[a-z]+(?:/[\w.-]+)+", text)) <= {"/usr/bin/env", "/dev/null"}
    outside = sorted(set(re.findall(r"\.\./[\w./-]+", text)))
    assert len(outside) == 1 and outside[0].endswith("/data/tinyshakespeare.txt")
    if os.name == "posix" and shutil.which("bash"):
        subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


def test_makefile_offers_every_command():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split())
    assert targets == set(run.COMMANDS) | {"help"}


# ---------------------------------------------------------------- the package


def test_package_is_found_from_any_folder(tmp_path):
    """B08: installed, not found by luck of the working directory."""
    try:
        importlib.metadata.distribution(PROJECT["name"])
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the course is not installed in this Python (make test installs it)")
    result = python("-c", "import course_lib; print(course_lib.__file__)", cwd=tmp_path, PYTHONPATH="")
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()).parent == ROOT / "course_lib"


def test_no_notebook_edits_the_path():
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        assert "sys.path" not in path.read_text(encoding="utf-8"), f"{path.name} edits sys.path"


@pytest.mark.parametrize("name", ["course_lib", "course_lib.numpy_track"])
def test_import_does_not_bring_torch(name):
    result = python("-c", f"import sys, {name}; sys.exit('torch' in sys.modules)")
    assert result.returncode == 0, result.stderr or f"import {name} brings torch"


def test_import_is_quick():
    """Budget 0.3 s; red only at five times that."""
    code = "import time; start = time.perf_counter(); import course_lib; print(time.perf_counter() - start)"
    assert min(float(python("-c", code).stdout) for _ in range(3)) < 5 * 0.3


# ---------------------------------------------------------------- text in files and on the console


def is_text_call(call):
    """Whether this call opens a file or a pipe as text in the machine's own code page (D06, B10)."""
    method = isinstance(call.func, ast.Attribute)
    name = call.func.attr if method else getattr(call.func, "id", "")
    given = {k.arg: k.value for k in call.keywords}
    if "encoding" in given or None in given:  # None: **options
        return False
    if name == "open":
        modes = (call.args[:1] if method else call.args[1:2]) + [given[k] for k in ("mode",) if k in given]
        mode = getattr(modes[-1], "value", "") if modes else "r"
        return isinstance(mode, str) and bool(re.fullmatch("[rwaxt+]+", mode))
    if name in ("read_text", "write_text"):
        return len(call.args) < (1 if name == "read_text" else 2)
    return bool({"text", "universal_newlines"} & given.keys()) and name in ("run", "Popen", "check_output")


def text_calls(source):
    return [n.lineno for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call) and is_text_call(n)]


def test_every_file_is_opened_as_utf8():
    assert not [
        f"{path.relative_to(ROOT)}:{line}" for path in SOURCES for line in text_calls(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(
    "code, found",
    [
        ("open(p)", True),
        ("open(p, 'w')", True),
        ("p.open()", True),
        ("p.open('r')", True),
        ("p.read_text()", True),
        ("p.write_text(t)", True),
        ("subprocess.run(c, text=True)", True),
        ("io.open(p, mode='a')", True),
        ("open(p, 'rb')", False),
        ("p.open('wb')", False),
        ("open(p, encoding='utf-8')", False),
        ("webbrowser.open(url)", False),
        ("webbrowser.open('https://x')", False),
        ("p.write_text(t, 'utf-8')", False),
    ],
)
def test_scan_for_encoding(code, found):
    assert bool(text_calls(code)) == found


def test_command_lines_print_ascii():
    """B10: a Windows console in code page 1252 or 437 must not stop a command with UnicodeEncodeError."""
    found, printing = [], ("print", "say", "sys.exit", "sys.stdout.write")
    for path in COMMAND_LINES:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in printing:
                words = [c.value for c in ast.walk(call) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
                found += [f"{path.name}:{call.lineno}: {word!r}" for word in words if not word.isascii()]
    assert not found
    assert run.__doc__.isascii()


def test_run_py_in_an_old_code_page():
    for words in (["help"], ["nothing"]):
        result = python(
            "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "run.py", *words, PYTHONIOENCODING="ascii"
        )
        assert "Traceback" not in result.stderr and "lab" in result.stdout + result.stderr
