"""The same expression in both tracks: the same result and the same gradients, or a refusal by both."""

import copy
import math
import operator
import pickle
import re

import numpy as np
import pytest
from track_tools import NUMPY, TORCH, array, assert_same, grad

from course_lib.numpy_track.gradcheck import gradient_check
from course_lib.numpy_track.tensor import Tensor

pytestmark = pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # PyTorch's, for float(s)

DRAWN = np.random.default_rng(1)
LEAVES = {
    "x": DRAWN.standard_normal((2, 3, 4)), "y": DRAWN.standard_normal((2, 3, 4)), "p": 0.5 + DRAWN.random((2, 3, 4)),
    "A": DRAWN.standard_normal((3, 4)), "B": DRAWN.standard_normal((4, 5)), "v": DRAWN.standard_normal(4), "s": 2.25,
    "t": np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0], [0.0, 0.0, -1.0]]),  # equal winners and kinks
}  # fmt: skip
CONSTANTS = {"n": np.arange(4), "m": np.array([[True], [False], [True]])}
OTHERS = {
    "rows": np.array([[0, 2, 2], [2, 1, 2]]), "some": np.array([True, False, True]),
    "copy": copy, "math": math, "np": np, "operator": operator, "pickle": pickle,
}  # fmt: skip

SAME = [
    # arithmetic: both operands, broadcasting, numbers on either side, a tensor that is used twice
    "x + y", "x + 2", "2 + x", "x + A", "x + v", "x + s", "x - y", "x - 2", "2 - x", "x[:1] - A", "x * y", "x * 2",
    "2 * x", "x * x[:, :1]", "x / p", "x / 2", "2 / p", "A / p", "x / x", "-x", "sum([x, x])", "x * x + x",
    "x**2", "x**3", "p**-0.5", "x**0", "x**1", "t**0", "n + 1", "n * n", "-n", "n * 0.5", "n / 2", "n.sum()",
    # matrix products of all ranks
    "v @ v", "v @ B", "A @ v", "A @ B", "x @ B", "x @ v", "A @ x.mT", "v @ x.mT", "x @ y.mT", "x[:1] @ y.mT",
    "x.reshape(2, 1, 3, 4) @ y.mT",
    # one array in, one array out
    "x.exp()", "x.exp().log()", "p.log()", "x.tanh()", "x.sigmoid()", "(x * 50).sigmoid().log()", "p.sqrt()", "x.abs()",
    "abs(x)", "t.abs()", "x.clamp(-0.5, 0.5)", "x.clamp(min=0)", "x.clamp(max=0.3)", "t.clamp(2, 3)", "n.clamp(1, 2)",
    "x.masked_fill(m, 7.0)", "A.masked_fill(m, -math.inf).exp()", "where(m, x, A)", "where(m, x, 0.0)",
    "where(A > 0, 1, A)", "where(m, v, s)",
    # reductions
    "x.sum()", "x.sum(0)", "x.sum(axis=-1, keepdims=True)", "x.sum(axis=(0, -1))", "x.mean()", "x.mean(axis=1)",
    "x.mean(axis=(0, 1), keepdims=True)", "x.var()", "x.var(-1)", "x.var(axis=(0, 2), correction=0, keepdims=True)",
    "x.sum(dim=1, keepdim=True)", "x.mean(dim=-1)", "x.var(dim=1, keepdim=True)", "x.amax(dim=2, keepdim=True)",
    "x.argmax(dim=1)", "x.unsqueeze(dim=1)", "x[:1].squeeze(dim=0)",
    "x.max()", "x.amax()", "x.amax(1)", "x.amax(axis=(0, 1), keepdims=True)", "t.max()", "t.amax(1)",
    # other shapes
    "x.reshape(2, -1)", "x.reshape([4, 6])", "x.reshape((-1,))", "x.view(6, 4)", "x.view(-1)", "x.mT.reshape(6, 4)",
    "x.flatten()", "x.flatten(1)", "x.flatten(0, 1)", "x.flatten(start_dim=-2, end_dim=-1)", "s.flatten()",
    "x.swapaxes(0, 1)", "x.transpose(-1, 0)", "x.permute(2, 0, 1)", "x.permute((-1, 0, 1))", "A.T", "x.mT",
    "x.unsqueeze(0)", "x.unsqueeze(-1)", "x[:1].squeeze()", "x[:1].squeeze(0)", "x.squeeze(0)",
    "x[:1, :1].squeeze((0, 1))", "x.split(2, dim=1)[1]", "x.split(3, -1)[0]", "x.mT.contiguous() * 2",
    "concatenate([A, A * 2, A])", "concatenate([x, y], dim=-2)",
    "concatenate([A, B.T], dim=0)",
    # picking: also the same place twice
    "x[1]", "x[1, 2]", "x[1:]", "x[:, ::2]", "x[..., -1]", "x[None, 1:2]", "A[rows]", "A[rows, 1]", "A[[0, 0, 1]]",
    "A[some]", "A[A > 0]", "v[n]", "[row.sum() for row in A][1]", "[*v][3] * 2",
    # an empty batch
    "x[:0] * 2", "x[:0] @ B", "x[:0].sum(0)", "x[:0].sum()", "x[:0].reshape(0, 12)", "x[:0].flatten(1)", "x[:0].exp()",
    "x[:0].amax(1)", "concatenate([x[:0], y])", "len(x[:0])",
    # plain values
    "float(s)", "int(s)", "f'{s * 1:.2f}'", "f'{s * 1}'", "math.isnan(s)", "s.item()", "float(v[:1])", "bool(s)",
    "bool(s - 2.25)", "A.tolist()", "x.numel()", "x.size()", "x.size(-1)", "x.dim()", "x.ndim", "x.shape", "len(x)",
    "x.argmax()", "x.argmax(-1)", "x.detach().numpy()", "np.asarray(x.detach())", "x.is_leaf", "(x * 1).is_leaf",
    "x.requires_grad",
    # comparisons
    "x == y", "x != 0", "x < y", "x <= 0", "x > A", "x >= 0.5", "bool(x == None)", "bool(x != None)", "x in [x]",
    # the graph
    "x.detach() * y", "(x * 2).detach()", "no_grad()(lambda: x * 2)()", "copy.deepcopy(x) * 2",
    "copy.deepcopy(x).requires_grad", "pickle.loads(pickle.dumps(x))", "Parameter(np.ones(3), requires_grad=False)",
    "isinstance(x, Parameter)", "isinstance(x * 1, Parameter)", "isinstance(copy.deepcopy(x), Parameter)",
    "isinstance(pickle.loads(pickle.dumps(x)), Parameter)", "Parameter(x) * 2", "from_numpy(some).requires_grad",
]  # fmt: skip
REFUSED = [
    "x + v[:3]", "x @ x", "s @ s", "x.reshape(5)", "x.mT.view(24)", "x.permute(0, 1)", "x.permute(0, 0, 1)", "v.mT",
    "x.permute()", "x.flatten(2, 1)", "x.flatten(3)", "x.unsqueeze(9)", "x.squeeze(3)", "x.transpose(0, 3)",
    "x.size(3)", "x.sum(axis=3)", "x.clamp()", "x[:0].amax()", "where(A, A, A)", "A.masked_fill(n, 0.0)", "x[2]",
    "x.nonsense()", "float(v)", "int(x)", "bool(v)", "v.item()", "f'{v:.2f}'", "len(s)", "list(s)", "x.numpy()",
    "np.asarray(x)", "operator.iadd(x, 1)", "operator.imul(x, y)", "copy.deepcopy(x * 2)", "x.backward()",
    "n.sum().backward()", "Parameter(np.arange(3))", "Parameter(np.ones(0))", "from_numpy([1.0])",
]  # fmt: skip
REFUSED_HERE = {  # PyTorch returns something else, or changes the tensor: part of the sentence that says what to write
    "x.max(1)": "amax", "x.max(axis=1)": "amax", "x.T": "mT", "v.T": "two axes", "operator.iadd(x * 2, 1)": "x = x + y",
    "operator.isub(n, 1)": "x = x + y",
}  # fmt: skip
ABOUT_THE_GRAPH = {"operand", "operation", "parents", "topological_order", "retain_grad"}  # in test_autograd


def evaluate(expression, track):
    """(the result of ``expression`` in ``track``, the leaves by name)."""
    leaves = {name: track.leaf(value) for name, value in LEAVES.items()}
    constants = {name: track.tensor.from_numpy(value.copy()) for name, value in CONSTANTS.items()}
    names = {**OTHERS, **vars(track.tensor), **constants, **leaves}
    return eval(expression, names), {
        name: leaf for name, leaf in leaves.items() if re.search(rf"\b{name}\b", expression)
    }


def wants_gradient(value):
    return getattr(value, "requires_grad", False)


def is_leaf(value):
    return getattr(value, "is_leaf", True)


@pytest.mark.parametrize("expression", SAME)
def test_the_same_result_and_the_same_gradients(expression):
    (mine, my_leaves), (other, other_leaves) = (evaluate(expression, track) for track in (NUMPY, TORCH))
    if not hasattr(mine, "dtype"):
        assert type(mine) is type(other) or isinstance(other, tuple)  # a torch.Size is a tuple
        assert mine == other
        return
    if array(mine).dtype.kind != "f":
        assert array(mine).dtype == array(other).dtype
        np.testing.assert_array_equal(array(mine), array(other))
        return
    assert_same(mine, other)
    assert (wants_gradient(mine), is_leaf(mine)) == (wants_gradient(other), is_leaf(other))
    if is_leaf(mine):
        return
    r = DRAWN.standard_normal(tuple(mine.shape))
    for track, result in ((NUMPY, mine), (TORCH, other)):
        track.project(result, r).backward()
    for name, leaf in my_leaves.items():
        assert (leaf.grad is None) == (other_leaves[name].grad is None), name
        if leaf.grad is not None:
            assert_same(grad(leaf), grad(other_leaves[name]), f"gradient of {name}")


@pytest.mark.parametrize("expression", [e for e in SAME if not re.search(r"\bt\b|detach|copy|pickle|Parameter", e)])
def test_the_gradient_is_the_slope(expression):
    result, leaves = evaluate(expression, NUMPY)
    if wants_gradient(result) and not is_leaf(result):
        names = {**OTHERS, **vars(NUMPY.tensor), **leaves}
        names |= {name: NUMPY.tensor.from_numpy(value) for name, value in CONSTANTS.items()}
        assert gradient_check(lambda *_: eval(expression, names), *leaves.values()) < 1e-6


@pytest.mark.parametrize("expression", REFUSED)
def test_a_refusal_by_both(expression):
    for track in (NUMPY, TORCH):
        with pytest.raises(Exception) as caught:
            evaluate(expression, track)
        assert str(caught.value)


@pytest.mark.parametrize("expression", REFUSED_HERE)
def test_what_would_differ_is_refused_with_what_to_write(expression):
    with pytest.raises((TypeError, RuntimeError), match=re.escape(REFUSED_HERE[expression])):
        evaluate(expression, NUMPY)


def test_no_public_name_of_tensor_is_forgotten():
    public = {name for name in dir(Tensor) if not name.startswith("_")} - ABOUT_THE_GRAPH
    every = "\n".join([*SAME, *REFUSED]) + " .data .grad .dtype"  # the last three are in every comparison
    assert {name for name in public if not re.search(rf"\.{name}\b", every)} == set()
