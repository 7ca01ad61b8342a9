"""Exercise of notebook 06: LayerNorm backward. The letters are those of the page: g, n, s = 1/√(σ² + ε)."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import layer_norm as library_layer_norm
from .cases import arrays
from .exercise import Mistake, exercise


def _right(x, gain, grad):
    x = Tensor(x, requires_grad=True)
    library_layer_norm(x, Tensor(gain), Tensor(np.zeros_like(gain)), 1e-5).backward(grad)
    return x.grad


def _pieces(x, gain, grad, axis=-1, along=-1, e=1e-5, mean=np.mean):
    """g, n, s of the formula, mean(g) and mean(g n): statistics of x over ``axis``, means of g over ``along``."""
    s = 1 / np.sqrt(x.var(axis=axis, keepdims=True) + e)
    g, n = grad * gain, (x - x.mean(axis=axis, keepdims=True)) * s
    return g, n, s, mean(g, axis=along, keepdims=True), mean(g * n, axis=along, keepdims=True)


def _with(formula=lambda g, n, s, by_mean, by_n: s * (g - by_mean - n * by_n), **changes):
    """A wrong answer: another ``formula`` of the pieces, or other pieces."""
    return lambda *arguments: formula(*_pieces(*arguments, **changes))


_TIME = "the axis of the means: in (B, T, C) axis=1 is time, and the channels are the last, axis=-1"
_EVERYTHING = "the means are over everything: each position is on its own, axis=-1"
_SIGN = "the signs: dx = s (g - mean(g) - n mean(g n)), both terms are taken off"


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
        "Write n = (x - μ) · s with s = 1 / √(σ² + ε), as the page does. The page's g arrives at n, and here the gain"
        " stands between: g = grad · gain.",
        "If μ and s were constants, the gradient of x would be s · g. Two terms are missing: one for μ, one for s.",
        "dx = s · (g - mean(g) - n · mean(g · n)), both means over the last axis, with g = grad · gain.",
    ),
    next_thought="Add up dx of one position: what comes out, and why must it? (Move all of x by the same number.)",
    cases=lambda: (
        [arrays(0, (2, 4), (4,), (2, 4)), arrays(1, (2, 3, 5), (5,), (2, 3, 5))]
        + [arrays(2, (2, 6), (6,), (2, 6), dtype="float32")]
    ),
    right=_right,
    forbids=("layer_norm", "LayerNorm", "native_layer_norm", "backward", "autograd"),
    mistakes=(
        Mistake(
            "mean and variance are treated as constants: x moves them, too",
            _with(lambda g, n, s, by_mean, by_n: s * g),
        ),
        Mistake(
            "the term of the variance is missing: n · mean(g · n)",
            _with(lambda g, n, s, by_mean, by_n: s * (g - by_mean)),
        ),
        Mistake(
            "the term of the mean is missing: mean(g)",
            _with(lambda g, n, s, by_mean, by_n: s * (g - n * by_n)),
        ),
        Mistake(
            "the n in front of mean(g · n) is missing: each number gets its own share",
            _with(lambda g, n, s, by_mean, by_n: s * (g - by_mean - by_n)),
        ),
        Mistake(_SIGN, _with(lambda g, n, s, by_mean, by_n: s * (g + by_mean + n * by_n))),
        Mistake(_SIGN, _with(lambda g, n, s, by_mean, by_n: s * (g - by_mean + n * by_n))),
        Mistake(_SIGN, _with(lambda g, n, s, by_mean, by_n: s * (g + by_mean - n * by_n))),
        Mistake(_SIGN, _with(lambda g, n, s, by_mean, by_n: -s * (g - by_mean - n * by_n))),
        Mistake(
            "`gain` is missing: g, the gradient of n, is grad · gain",
            lambda x, gain, grad: _right(x, gain * 0 + 1, grad),
        ),
        Mistake(
            "`gain` comes too late: it belongs into g = grad · gain, before the means are taken",
            lambda x, gain, grad: _right(x, gain * 0 + 1, grad) * gain,
        ),
        Mistake(
            "the factor s is missing: s = 1 / √(σ² + ε)",
            _with(lambda g, n, s, by_mean, by_n: g - by_mean - n * by_n),
        ),
        Mistake(
            "divided by s, which is 1 / √(σ² + ε) already: times s",
            _with(lambda g, n, s, by_mean, by_n: (g - by_mean - n * by_n) / s),
        ),
        Mistake("the ε is missing: s = 1 / √(σ² + ε), ε = 1e-5", _with(e=0)),
        Mistake("the means of g and of g · n are over the last axis; these are sums", _with(mean=np.sum)),
        Mistake(_EVERYTHING, _with(along=None)),
        Mistake(_EVERYTHING, _with(axis=None, along=None)),
        Mistake("the means are over the wrong axis: each position is on its own, axis=-1", _with(along=0)),
        Mistake("the means are over the wrong axis: each position is on its own, axis=-1", _with(axis=0, along=0)),
        Mistake(_TIME, _with(axis=1, along=1)),
        Mistake(_TIME, _with(along=1)),
        Mistake(_TIME, _with(axis=1)),
    ),
)
def layer_norm_backward(x, gain, grad):
    """The gradient of x (..., C), given that of (x - μ) / √(σ² + 1e-5) · gain + bias: (..., C)."""
    s = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)  # (..., 1)
    n = (x - x.mean(axis=-1, keepdims=True)) * s
    g = grad * gain  # the gradient of n
    by_mean = g.mean(axis=-1, keepdims=True)
    by_variance = n * (g * n).mean(axis=-1, keepdims=True)
    return s * (g - by_mean - by_variance)
