"""Exercises of notebook 06: LayerNorm forward and backward."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import layer_norm as library_layer_norm
from .cases import arrays
from .exercise import Mistake, exercise


def _right(x, gain, bias, epsilon):
    return library_layer_norm(Tensor(x), Tensor(gain), Tensor(bias), epsilon).data


def _norm(x, axis=-1, **keywords):
    """x with mean 0 and deviation 1 along an axis, and the deviation."""
    deviation = np.sqrt(x.var(axis=axis, keepdims=True, **keywords) + 1e-5)
    return (x - x.mean(axis=axis, keepdims=True)) / deviation, deviation


@exercise(
    "06.1",
    "LayerNorm forward",
    minutes=12,
    difficulty="middle",
    task="""
Bring each position's C numbers to mean 0 and variance 1, then stretch them by `gain` and move them by `bias`:
(x - μ) / √(σ² + ε) · gain + bias. μ and σ² are over the last axis, σ² divided by C.
""",
    hints=(
        "x.mean(axis=-1, keepdims=True) is one mean for each position, ready to be subtracted.",
        "The variance is the mean of the squared distances from the mean: x.var(axis=-1, keepdims=True).",
        "ε is added to the variance, under the root.",
    ),
    next_thought="What does LayerNorm give when all numbers of a position are equal? What is ε for?",
    cases=lambda: [
        (*arrays(0, (4, 4), (4,), (4,)), 1e-5),
        (*arrays(1, (2, 3, 5), (5,), (5,)), 1e-5),
        (*arrays(2, (2, 6), (6,), (6,)), 0.5),
        (*arrays(3, (2, 3, 4), (4,), (4,), dtype="float32"), 1e-5),
    ],
    right=_right,
    forbids=("layer_norm", "LayerNorm", "native_layer_norm"),
    mistakes=(
        Mistake("the variance is divided by C - 1; here it is by C", lambda x, g, b, e: _norm(x, ddof=1)[0] * g + b),
        Mistake(
            "mean and variance over the wrong axis: each position is on its own",
            lambda x, g, b, e: _norm(x, 0)[0] * g + b,
        ),
        Mistake(
            "mean and variance over everything: each position is on its own, axis=-1",
            lambda x, g, b, e: _norm(x, None)[0] * g + b,
        ),
        Mistake(
            "divided by the variance, and not by its root",
            lambda x, g, b, e: (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + e) * g + b,
        ),
        Mistake(
            "the ε belongs under the root, added to the variance",
            lambda x, g, b, e: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + e) * g + b,
        ),
        Mistake(
            "mean and variance need keepdims=True: without it they lie down as a row",
            lambda x, g, b, e: (x - x.mean(-1)) / np.sqrt(x.var(-1) + e) * g + b,
        ),
        Mistake("`gain` is missing", lambda x, g, b, e: _right(x, np.ones_like(g), b, e)),
        Mistake("`bias` is missing", lambda x, g, b, e: _right(x, g, np.zeros_like(b), e)),
        Mistake("the mean is not taken off", lambda x, g, b, e: x / np.sqrt(x.var(-1, keepdims=True) + e) * g + b),
    ),
)
def layer_norm(x, gain, bias, epsilon):
    """(x - μ) / √(σ² + ε) · gain + bias over the last axis: (..., C) → (..., C)."""
    mean = x.mean(axis=-1, keepdims=True)  # (..., C) → (..., 1)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gain + bias


def _right_backward(x, gain, grad):
    x = Tensor(x, requires_grad=True)
    library_layer_norm(x, Tensor(gain), Tensor(np.zeros_like(gain)), 1e-5).backward(grad)
    return x.grad


def _pieces(x, gain, grad):
    """n, h, mean(h) and mean(h n) of the formula, and the deviation."""
    n, deviation = _norm(x)
    h = grad * gain
    return n, h, h.mean(axis=-1, keepdims=True), (h * n).mean(axis=-1, keepdims=True), deviation


@exercise(
    "06.2",
    "LayerNorm backward",
    minutes=25,
    difficulty="harder",
    task="""
Given the gradient of LayerNorm's result, write the gradient of `x` (ε = 1e-5). Moving one number of a position moves
its mean and its variance, so it moves *all* numbers of that position.
""",
    hints=(
        "Write n = (x - μ) / s with s = √(σ² + ε), and h = grad · gain: that is the gradient of n.",
        "If μ and s were constants, the gradient of x would be h / s. Two terms are missing: one for μ, one for s.",
        "dx = (h - mean(h) - n · mean(h · n)) / s, both means over the last axis.",
    ),
    next_thought="Add up dx of one position: what comes out, and why must it? (Move all of x by the same number.)",
    cases=lambda: (
        [arrays(0, (2, 4), (4,), (2, 4)), arrays(1, (2, 3, 5), (5,), (2, 3, 5))]
        + [arrays(2, (2, 6), (6,), (2, 6), dtype="float32")]
    ),
    right=_right_backward,
    forbids=("layer_norm", "LayerNorm", "native_layer_norm", "backward", "autograd"),
    mistakes=(
        Mistake(
            "mean and variance are treated as constants: x moves them, too",
            lambda *a: (lambda n, h, mean, along, s: h / s)(*_pieces(*a)),
        ),
        Mistake(
            "the term of the variance is missing: n · mean(h · n)",
            lambda *a: (lambda n, h, mean, along, s: (h - mean) / s)(*_pieces(*a)),
        ),
        Mistake(
            "the term of the mean is missing: mean(h)",
            lambda *a: (lambda n, h, mean, along, s: (h - n * along) / s)(*_pieces(*a)),
        ),
        Mistake(
            "`gain` is missing: the gradient of n is grad · gain",
            lambda x, gain, grad: _right_backward(x, gain * 0 + 1, grad),
        ),
        Mistake(
            "the deviation is missing: divide by √(σ² + ε)",
            lambda *a: (lambda n, h, mean, along, s: h - mean - n * along)(*_pieces(*a)),
        ),
        Mistake(
            "the means of h and of h · n are over the last axis; these are sums",
            lambda *a: (lambda n, h, mean, along, s: (h - n.shape[-1] * (mean + n * along)) / s)(*_pieces(*a)),
        ),
        Mistake(
            "the means are over everything: each position is on its own, axis=-1",
            lambda *a: (lambda n, h, mean, along, s: (h - h.mean() - n * (h * n).mean()) / s)(*_pieces(*a)),
        ),
    ),
)
def layer_norm_backward(x, gain, grad):
    """The gradient of x (..., C), given that of (x - μ) / √(σ² + 1e-5) · gain + bias: (..., C)."""
    scale = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)  # (..., 1)
    normed = (x - x.mean(axis=-1, keepdims=True)) * scale
    h = grad * gain  # the gradient of normed
    by_mean = h.mean(axis=-1, keepdims=True)
    by_scale = normed * (h * normed).mean(axis=-1, keepdims=True)
    return (h - by_mean - by_scale) * scale
