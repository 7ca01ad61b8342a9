"""The set-up: requirements, environment.yml, workflow, the package, text encodings. (test_run.py has the commands.)"""

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from tools import course

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = [Requirement(line) for line in PROJECT["dependencies"]]
TEST_REQUIREMENTS = [
    Requirement(line) for name in ("notebooks", "test") for line in PROJECT["optional-dependencies"][name]
]
TEST_REQUIREMENTS = [r for r in TEST_REQUIREMENTS if r.name != PROJECT["name"]]
CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}
SOURCES = sorted(p for top in ("course_lib", "tools", "tests") for p in (ROOT / top).rglob("*.py"))
SOURCES += sorted(ROOT.glob("*.py"))
COMMAND_LINES = [p for p in SOURCES if p.is_relative_to(ROOT / "tools") or "__main__" in p.read_text(encoding="utf-8")]


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


def workflow(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_workflow():
    """Three systems, each change once: six full runs for a push and six more for its pull request were too many."""
    test = workflow("test.yml")
    matrix = test["jobs"]["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert "3.11" in matrix["python"] and len(matrix["python"]) == 2
    assert test[True]["push"] == {"branches": ["main"]} and "pull_request" in test[True]  # YAML 1.1 reads on as True
    said = json.dumps(test["jobs"])
    assert "run.py test" in said and "pytest --nbval" in said
    assert "make sabotage" in json.dumps(workflow("sabotage.yml")["jobs"])


def test_ci_knows_no_other_place():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert text.splitlines()[-1] == "make test"  # its exit code is the one of the script
    assert set(re.findall(r"(?<![\w.])/[a-z]+(?:/[\w.-]+)+", text)) <= {"/usr/bin/env", "/dev/null"}
    outside = sorted(set(re.findall(r"\.\./[\w./-]+", text)))
    assert outside == ["../shared/data/gpt2", "../shared/data/tinyshakespeare.txt"]
    if os.name == "posix" and shutil.which("bash"):
        subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


@pytest.mark.skipif(not shutil.which("make"), reason="no make here")
@pytest.mark.parametrize("words", [["lab"], ["notebooks"], ["clean-all"], []], ids=" ".join)
def test_makefile_hands_every_command_on(words):
    """Also those that are the name of a folder."""
    command = ["make", "-n", "--no-print-directory", "PYTHON=python3", *words]  # whatever make runs these tests
    result = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert result.stdout == f"python3 run.py {' '.join(words) or 'help'}\n"


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


def test_a_wheel_holds_the_library_and_the_data_that_ships(tmp_path):
    """R29: whoever installs a wheel has the texts and models too, and nothing that was downloaded."""
    source, site = tmp_path / "source", tmp_path / "site"
    for name in ("course_lib", "data"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.part", "gpt2", "models")
        )
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, source)
    (source / "data" / "tinyshakespeare.txt").write_text("downloaded", encoding="utf-8")
    shipped = {p.relative_to(source).as_posix() for p in source.glob("course_lib/**/*.*") if p.suffix != ".md"}
    shipped |= {f"course_lib/data/{p.name}" for p in source.glob("data/*.*") if p.name != "tinyshakespeare.txt"}

    result = python("-c", f"from setuptools import build_meta as b; b.build_wheel({str(tmp_path)!r})", cwd=source)
    assert result.returncode == 0, result.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == shipped
        wheel.extractall(site)
    code = "from course_lib import text, training; text.load_corpus('hello'); training.load_checkpoint('market-gpt')"
    result = python("-c", f"{code}; print(text.shipped_folder())", cwd=tmp_path, PYTHONPATH=str(site), COURSE_DATA="")
    assert Path(result.stdout.strip()) == site / "course_lib" / "data", result.stderr


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
    """Return True if this call opens a file or a pipe as text in the machine's own code page (D06, B10)."""
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


def test_scan_for_encoding():
    found = "open(p); open(p, 'w'); p.open(); p.open('r'); p.read_text(); p.write_text(t); io.open(p, mode='a')"
    assert len(text_calls(found + "; subprocess.run(c, text=True)")) == 8
    fine = "open(p, 'rb'); p.open('wb'); open(p, encoding='utf-8'); webbrowser.open('https://x'); webbrowser.open(url)"
    assert not text_calls(fine + "; p.write_text(t, 'utf-8')")


def test_command_lines_print_ascii():
    """B10: a Windows console in code page 1252 or 437 must not stop a command with UnicodeEncodeError."""
    found, printing = [], ("print", "say", "sys.exit", "Stop")
    for path in COMMAND_LINES:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in printing:
                words = [c.value for c in ast.walk(call) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
                found += [f"{path.name}:{call.lineno}: {word!r}" for word in words if not word.isascii()]
    assert not found
    assert course.__doc__.isascii()


def test_run_py_in_an_old_code_page():
    for words in (["help"], ["nothing"]):
        result = python(
            "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "run.py", *words, PYTHONIOENCODING="ascii"
        )
        assert "Traceback" not in result.stderr and "lab" in result.stdout + result.stderr
