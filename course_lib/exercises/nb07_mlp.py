"""Exercises of notebook 07: the MLP forward, and one detector."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from .cases import arrays
from .exercise import Mistake, exercise, question


def _right(x, W_in, b_in, W_out, b_out):
    x, W_in, b_in, W_out, b_out = map(Tensor, (x, W_in, b_in, W_out, b_out))
    return F.linear(F.relu(F.linear(x, W_in, b_in)), W_out, b_out).data


def _relu(x):
    return np.maximum(x, 0)


@exercise(
    "07.3",
    "MLP forward",
    minutes=8,
    difficulty="easy",
    task="""
Each position on its own goes through a wide layer, a bend and a narrow layer: x (..., C) times W_in plus b_in, then
ReLU, then times W_out plus b_out, back to (..., C).
""",
    hints=(
        "x @ W_in works on the last axis, whatever stands in front of it.",
        "ReLU is np.maximum(..., 0), and it stands between the two matrices.",
    ),
    next_thought="Without the bend the two layers would be one. How wide would that one be?",
    cases=lambda: [
        arrays(0, (3, 4), (4, 4), (4,), (4, 4), (4,)),
        arrays(1, (2, 3, 4), (4, 8), (8,), (8, 4), (4,)),
        arrays(2, (2, 3), (3, 6), (6,), (6, 3), (3,), dtype="float32"),
    ],
    right=_right,
    forbids=("MLP", "FeedForward"),
    mistakes=(
        Mistake("the bend is missing: two layers in a row would be one", lambda x, A, a, B, b: (x @ A + a) @ B + b),
        Mistake(
            "the bend stands at the end, too: the result may be negative",
            lambda x, A, a, B, b: _relu(_right(x, A, a, B, b)),
        ),
        Mistake(
            "the bend stands at the end: it belongs between the two matrices",
            lambda x, A, a, B, b: _relu((x @ A + a) @ B + b),
        ),
        Mistake("the bend stands at the start: first the wide layer", lambda x, A, a, B, b: (_relu(x) @ A + a) @ B + b),
        Mistake("`b_in` comes before the bend", lambda x, A, a, B, b: (_relu(x @ A) + a) @ B + b),
        Mistake("`b_in` is missing", lambda x, A, a, B, b: _relu(x @ A) @ B + b),
        Mistake("`b_out` is missing", lambda x, A, a, B, b: _relu(x @ A + a) @ B),
        Mistake(
            "the residual path is added by the block, not by the MLP", lambda x, A, a, B, b: x + _right(x, A, a, B, b)
        ),
    ),
)
def mlp(x, W_in, b_in, W_out, b_out):
    """relu(x W_in + b_in) W_out + b_out: (..., C) → (..., 4C) → (..., C)."""
    inner = np.maximum(x @ W_in + b_in, 0)  # (..., C) → (..., 4C)
    return inner @ W_out + b_out


detector = question(
    "07.4",
    "One detector",
    minutes=5,
    difficulty="easy",
    task="""
A unit has the pattern (1, -1, 0) and the bias -1, and ReLU behind it. What does it answer to the words (3, 1, 5),
(1, 3, 5) and (2, 1, 0)? Give a list of three numbers.
""",
    hints=(
        "The dot product of pattern and word, plus the bias: for the first word 3 - 1 + 0 - 1.",
        "What is below zero becomes zero.",
    ),
    next_thought="Which words make this unit speak up? What does the minus in its pattern say, and what the bias?",
    value=[1, 0, 0],
    answer="[1, 0, 0]: the sums are 1, -3 and 0, and ReLU cuts off the -3.",
    mistakes=(
        Mistake("what is below zero becomes zero: the bend is missing", [1, -3, 0]),
        Mistake("the bias is missing: take off 1 before the bend", [2, 0, 1]),
        Mistake("the bias is -1: take off 1, do not add it", [3, 0, 2]),
        Mistake("the minus of the pattern is missing: the second number is taken off", [3, 3, 2]),
        Mistake("the bias comes before the bend: 2 - 1 = 1, and -2 - 1 is cut off", [1, -1, 0]),
    ),
)
