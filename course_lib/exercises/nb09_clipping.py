"""Exercise of notebook 09: clipping."""

import math

import numpy as np

from .cases import arrays
from .exercise import Mistake, exercise


def _length(grads):
    return math.sqrt(sum(float((g * g).sum()) for g in grads))


def _scaled(grads, factor):
    return [g * factor for g in grads]


def _right_clip(grads, max_norm):
    return _scaled(grads, min(1, max_norm / _length(grads))), _length(grads)


@exercise(
    "09.4",
    "Clip by the global norm",
    minutes=12,
    difficulty="middle",
    task="""
`grads` is a list of arrays, the gradient of a whole model. If it is longer than `max_norm`, taken as *one* vector,
scale it to that length. Return the list of new arrays, and the norm before.
""",
    hints=(
        "The norm of one vector is the root of the sum of all squares: over all arrays together.",
        "One factor for all arrays: max_norm / norm. So the direction stays.",
        "If the norm is smaller than max_norm nothing changes.",
    ),
    next_thought="What happens to the direction of the gradient when each array is clipped on its own?",
    cases=lambda: [
        (list(arrays(0, (3, 2), (4,))), 0.5),
        ([np.array([3.0, 0.0]), np.array([[4.0]])], 1.0),
        ([np.array([0.3]), np.array([0.4])], 1.0),
        (list(arrays(1, (2, 2), (3,), dtype="float32")), 0.5),
    ],
    right=_right_clip,
    forbids=("clip_grad_norm", "clip_grad_norm_", "clip_grads_with_norm_"),
    mistakes=(
        Mistake(
            "each array is clipped on its own: the norm is that of all of them as one vector",
            lambda grads, limit: ([_right_clip([g], limit)[0][0] for g in grads], _length(grads)),
        ),
        Mistake(
            "each number is clipped: that turns the gradient. Scale all numbers by one factor",
            lambda grads, limit: ([np.clip(g, -limit, limit) for g in grads], _length(grads)),
        ),
        Mistake(
            "a short gradient is made longer: it should stay as it is",
            lambda grads, limit: (_scaled(grads, limit / _length(grads)), _length(grads)),
        ),
        Mistake(
            "this is the norm after clipping: return the one before",
            lambda grads, limit: (_right_clip(grads, limit)[0], _length(_right_clip(grads, limit)[0])),
        ),
        Mistake(
            "the norms of the arrays are added up: add their squares, and take the root",
            lambda grads, limit: (
                _scaled(grads, min(1, limit / sum(_length([g]) for g in grads))),
                sum(_length([g]) for g in grads),
            ),
        ),
        Mistake(
            "the root is missing: the norm is the root of the sum of squares",
            lambda grads, limit: (_scaled(grads, min(1, limit / _length(grads) ** 2)), _length(grads) ** 2),
        ),
        Mistake("nothing is clipped", lambda grads, limit: (grads, _length(grads))),
    ),
)
def clip_by_norm(grads, max_norm):
    """(the arrays, scaled together so that their norm is at most max_norm; the norm before, a number)."""
    norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
    factor = min(1.0, max_norm / norm)
    return [g * factor for g in grads], norm
