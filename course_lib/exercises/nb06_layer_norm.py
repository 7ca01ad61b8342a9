"""Exercise of notebook 06: LayerNorm forward."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import layer_norm as library_layer_norm
from .cases import arrays
from .exercise import Mistake, exercise


def _right(x, gain, bias, epsilon):
    return library_layer_norm(Tensor(x), Tensor(gain), Tensor(bias), epsilon).data


def _norm(x, e, axis=-1, less=0, centre=True, squares=None, root=lambda variance, e: np.sqrt(variance + e)):
    """x with mean 0 and variance 1, with one thing changed; ``squares`` is what stands in place of the variance."""
    mean = x.mean(axis=axis, keepdims=True)
    variance = x.var(axis=axis, keepdims=True, ddof=less) if squares is None else squares
    return (x - mean if centre else x) / root(variance, e)


def _with(**changes):
    """LayerNorm with one thing changed in ``_norm``."""
    return lambda x, gain, bias, e: _norm(x, e, **changes) * gain + bias


def _mean_square(x):
    return (x * x).mean(axis=-1, keepdims=True)


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
        Mistake("the variance is divided by C - 1; here it is by C", _with(less=1)),
        Mistake("mean and variance over the wrong axis: each position is on its own", _with(axis=0)),
        Mistake(
            "the axis of mean and variance: in (B, T, C) axis=1 is time, and the channels are the last, axis=-1",
            _with(axis=1),
        ),
        Mistake("mean and variance over everything: each position is on its own, axis=-1", _with(axis=None)),
        Mistake("divided by the variance, and not by its root", _with(root=lambda variance, e: variance + e)),
        Mistake(
            "the ε belongs under the root, added to the variance", _with(root=lambda variance, e: np.sqrt(variance) + e)
        ),
        Mistake(
            "the ε is missing: `epsilon` is added to the variance", _with(root=lambda variance, e: np.sqrt(variance))
        ),
        Mistake(
            "the ε is a fixed number in your function: take the argument `epsilon`",
            lambda x, g, b, e: _norm(x, 1e-5) * g + b,
        ),
        Mistake(
            "the standard deviation stands under the root: there belongs the variance, x.var(...)",
            lambda x, g, b, e: _norm(x, e, squares=x.std(-1, keepdims=True)) * g + b,
        ),
        Mistake(
            "the mean of x² stands where the variance belongs: first take the mean off, and then square",
            lambda x, g, b, e: _norm(x, e, squares=_mean_square(x)) * g + b,
        ),
        Mistake(
            "mean and variance need keepdims=True: without it they lie down as a row",
            lambda x, g, b, e: (x - x.mean(-1)) / np.sqrt(x.var(-1) + e) * g + b,
        ),
        Mistake("`gain` is missing", lambda x, g, b, e: _right(x, np.ones_like(g), b, e)),
        Mistake("`bias` is missing", lambda x, g, b, e: _right(x, g, np.zeros_like(b), e)),
        Mistake("`gain` and `bias` are missing", lambda x, g, b, e: _norm(x, e)),
        Mistake(
            "the order: first times `gain`, and then plus `bias`",
            lambda x, g, b, e: (_norm(x, e) + b) * g,
        ),
        Mistake("`gain` and `bias` are exchanged", lambda x, g, b, e: _right(x, b, g, e)),
        Mistake("the mean is not taken off", _with(centre=False)),
        Mistake(
            "that is RMSNorm: the mean is to be taken off, from x and before the squares",
            lambda x, g, b, e: _norm(x, e, centre=False, squares=_mean_square(x)) * g + b,
        ),
    ),
)
def layer_norm(x, gain, bias, epsilon):
    """(x - μ) / √(σ² + ε) · gain + bias over the last axis: (..., C) → (..., C)."""
    mean = x.mean(axis=-1, keepdims=True)  # (..., C) → (..., 1)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gain + bias
