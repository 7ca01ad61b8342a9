"""Exercises of notebook 11: positions as waves, and attention whose keys come from another text."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import attention as library_attention
from ..positions import sinusoidal_positions
from .cases import arrays
from .exercise import Mistake, exercise


def _right_table(rows, width):
    return sinusoidal_positions(rows, width, "float64")


def _waves(rows, width, first=0, divisor=None, order=(np.sin, np.cos)):
    """The table with positions from ``first``, with other divisors of the angles, or another order."""
    divisor = 10000 ** (np.arange(0, width, 2) / width) if divisor is None else divisor
    table = np.zeros((rows, width))
    angles = np.arange(first, first + rows)[:, None] / divisor
    table[:, 0::2], table[:, 1::2] = order[0](angles), order[1](angles[:, : width // 2])
    return table


@exercise(
    "11.1",
    "Positions as waves",
    minutes=15,
    difficulty="middle",
    task="""
Make the table of sinusoidal positions (rows, width): column 2i of row p is sin(p / 10000^(2i/width)), column 2i + 1 the
cosine of the same angle. The width may be odd: then the last column is a sine without its cosine.
""",
    hints=(
        "The angles first: a column of positions divided by a row of 10000 ** (np.arange(0, width, 2) / width).",
        "table[:, 0::2] are the even columns, table[:, 1::2] the odd ones.",
        "An odd width has one odd column less: use angles[:, : width // 2] for the cosines.",
    ),
    next_thought="Which column turns round fastest, which one slowest? How far apart are two positions in the last?",
    cases=lambda: [(6, 4), (3, 8), (4, 5), (2, 1)],
    right=_right_table,
    forbids=("sinusoidal_positions",),
    mistakes=(
        Mistake(
            "all sines stand first, then all cosines: they should take turns",
            lambda rows, width: np.concatenate([_right_table(rows, width)[:, i::2] for i in (0, 1)], axis=1),
        ),
        Mistake(
            "sine and cosine are exchanged: row 0 begins 0, 1, 0, 1",
            lambda rows, width: _waves(rows, width, order=(np.cos, np.sin)),
        ),
        Mistake("positions count from 0", lambda rows, width: _waves(rows, width, 1)),
        Mistake(
            "the exponent is 2i / width: with i / width the waves slow down half as fast",
            lambda rows, width: _waves(rows, width, divisor=10000 ** (np.arange((width + 1) // 2) / width)),
        ),
        Mistake(
            "the number 10000 stands to the *power* 2i / width",
            lambda rows, width: _waves(rows, width, divisor=10000 * np.arange(0, width, 2) / width),
        ),
        Mistake(
            "an odd width has one cosine less: angles[:, : width // 2]",
            when=lambda got, want, case: isinstance(got, ValueError) and case[1] % 2 == 1,
        ),
    ),
)
def sinusoids(rows, width):
    """Sine and cosine in turn, slower and slower: (rows, width), float64."""
    table = np.zeros((rows, width))
    angles = np.arange(rows)[:, None] / 10000 ** (np.arange(0, width, 2) / width)  # (rows, half the width)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : width // 2])
    return table


def _mix(q, k, v, scale=None):
    context, weights = library_attention(Tensor(q), Tensor(k), Tensor(v), scale=scale)
    return context.data, np.asarray(weights)


def _columns(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    exps = np.exp(scores - scores.max(axis=0))
    weights = exps / exps.sum(axis=0)
    return weights @ v, weights


@exercise(
    "11.2",
    "Cross-attention",
    minutes=15,
    difficulty="middle",
    task="""
The decoder's `x` (T, C) looks at the encoder's `memory` (S, C). Make queries, keys and values with the three matrices
(C, D), from the right place each, and return (context, weights): softmax(query keyᵀ / √D) and its mixture of the
values. One head, no mask.
""",
    hints=(
        "Who asks? The decoder. Who is looked at? The memory.",
        "query = x @ W_query; key = memory @ W_key; value = memory @ W_value.",
        "The rest is attention as in notebook 03. The weights are (T, S): a row for each word that is written.",
    ),
    next_thought="What must be computed again for each new word of the decoder, and what only once?",
    cases=lambda: [
        arrays(0, (4, 3), (4, 3), (3, 3), (3, 3), (3, 3)),
        arrays(1, (2, 3), (5, 3), (3, 4), (3, 4), (3, 4)),
        arrays(2, (3, 2), (2, 2), (2, 2), (2, 2), (2, 2), dtype="float32"),
        tuple(x * 10 for x in arrays(3, (2, 3), (3, 3), (3, 2), (3, 2), (3, 2))),
    ],
    right=lambda x, memory, Q, K, V: _mix(x @ Q, memory @ K, memory @ V),
    forbids=("attention", "softmax", "softmax_allowed", "scaled_dot_product_attention", "MultiHeadAttention"),
    mistakes=(
        Mistake(
            "queries come from the decoder, `x`", lambda x, memory, Q, K, V: _mix(memory @ Q, memory @ K, memory @ V)
        ),
        Mistake("keys come from the memory", lambda x, memory, Q, K, V: _mix(x @ Q, x @ K, memory @ V)),
        Mistake("values come from the memory", lambda x, memory, Q, K, V: _mix(x @ Q, memory @ K, x @ V)),
        Mistake(
            "that is self-attention: keys and values come from the memory",
            lambda x, memory, Q, K, V: _mix(x @ Q, x @ K, x @ V),
        ),
        Mistake(
            "the two texts are exchanged: `x` asks, and the memory is looked at",
            lambda x, memory, Q, K, V: _mix(memory @ Q, x @ K, x @ V),
        ),
        Mistake(
            "the scale is missing: divide the scores by √D",
            lambda x, memory, Q, K, V: _mix(x @ Q, memory @ K, memory @ V, 1),
        ),
        Mistake(
            "softmax goes down the columns: each *query* shares out its attention, along its row",
            lambda x, memory, Q, K, V: _columns(x @ Q, memory @ K, memory @ V),
        ),
        Mistake(
            "`exp` overflows: take off the largest score of each row first",
            when=lambda got, want, case: np.isnan(got[1]).any(),
        ),
    ),
)
def cross_attention(x, memory, W_query, W_key, W_value):
    """x (T, C) looks at memory (S, C): context (T, D) and weights (T, S)."""
    query, key, value = x @ W_query, memory @ W_key, memory @ W_value  # (T, D), (S, D), (S, D)
    scores = query @ key.T / query.shape[1] ** 0.5  # (T, S)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ value, weights
