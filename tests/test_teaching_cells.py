"""A cell that teaches a definition of course_lib shows that very definition; no cell defines one on the quiet.

Compared as syntax trees, docstrings and comments aside. Tags: `teaches` shows the definition; `variant` is different on
purpose (the slow version, the wrong mask); `exercise` is the learner's own.
"""

import difflib

import nbformat
import pytest

from tools import definitions, hygiene, notebook

TEACHING = [
    pytest.param(cell, id=f"{path.stem}-{cell.id}")
    for path in notebook.books()
    for cell in notebook.read(path).cells
    if "teaches" in notebook.tags(cell)
]


def drift(cell):
    """Sentences about how the definitions of a teaching cell differ from the library's."""
    try:
        shown = definitions.taught(cell)
    except (ValueError, SyntaxError) as error:
        return [str(error)]
    found = []
    for item in shown:
        if not (notebook.ROOT / item.file).exists():
            found.append(f"there is no {item.file}")
        elif item.name not in (known := definitions.defined_in(item.file)):
            found.append(f"{item.file} has no {item.name}")
        else:
            here, there = definitions.bare(item.node), definitions.bare(known[item.name])
            if here != there:
                lines = difflib.unified_diff(there.splitlines(), here.splitlines(), item.file, "cell", n=1, lineterm="")
                found.append(f"{item.name} differs from the library's:\n" + "\n".join(lines))
    return found


def unmarked(cell):
    """Names of the library that a cell defines without saying so."""
    if notebook.tags(cell) & {"teaches", "variant", "exercise"}:
        return []
    names = definitions.definitions(hygiene.parsed(cell).body)
    return sorted(names.keys() & definitions.public_names().keys())


@pytest.mark.parametrize("cell", TEACHING)
def test_equals_the_library(cell):
    assert not (found := drift(cell)), "\n".join(found)


@pytest.mark.parametrize("path", notebook.books(), ids=lambda path: path.stem)
def test_no_unmarked_copies(path):
    found = [
        f"cell {cell.id} defines {name}, as {', '.join(definitions.public_names()[name])} does: import it, or tag "
        "the cell 'teaches' (the same) or 'variant' (different on purpose)"
        for cell in notebook.read(path).cells
        if cell.cell_type == "code"
        for name in unmarked(cell)
    ]
    assert not found, "\n".join(found)


# ------------------------------------------------------------------ the comparison itself
LIBRARY = '''
import numpy as np

def softmax(x, axis=-1):
    """Probabilities."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))  # no overflow
    return e / e.sum(axis=axis, keepdims=True)

class Tensor:
    """A node."""

    def backward(self):
        """All gradients."""
        for node in self.order():
            node.step()

    @property
    def T(self):
        return self.data.T
'''
SOFTMAX = """# course_lib/f.py
def softmax(x, axis=-1):
    # largest first
    e = np.exp(x - x.max(axis=axis,
                         keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)"""
METHOD = """# course_lib/f.py: Tensor.backward
def backward(self):
    for node in self.order():
        node.step()"""
CLASS = LIBRARY[LIBRARY.index("class") :]


@pytest.fixture
def tiny_library(tmp_path, monkeypatch):
    (tmp_path / "course_lib").mkdir()
    (tmp_path / "course_lib" / "f.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.setattr(notebook, "ROOT", tmp_path)
    definitions.defined_in.cache_clear()
    definitions.public_names.cache_clear()
    yield
    definitions.defined_in.cache_clear()
    definitions.public_names.cache_clear()


def made(source, *tags):
    return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)})


@pytest.mark.parametrize(
    "source",
    [
        SOFTMAX,
        METHOD,
        "# course_lib/f.py\n" + CLASS,
        SOFTMAX + "\n\n" + METHOD,
        SOFTMAX + "\n\nprint(softmax(np.zeros(2)))",
    ],
)
def test_the_same_passes(source, tiny_library):
    assert drift(made(source)) == []


@pytest.mark.parametrize(
    "source",
    [
        SOFTMAX.replace("# course_lib/f.py\n", ""),
        SOFTMAX.replace("f.py", "g.py"),
        SOFTMAX.replace("axis=-1", "axis=0"),
        SOFTMAX.replace("e / e.sum(axis=axis", "e / e.sum(axis=-1"),
        SOFTMAX.replace("def softmax", "@cache\ndef softmax"),
        SOFTMAX.replace("softmax", "soft_max"),
        SOFTMAX + "\n    return e",
        METHOD.replace("def backward", "def forward"),
        METHOD.replace("step", "stop"),
        METHOD.replace("Tensor.backward", "Tensor.forward"),
        "# course_lib/f.py\n" + CLASS.replace("    @property\n", ""),
        "# course_lib/f.py\n" + CLASS[: CLASS.index("    @property")],
        "# course_lib/f.py\nx = 1",
        "# course_lib/f.py\ndef softmax(x:",
    ],
)
def test_a_difference_is_seen(source, tiny_library):
    assert drift(made(source)) != []


def test_unmarked_copies_are_seen(tiny_library):
    assert unmarked(made(SOFTMAX)) == unmarked(made("%matplotlib inline\n" + SOFTMAX)) == ["softmax"]
    assert unmarked(made(SOFTMAX, "variant")) == unmarked(made(SOFTMAX, "teaches")) == unmarked(made(METHOD)) == []
