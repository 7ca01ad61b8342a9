"""What the tests of the tracks share: both tracks behind one face, and what counts as the same numbers."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch

torch.set_num_threads(1)  # the tensors here are tiny: more threads only get in each other's way

ROOT = Path(__file__).resolve().parents[1]


class Track:
    """One track: its modules under short names, and how to make and read its tensors."""

    def __init__(self, name):
        self.name = name
        for file in ("tensor", "functional", "modules", "models", "optim"):
            setattr(self, file, importlib.import_module(f"course_lib.{name}_track.{file}"))
        self.F = self.functional

    def leaf(self, array, dtype="float64"):
        """A trained tensor made from a copy of ``array``."""
        return self.tensor.Parameter(np.array(array, dtype))

    def constant(self, array, dtype="float64"):
        """A tensor without a gradient, made from a copy of ``array``."""
        return self.tensor.from_numpy(np.array(array, dtype))

    def project(self, out, r):
        """``(out · r).sum()``: one number whose gradient reaches every number of ``out`` with another weight."""
        return (out * self.constant(r, str(out.dtype).removeprefix("torch."))).sum()

    def __repr__(self):
        return self.name


NUMPY, TORCH = Track("numpy"), Track("torch")
both_tracks = pytest.mark.parametrize("track", [NUMPY, TORCH], ids=str)


def array(tensor):
    """The numbers of a tensor of either track, or of an array, as an array."""
    if isinstance(tensor, torch.Tensor):
        return tensor.detach().numpy()
    return np.asarray(getattr(tensor, "data", tensor))


def grad(tensor):
    """The gradient of a tensor of either track as an array; it must be there, in the tensor's shape and precision."""
    assert tensor.grad is not None, "no gradient arrived"
    found = array(tensor.grad)
    assert found.shape == tuple(tensor.shape) and found.dtype == array(tensor).dtype, (found.shape, found.dtype)
    return found


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def give(parameters, grads):
    """Give each parameter its gradient, as the first backward after ``zero_grad`` would."""
    for p, g in zip(parameters, grads, strict=True):
        full = np.broadcast_to(np.asarray(g, array(p).dtype), tuple(p.shape)).copy()
        p.grad = torch.from_numpy(full) if isinstance(p, torch.Tensor) else full


def assert_same(mine, other, what=""):
    """Shape and precision equal; in float64 |a - b| ≤ 1e-10 max|b| + 1e-12, in float32 ≤ 1e-4 max|b|."""
    mine, other = array(mine), array(other)
    assert (mine.shape, mine.dtype) == (other.shape, other.dtype), (
        what, mine.shape, mine.dtype, other.shape, other.dtype,
    )  # fmt: skip
    largest = np.abs(other).max(initial=0)
    limit = 1e-10 * largest + 1e-12 if mine.dtype == np.float64 else 1e-4 * largest
    assert np.isfinite(other).all() and np.isfinite(mine).all(), f"{what}: not finite"
    worst = np.abs(mine - other).max(initial=0)
    assert worst <= limit, f"{what}: differs by {worst:.3g} of at most {largest:.3g}, allowed {limit:.3g}"


def assert_states_equal(one, other):
    """Two state_dicts: names and every bit."""
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def assert_parameters_agree(mine, other):
    """Two models of the same shape: names, values, and the gradient of every parameter.

    Softmax takes no notice of a key bias, so its gradient is 0, and in float32 nothing but rounding: there it must be
    small beside that of the key's matrix.
    """
    one, two = dict(mine.named_parameters()), dict(other.named_parameters())
    assert list(one) == list(two)
    for name in one:
        if name.endswith("key.bias") and array(one[name]).dtype == np.float32:
            limit = 1e-4 * np.abs(grad(one[name.replace("bias", "weight")])).max()
            assert max(np.abs(grad(model[name])).max() for model in (one, two)) <= limit, name
        else:
            assert_same(grad(one[name]), grad(two[name]), f"gradient of {name}")
        assert_same(one[name], two[name], name)


def assert_close(mine, expected, tolerance=1e-5):
    """Values from a page or worked out by hand: shape first, then |a - b| ≤ ``tolerance``."""
    mine, expected = array(mine), np.asarray(expected)
    assert mine.shape == expected.shape, (mine.shape, expected.shape)
    np.testing.assert_allclose(mine, expected, rtol=0, atol=tolerance)
