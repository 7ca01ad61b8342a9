"""Exercises of notebook 03: attention without loops, and a projection that adds nothing."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import attention as library_attention
from .cases import arrays
from .exercise import Mistake, exercise


def _right(query, key, value):
    context, weights = library_attention(Tensor(query), Tensor(key), Tensor(value))
    return context.data, np.asarray(weights)


def _mix(query, key, value, scale=None, axis=-1):
    """Attention with another scale, or with shares along another axis."""
    scores = query @ key.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    exps = np.exp(scores - scores.max(axis=axis, keepdims=True))
    weights = exps / exps.sum(axis=axis, keepdims=True)
    return weights @ value, weights


@exercise(
    "03.3",
    "Attention without loops",
    minutes=15,
    difficulty="middle",
    task="""
Every query is compared with every key: scores = query keyᵀ / √D. Softmax along each row makes weights of them, and
context = weights value. Return the pair (context, weights). There may be a batch in front: (B, T, D).
""",
    hints=(
        "All dot products at once are one matrix product. key.T would turn round a batch, too: swapaxes(-1, -2).",
        "Row i holds the scores of query i. Softmax along the keys, the last axis; take off the largest score first.",
        "weights @ value mixes the values: (T, S) @ (S, E) → (T, E).",
    ),
    next_thought="Where in these lines does the *order* of the words play a part?",
    cases=lambda: [
        arrays(0, (3, 3), (3, 3), (3, 3)),
        arrays(1, (2, 4), (3, 4), (3, 5)),
        arrays(2, (2, 3, 4), (2, 3, 4), (2, 3, 4)),
        arrays(3, (2, 3), (4, 3), (4, 2), dtype="float32"),
        tuple(x * 100 for x in arrays(4, (2, 3), (4, 3), (4, 2))),
    ],
    right=_right,
    forbids=("attention", "softmax", "softmax_allowed", "scaled_dot_product_attention"),
    mistakes=(
        Mistake("the scale is missing: divide the scores by √D", lambda q, k, v: _mix(q, k, v, 1)),
        Mistake("divided by D: the scale is its root, √D", lambda q, k, v: _mix(q, k, v, 1 / q.shape[-1])),
        Mistake("multiplied by √D: divide by it", lambda q, k, v: _mix(q, k, v, math.sqrt(q.shape[-1]))),
        Mistake(
            "softmax goes down the columns: each *query* shares out its attention, along its row",
            lambda q, k, v: _mix(q, k, v, axis=-2),
            lambda got, want, case: np.allclose(got[1].sum(axis=-2), 1),
        ),
        Mistake("keys and values are exchanged", lambda q, k, v: _mix(q, v, k)),
        Mistake("queries and keys are exchanged: rows are queries", lambda q, k, v: _mix(k, q, v)),
        Mistake("weights came first: return (context, weights)", lambda q, k, v: _right(q, k, v)[::-1]),
        Mistake(
            "the scores are not turned into weights: softmax them",
            lambda q, k, v: (
                q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) @ v,
                q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]),
            ),
        ),
        Mistake(
            "`exp` overflows: take off the largest score of each row first",
            when=lambda got, want, case: np.abs(case[0]).max() > 50 and np.isnan(got[1]).any(),
        ),
    ),
)
def attention(query, key, value):
    """query (..., T, D), key (..., S, D), value (..., S, E) → context (..., T, E) and weights (..., T, S)."""
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])  # (..., T, S)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)  # every row sums to 1
    return weights @ value, weights


def _right_fold(W1, b1, W2, b2):
    """Without a rule: where do 0 and each unit vector go through both layers?"""
    nothing, units = np.zeros(len(W1), W1.dtype), np.eye(len(W1), dtype=W1.dtype)
    bias, moved = ((x @ W1 + b1) @ W2 + b2 for x in (nothing, units))
    return moved - bias, bias


@exercise(
    "03.6",
    "Fold the projection away",
    minutes=12,
    difficulty="middle",
    task="""
In the first GPT nothing bends between the output projection (W1, b1) and the next matrix (W2, b2). Find the *one*
matrix W and bias b that do the work of both: (x W1 + b1) W2 + b2 = x W + b for every x.
""",
    hints=(
        "Multiply out: x W1 W2 + b1 W2 + b2.",
        "What stands behind x is W. All the rest, which has no x, is b.",
    ),
    next_thought="Take the projection out of the first GPT and train: does the loss change? What could a bend do?",
    cases=lambda: [
        arrays(0, (3, 3), (3,), (3, 3), (3,)),
        arrays(1, (2, 4), (4,), (4, 3), (3,)),
        arrays(2, (3, 2), (2,), (2, 2), (2,), dtype="float32"),
    ],
    right=_right_fold,
    mistakes=(
        Mistake(
            "the order of the factors: x meets W1 first, so W is W1 W2",
            lambda W1, b1, W2, b2: (W2 @ W1, b1 @ W2 + b2),
        ),
        Mistake("`b1` goes through W2, too: b is b1 W2 + b2", lambda W1, b1, W2, b2: (W1 @ W2, b1 + b2)),
        Mistake("`b1` is missing: it goes through W2", lambda W1, b1, W2, b2: (W1 @ W2, b2)),
        Mistake("`b2` is missing", lambda W1, b1, W2, b2: (W1 @ W2, b1 @ W2)),
        Mistake(
            "number by number, and two layers in a row are a matrix product", lambda W1, b1, W2, b2: (W1 * W2, b1 * b2)
        ),
        Mistake("added: two layers in a row are a matrix product", lambda W1, b1, W2, b2: (W1 + W2, b1 + b2)),
    ),
)
def fold(W1, b1, W2, b2):
    """One layer for two: W1 (n, k), b1 (k,), W2 (k, m), b2 (m,) → W (n, m) and b (m,)."""
    return W1 @ W2, b1 @ W2 + b2
