"""The two tracks are twins: `diff course_lib/numpy_track/X.py course_lib/torch_track/X.py` shows what really differs.

Same files; in each the same public names; of each class the same methods and the same attributes set by __init__, in
the same order; of each function the same parameters in the same order with the same defaults. Read as syntax trees:
nothing is imported.
"""

import ast
import copy

import pytest

from tools import notebook

TRACKS = ("numpy_track", "torch_track")

ONE_TRACK_ONLY = {  # file, or file: name -> why it has no twin
    "conveniences.py": "torch.Tensor has all of it",
    "gradcheck.py": "PyTorch brings its own (torch.autograd.gradcheck); the tests use it as the baseline",
    "tensor.py: tracked": "how an operation joins the graph: the inside of autograd, which PyTorch keeps to itself",
    "tensor.py: unbroadcast": "the inside of autograd",
}
NOT_ALIKE = {  # file: name -> why what stands behind the name is not compared
    "tensor.py: Tensor": "in track two torch.Tensor itself; what the tracks need of it is tested by use",
    "tensor.py: no_grad": "in track two torch.no_grad itself",
    "tensor.py: Parameter": "in track two made from torch.nn.Parameter; what the tracks need of it is tested by use",
}
KINDS = {"property", "staticmethod", "classmethod", "contextmanager", "dataclass"}


def functions_and_classes(body):
    return {n.name: n for n in body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}


def public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def parameters(node):
    """'x, axis=-1, *, allow=None', without annotations."""
    args = copy.deepcopy(node.args)
    for arg in ast.walk(args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return ast.unparse(args)


def kinds(node):
    names = (ast.unparse(d.func if isinstance(d, ast.Call) else d).split(".")[-1] for d in node.decorator_list)
    return sorted(KINDS.intersection(names))


def attributes(cls):
    """The names that __init__ sets on self, in order; the fields of a dataclass with their defaults."""
    fields = [
        f"{ast.unparse(n.target)} = {ast.unparse(n.value)}" if n.value else ast.unparse(n.target)
        for n in cls.body
        if isinstance(n, ast.AnnAssign)
    ]
    init = functions_and_classes(cls.body).get("__init__")
    stores = (
        []
        if init is None
        else [
            n
            for n in ast.walk(init)
            if isinstance(n, ast.Attribute)
            and isinstance(n.ctx, ast.Store)
            and isinstance(n.value, ast.Name)
            and n.value.id == "self"
        ]
    )
    stores.sort(key=lambda n: (n.lineno, n.col_offset))
    return fields, list(dict.fromkeys(n.attr for n in stores))


def names(tree):
    """Public names of a file: functions, classes, what it assigns, and what it lists in __all__."""
    made = set(functions_and_classes(tree.body))
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            made |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            if "__all__" in made:
                made = (made - {"__all__"}) | set(ast.literal_eval(node.value))
    return {name for name in made if public(name)}


def differences(one, other, file="file.py", where=TRACKS):
    """Sentences about how two files that should be twins are not. `one` and `other` are their sources."""
    trees = [ast.parse(source) for source in (one, other)]
    sides = [functions_and_classes(tree.body) for tree in trees]
    made = [names(tree) for tree in trees]
    for name in sorted(made[0] ^ made[1]):
        if f"{file}: {name}" not in ONE_TRACK_ONLY:
            yield f"{file}: {name} is only in {where[name in made[1]]}"
    for name in sorted(made[0] & made[1]):
        if f"{file}: {name}" in NOT_ALIKE:
            continue
        pair = [side.get(name) for side in sides]
        if type(pair[0]) is not type(pair[1]):
            yield f"{file}: {name} is a definition of another kind in {where[1]} than in {where[0]}"
        elif isinstance(pair[0], ast.ClassDef):
            yield from class_differences(*pair, f"{file}: {name}", where)
        elif pair[0] is not None:
            yield from function_differences(*pair, f"{file}: {name}", where)


def function_differences(one, other, name, where):
    for what, read in (("parameters", parameters), ("decorators", kinds)):
        if (a := read(one)) != (b := read(other)):
            yield f"{name}: {what} differ\n    {where[0]}: {a}\n    {where[1]}: {b}"


def class_differences(one, other, name, where):
    methods = [{k: v for k, v in functions_and_classes(c.body).items() if public(k)} for c in (one, other)]
    for method in sorted(methods[0].keys() ^ methods[1].keys()):
        if f"{name}.{method}" not in ONE_TRACK_ONLY:
            yield f"{name}.{method} is only in {where[method in methods[1]]}"
    for method in sorted(methods[0].keys() & methods[1].keys()):
        if isinstance(methods[0][method], ast.ClassDef) or isinstance(methods[1][method], ast.ClassDef):
            continue
        yield from function_differences(methods[0][method], methods[1][method], f"{name}.{method}", where)
    if kinds(one) != kinds(other):
        yield f"{name}: one of the two is a dataclass"
    if (a := attributes(one)) != (b := attributes(other)):
        yield f"{name}: fields or attributes set by __init__ differ\n    {where[0]}: {a}\n    {where[1]}: {b}"


def files(track):
    folder = notebook.ROOT / "course_lib" / track
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}


SHARED = sorted(files(TRACKS[0]) & files(TRACKS[1]))


def sources(file):
    return [(notebook.ROOT / "course_lib" / track / file).read_text(encoding="utf-8") for track in TRACKS]


def test_same_files():
    only = (files(TRACKS[0]) ^ files(TRACKS[1])) - ONE_TRACK_ONLY.keys()
    assert not only, f"in one track only: {sorted(only)}"


@pytest.mark.parametrize("file", SHARED)
def test_twins(file):
    found = list(differences(*sources(file), file))
    assert not found, "\n" + "\n".join(found)


def test_exceptions_are_needed(monkeypatch):
    """An entry of the two tables that excuses nothing is to go."""
    lonely = files(TRACKS[0]) ^ files(TRACKS[1])
    kept = {**ONE_TRACK_ONLY, **NOT_ALIKE}
    monkeypatch.setitem(globals(), "ONE_TRACK_ONLY", {})
    monkeypatch.setitem(globals(), "NOT_ALIKE", {})
    found = [line for file in SHARED for line in differences(*sources(file), file)]
    there = files(TRACKS[0]) | files(TRACKS[1])
    needed = {e for e in kept if e in lonely or any(line.startswith((f"{e}:", f"{e} ", f"{e}.")) for line in found)}
    idle = sorted(e for e in kept.keys() - needed if e.split(":")[0] in there)
    assert not idle, f"excused, but alike: {idle}"


# ------------------------------------------------------------------ the comparison itself
ONE = """
@dataclass
class Config:
    context: int = 8
    width: int = 32

class Linear(Module):
    def __init__(self, fan_in: int, fan_out, rng, bias=True):
        self.weight = Parameter(normal(rng, (fan_in, fan_out)))
        self.bias, self.cache = None, np.zeros(3)
    def __call__(self, x):
        return x @ self.weight
    @property
    def shape(self):
        return self.weight.data.shape
    def _help(self): ...

def softmax(x, axis=-1, *, out=None) -> Tensor:
    return np.exp(x)

EPSILON = 1e-5
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("np.", "torch."), ("fan_in: int", "fan_in"), ("def _help(self): ...", "pass"), ("normal(rng, ", "uniform(rng, ")],
)
def test_what_may_differ(old, new):
    assert old in ONE
    assert list(differences(ONE, ONE.replace(old, new))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def softmax", "def soft_max"),
        ("axis=-1", "axis=1"),
        ("axis=-1", "dim=-1"),
        ("x, axis=-1", "axis, x=-1"),
        ("*, out", "out"),
        (", bias=True", ""),
        ("self.cache", "self.memory"),
        ("self.bias, self.cache", "self.cache, self.bias"),
        ("def __call__", "def forward"),
        ("    @property\n", ""),
        ("def shape", "def size"),
        ("EPSILON", "EPS"),
        ("width: int = 32", "width: int = 48"),
        ("width: int", "channels: int"),
        ("@dataclass\n", ""),
        ("class Linear(Module):", "def Linear():"),
    ],
)
def test_a_difference_is_seen(old, new):
    assert old in ONE
    assert list(differences(ONE, ONE.replace(old, new))) != []
