"""Exercise of notebook 04: softmax over the allowed cells only."""

import numpy as np

from ..numpy_track import functional as F
from .cases import arrays
from .exercise import Mistake, exercise

_LOWER = np.tril(np.ones((3, 3), dtype=bool))
_EMPTY = np.array([[True, True, False], [False, False, False]])


def _softmax(scores):
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def _with(hidden):
    """Softmax with this number in place of hidden scores."""
    return lambda scores, allow: _softmax(np.where(allow, scores, np.array(hidden, scores.dtype)))


@exercise(
    "04.4",
    "Softmax with a mask",
    minutes=15,
    difficulty="middle",
    task="""
Make weights of the scores (..., T, S), but only of the cells where `allow` is True: hidden cells get exactly 0, and the
allowed ones of each row sum to 1. A row that may look at nothing gets zeros. Leave `scores` as it is.
""",
    hints=(
        "np.where(allow, scores, -np.inf) is a new array, in which exp makes 0 of every hidden cell.",
        "Take off the largest *allowed* score of each row. In a row with nothing allowed it is -∞, and -∞ - (-∞) is"
        " nan: raise it to a number with np.maximum(top, np.finfo(scores.dtype).min).",
        "The largest exp of a row is 1, so its sum is at least 1: np.maximum(total, 1) changes only the empty rows.",
    ),
    next_thought="With -10⁹ in place of -∞, what would the row that may look at nothing do?",
    cases=lambda: [
        (*arrays(0, (3, 3)), _LOWER),
        (*arrays(1, (2, 3, 3)), _LOWER),
        (*arrays(2, (2, 3)), _EMPTY),
        (np.array([[0.0, 900.0, 800.0], [-900.0, 3.0, 5.0], [800.0, 801.0, 3.0]]), _LOWER),
        (*arrays(3, (2, 3), dtype="float32"), _EMPTY),
    ],
    right=F.softmax_allowed,
    forbids=("softmax", "softmax_allowed"),
    mistakes=(
        Mistake(
            "the mask comes after softmax: the rows do not sum to 1 any more. Hide the scores first",
            lambda scores, allow: _softmax(scores) * allow,
        ),
        Mistake(
            "True and False are exchanged: True means “may look”",
            lambda scores, allow: F.softmax_allowed(scores, ~allow),
        ),
        Mistake("hidden scores became 0, and exp(0) is 1: make them -∞", _with(0.0)),
        Mistake("the mask was not used", lambda scores, allow: _softmax(scores)),
        Mistake("a row with nothing allowed becomes 0 / 0: it should be zeros", _with(-np.inf)),
        Mistake("a row with nothing allowed looks at everything: it should be zeros", _with(-1e9)),
        Mistake(
            "a hidden score takes part in the maximum, and exp of the allowed ones becomes 0: hide first",
            lambda scores, allow: _softmax(scores) * allow / (_softmax(scores) * allow).sum(axis=-1, keepdims=True),
            lambda got, want, case: np.isnan(got[..., 1, :]).any() and np.abs(case[0]).max() > 100,
        ),
        Mistake(
            "shares of the wrong axis: each row sums to 1",
            lambda scores, allow: F.softmax_allowed(
                scores.swapaxes(-1, -2), np.broadcast_to(allow, scores.shape).swapaxes(-1, -2)
            ).swapaxes(-1, -2),
        ),
    ),
)
def masked_softmax(scores, allow):
    """Softmax over the last axis, over the allowed cells only: (..., T, S) → (..., T, S)."""
    scores = np.where(allow, scores, -np.inf)
    top = np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(scores.dtype).min)
    exps = np.exp(scores - top)  # 0 where hidden
    return exps / np.maximum(exps.sum(axis=-1, keepdims=True), 1)
