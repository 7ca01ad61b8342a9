"""The plan of the house: each folder of course_lib imports from lower floors only, and no import runs in a circle."""

import ast
import graphlib
import re

import pytest
from track_tools import ROOT

# from top to bottom, as CONTRIBUTING shows them; folders of one floor do not import one another
FLOORS = (
    ("experiments",),
    ("exercises", "views"),
    ("idiomatic", "inference"),
    ("training",),
    ("numpy_track", "torch_track", "text"),
    ("common",),
)
LIBRARY = ROOT / "course_lib"


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path, text=None):
    """The modules of this repository that a file imports, anywhere in it: a set of dotted names."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8") if text is None else text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join(filter(None, [*base, node.module]))
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] in ("course_lib", "tools")}


def floor_of(folder):
    return next(n for n, folders in enumerate(FLOORS) if folder in folders)


def upward(path, text=None):
    """The imports of a file that do not run down."""
    own = module_name(path).split(".")[1]
    other = {name.split(".")[1] for name in imports(path, text) if name.startswith("course_lib.")} - {own}
    known = {folder for folders in FLOORS for folder in folders}
    return {name for name in other if name in known and floor_of(name) <= floor_of(own)}


def test_the_library_has_few_entries():
    entries = {path.stem for path in LIBRARY.iterdir() if path.name != "__pycache__"}
    assert entries == {"__init__", "jupyter", *(folder for folders in FLOORS for folder in folders)}


@pytest.mark.parametrize("folder", [folder for folders in FLOORS for folder in folders])
def test_imports_run_down(folder):
    for path in (LIBRARY / folder).rglob("*.py"):
        assert upward(path) == set(), path


def test_an_import_that_runs_up_is_seen():
    path = LIBRARY / "common" / "checks.py"
    assert upward(path, "from ..training import train") == {"training"}
    assert upward(path, "def later():\n    from course_lib.text import windows") == {"text"}
    assert upward(LIBRARY / "training" / "trainer.py", "from ..common import module\nfrom . import stop") == set()


@pytest.mark.parametrize("package", ["course_lib", "tools"])
def test_no_import_runs_in_a_circle(package):
    files = {module_name(path): path for path in (ROOT / package).rglob("*.py")}
    # a package's __init__ lists the names of its files: what a file takes from its own package, it takes from the file
    graph = {
        name: {
            other for other in imports(path) if other in files and other != name and not name.startswith(f"{other}.")
        }
        for name, path in files.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names a circle


def test_contributing_shows_these_floors():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.findall(r"(?m)^\| \d \| ([^|]+) \|", text)
    assert [tuple(re.findall(r"`(\w+)`", row)) for row in table] == list(FLOORS)


def test_every_folder_says_what_lives_there():
    for folder in (folder for folders in FLOORS for folder in folders):
        text = (LIBRARY / folder / "__init__.py").read_text(encoding="utf-8")
        assert "import" in ast.get_docstring(ast.parse(text)).split("\n\n")[-1], folder
