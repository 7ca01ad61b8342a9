"""Exercises of notebook 10: one step with a key/value cache, and its size."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import attention as library_attention
from .cases import arrays
from .exercise import Mistake, exercise, question


def _mix(query, keys, values, scale=None):
    """The context of one query (D,)."""
    query, keys, values = (Tensor(np.atleast_2d(x)) for x in (query, keys, values))
    return library_attention(query, keys, values, scale=scale)[0].data[0]


def _right(query, key, value, keys, values):
    keys, values = np.vstack([keys, key]), np.vstack([values, value])
    return _mix(query, keys, values), keys, values


def _other(context=None, keys=None, values=None):
    """The right step with another context, or with other rows in the cache."""

    def step(q, k, v, K, V):
        right = _right(q, k, v, K, V)
        mine = keys(K, k) if keys else right[1], values(V, v) if values else right[2]
        return (context(q, k, v, K, V) if context else _mix(q, *mine)), *mine

    return step


@exercise(
    "10.4",
    "One step with a cache",
    minutes=15,
    difficulty="middle",
    task="""
One head writes its next token. The cache has the `keys` and `values` (S, D) of all earlier positions; `query`, `key`
and `value` (D,) belong to the new one. Return the context of the new position (D,), and the cache with the new row
behind the old ones: (context, keys, values).
""",
    hints=(
        "First the cache: np.vstack([keys, key]) puts the new row behind the others. The same for the values.",
        "The new position may look at itself, so its own key is among those that are compared.",
        "weights = softmax(keys @ query / √D), one number for each of the S + 1 positions; context = weights @ values.",
    ),
    next_thought="Why does nobody keep the old queries? And why would this be wrong without the causal mask?",
    cases=lambda: [
        arrays(0, (4,), (4,), (4,), (3, 4), (3, 4)),
        arrays(1, (3,), (3,), (3,), (1, 3), (1, 3)),
        arrays(2, (2,), (2,), (2,), (0, 2), (0, 2)),
        arrays(3, (2,), (2,), (2,), (4, 2), (4, 2), dtype="float32"),
        tuple(x * 100 for x in arrays(4, (3,), (3,), (3,), (2, 3), (2, 3))),
    ],
    right=_right,
    forbids=("attention", "softmax", "softmax_allowed", "KeyValueCache"),
    mistakes=(
        Mistake(
            "the new position does not look at itself: append its key and value first",
            _other(lambda q, k, v, K, V: _mix(q, K, V)),
        ),
        Mistake(
            "the new rows stand in front: the cache is in the order of the text",
            _other(keys=lambda K, k: np.vstack([k, K]), values=lambda V, v: np.vstack([v, V])),
        ),
        Mistake(
            "the last row was replaced: the new one comes behind it",
            _other(keys=lambda K, k: np.vstack([K[:-1], k]), values=lambda V, v: np.vstack([V[:-1], v])),
        ),
        Mistake(
            "the new row is not in the cache that comes back", lambda q, k, v, K, V: (_right(q, k, v, K, V)[0], K, V)
        ),
        Mistake(
            "the scale is missing: divide the scores by √D",
            _other(lambda q, k, v, K, V: _mix(q, *_right(q, k, v, K, V)[1:], 1)),
        ),
        Mistake("keys and values are exchanged", _other(lambda q, k, v, K, V: _mix(q, *_right(q, k, v, K, V)[:0:-1]))),
        Mistake(
            "the key is no query: compare `query` with the keys",
            _other(lambda q, k, v, K, V: _mix(k, *_right(q, k, v, K, V)[1:])),
        ),
        Mistake(
            "`exp` overflows: take off the largest score first",
            when=lambda got, want, case: np.isnan(got[0]).any(),
        ),
    ),
)
def cache_step(query, key, value, keys, values):
    """The context of a new position, and the cache with it: (D,), (S + 1, D), (S + 1, D)."""
    keys, values = np.vstack([keys, key]), np.vstack([values, value])  # (S, D) → (S + 1, D)
    scores = keys @ query / math.sqrt(len(query))  # (S + 1,)
    exps = np.exp(scores - scores.max())
    return exps / exps.sum() @ values, keys, values


cache_size = question(
    "10.5",
    "How large is a cache?",
    minutes=5,
    difficulty="easy",
    task="""
GPT-2 (12 layers, 12 heads, width 768) has written 1,024 tokens. How many numbers does its key/value cache hold, and how
many megabytes (a million bytes) is that in float32? Give a list of two numbers, the second with one decimal.
""",
    hints=(
        "Each layer keeps a key and a value for each position. All heads together have C numbers for each.",
        "A float32 has four bytes.",
    ),
    next_thought="GPT-2 has 124 million weights. How many texts at once make the cache larger than these?",
    value=[2 * 12 * 1024 * 768, 75.5],
    digits=1,
    answer="[18874368, 75.5]: 2 · 12 · 1024 · 768 numbers of four bytes.",
    mistakes=(
        Mistake("keys *and* values: two for each position", when=lambda got, want, case: got[0] == want[0] / 2),
        Mistake(
            "that is one layer: each of the twelve has its own", when=lambda got, want, case: got[0] == want[0] / 12
        ),
        Mistake(
            "the heads share the width: all of them together have 768 numbers",
            when=lambda got, want, case: got[0] == want[0] * 12,
        ),
        Mistake("a float32 has four bytes, not eight", when=lambda got, want, case: abs(got[1] - 151) < 0.1),
        Mistake("each number has four bytes", when=lambda got, want, case: abs(got[1] - 18.9) < 0.1),
        Mistake("here a megabyte is a million bytes, not 1024²", when=lambda got, want, case: abs(got[1] - 72) < 0.1),
    ),
)
