"""Exercises of notebook 03: softmax."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import softmax as library_softmax
from .cases import arrays
from .exercise import Mistake, exercise


def _share(x, top=-1, **keywords):
    """Softmax with the largest score along axis ``top`` taken off, and a sum of another kind."""
    exps = np.exp(x - x.max(axis=top, keepdims=True))
    return exps / exps.sum(**keywords)


@exercise(
    "03.1",
    "Softmax that cannot overflow",
    minutes=10,
    difficulty="easy",
    task="""
Turn scores into shares: along the last axis every result is positive and they sum to 1. It must work for scores like
1000, too, where `exp` alone is too large for a float.
""",
    hints=(
        "exp makes everything positive; dividing by the sum along the last axis makes shares of it.",
        "The sum needs keepdims=True, so that each row is divided by its own sum.",
        "Adding the same number to all scores of a row changes nothing. Take off the largest: then exp is at most 1.",
    ),
    next_thought="What does softmax give for a row of equal scores? And when all scores are multiplied by 100?",
    cases=lambda: [
        arrays(0, (3, 3)),
        (np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]),),
        arrays(1, (2, 3, 4)),
        arrays(2, (2, 5), dtype="float32"),
        (np.array([[1000.0, 1001.0], [0.0, 1.0]]),),
        (np.array([[-1000.0, -1001.0], [0.0, 1000.0]]),),
    ],
    right=lambda x: library_softmax(Tensor(x)).data,
    forbids=("softmax", "log_softmax", "logsumexp", "softmax_allowed"),
    mistakes=(
        Mistake(
            "the sum goes over everything: each row must have its own, axis=-1",
            lambda x: _share(x, None),
            lambda got, want, case: want.ndim > 1 and np.isclose(got.sum(), 1),
        ),
        Mistake(
            "the sum goes down the columns: rows are what sums to 1, so axis=-1",
            lambda x: _share(x, 0, axis=0, keepdims=True),
            lambda got, want, case: np.allclose(got.sum(axis=0), 1),
        ),
        Mistake(
            "`axis=1` is the last axis of a matrix only: `axis=-1` is it always",
            lambda x: _share(x, min(1, x.ndim - 1), axis=min(1, x.ndim - 1), keepdims=True),
        ),
        Mistake(
            "without keepdims=True row i is divided by the sum of another row: the sums lie down as a row",
            lambda x: _share(x, axis=-1),
        ),
        Mistake(
            "`exp` overflows (or becomes 0 / 0): take off the largest score of each row first",
            lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
        ),
        Mistake(
            "the largest score of everything is taken off: a row far below it becomes 0 / 0. Each row has its own",
            lambda x: _share(x, None, axis=-1, keepdims=True),
        ),
        Mistake("shares of the scores, not of their exp", lambda x: x / x.sum(axis=-1, keepdims=True)),
        Mistake(
            "not yet divided by the sum",
            lambda x: np.exp(x - x.max(axis=-1, keepdims=True)),
        ),
    ),
)
def softmax(x):
    """Shares along the last axis, exp(x) / Σ exp(x): (..., n) → (..., n)."""
    exps = np.exp(x - x.max(axis=-1, keepdims=True))  # at most exp(0) = 1
    return exps / exps.sum(axis=-1, keepdims=True)
