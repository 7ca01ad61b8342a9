"""Exercises of notebook 03: softmax and attention."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import attention as library_attention
from ..numpy_track import softmax as library_softmax
from .exercise import ATTENTION, SOFTMAX, Mistake, arrays, draws, exercise, question

_LINES = """np.exp(x - x.max(axis=-1, keepdims=True))  # at most exp(0) = 1
    return exps / exps.sum(axis=-1, keepdims=True)"""


_EVERYTHING = "the sum goes over everything: each row must have its own, axis=-1"


_COLUMNS = "the sum goes down the columns: it is the rows that sum to 1, so axis=-1"


@exercise(
    "03.1",
    "Softmax that cannot overflow",
    minutes=10,
    difficulty="easy",
    hints=(
        "exp makes everything positive; dividing by the sum along the last axis turns it into shares.",
        "The sum needs keepdims=True, so that each row is divided by its own sum.",
        "Adding the same number to all scores of a row changes nothing. Subtract the largest: then exp is at most 1.",
    ),
    next_thought="What does softmax give for a row of equal scores? And when all scores are multiplied by 100?",
    cases=lambda: [
        arrays(0, (3, 3)),
        (np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]),),
        arrays(1, (2, 3, 4)),
        arrays(2, (2, 5), dtype="float32"),
        (np.array([[1000.0, 1001.0], [0.0, 1.0]]),),
        (np.array([[-1000.0, -1001.0], [0.0, 1000.0]]),),
        (np.array([[1000.0, 0.0, 0.0, 0.0]]),),
    ],
    more=draws("...n", turns=9, scales=(1, 1e3)),
    right=lambda x: library_softmax(Tensor(x)).data,
    forbids=SOFTMAX,
    mistakes=(
        Mistake(_EVERYTHING, "exps.sum(axis=-1, keepdims=True)", "exps.sum()"),
        Mistake(_EVERYTHING, _LINES, "np.exp(x)\n    return exps / exps.sum()"),
        Mistake(_COLUMNS, "exps.sum(axis=-1", "exps.sum(axis=0"),
        Mistake(_COLUMNS, _LINES, "np.exp(x)\n    return exps / exps.sum(axis=0)"),
        Mistake("`axis=1` is the last axis of a matrix only: `axis=-1` always is", "axis=-1", "axis=1"),
        Mistake(
            "without keepdims=True row i is divided by the sum of another row: the sums lie down as a row",
            "exps.sum(axis=-1, keepdims=True)",
            "exps.sum(axis=-1)",
        ),
        Mistake(
            "`exp` overflows (or becomes 0 / 0): subtract the largest score of each row first",
            "x - x.max(axis=-1, keepdims=True)",
            "x",
        ),
        Mistake(
            "the largest score of all is subtracted: a row far below it becomes 0 / 0. Each row has its own",
            "x.max(axis=-1, keepdims=True)",
            "x.max()",
        ),
    ),
)
def softmax(x):
    """Return shares along the last axis, exp(x) / Σ exp(x): (..., n) -> (..., n)."""
    exps = np.exp(x - x.max(axis=-1, keepdims=True))  # at most exp(0) = 1
    return exps / exps.sum(axis=-1, keepdims=True)


weights_by_hand = question(
    "03.2",
    "Weights by hand",
    minutes=5,
    difficulty="easy",
    hints=(
        "exp undoes the logarithm: exp(ln 5) = 5. And exp(0)?",
        "The shares of 1, 2 and 5: divide each by their sum.",
    ),
    next_thought="All three scores grow by 7. What happens to the weights?",
    value=[1 / 8, 2 / 8, 5 / 8],
    answer="[0.125, 0.25, 0.625]: exp gives 1, 2 and 5, their sum is 8.",
    mistakes=(
        Mistake("not yet divided by their sum", value=[1, 2, 5]),
        Mistake("`exp(0)` is 1, so the first word gets something, too", value=[0, 2 / 7, 5 / 7]),
        Mistake(
            "shares of the scores themselves: softmax takes their exp first",
            value=[0, math.log(2) / math.log(10), math.log(5) / math.log(10)],
        ),
        Mistake(
            "equal weights would be right for equal scores: the larger the score, the larger the weight",
            when=lambda got, want, case: len(got) == 3 and np.allclose(got, 1 / 3, atol=0.01),
        ),
    ),
)


def _right_attention(query, key, value):
    context, weights = library_attention(Tensor(query), Tensor(key), Tensor(value))
    return context.data, np.asarray(weights)


@exercise(
    "03.3",
    "Attention without loops",
    minutes=15,
    difficulty="medium",
    hints=(
        "All dot products at once are one matrix product. key.T would reverse the batch axis, too: swapaxes(-1, -2).",
        "Row i holds the scores of query i. Softmax along the keys, the last axis; subtract the largest score first.",
        "weights @ value mixes the values: (T, S) @ (S, E) -> (T, E).",
    ),
    next_thought="Where in these lines does the *order* of the words matter?",
    cases=lambda: [
        arrays(0, (3, 3), (3, 3), (3, 3)),
        arrays(1, (2, 4), (3, 4), (3, 5)),
        arrays(2, (2, 3, 4), (2, 3, 4), (2, 3, 4)),
        arrays(3, (2, 3), (4, 3), (4, 2), dtype="float32"),
        tuple(x * 100 for x in arrays(4, (2, 3), (4, 3), (4, 2))),
        arrays(5, (5, 2), (3, 2), (3, 4)),  # D is not the largest
        (np.array([[3e3]]), np.array([[-3.0], [-1.0], [-2.0]]), np.array([[1.0], [2.0], [3.0]])),  # all far below 0
    ],
    more=draws("...td ...sd ...se", scales=(1, 10)),
    right=_right_attention,
    forbids=ATTENTION + SOFTMAX,
    mistakes=(
        Mistake("the scale is missing: divide the scores by √D", " / math.sqrt(query.shape[-1])", ""),
        Mistake("divided by D: the scale is its root, √D", "math.sqrt(query.shape[-1])", "query.shape[-1]"),
        Mistake(
            "softmax goes down the columns: each *query* distributes its attention, along its row",
            "axis=-1",
            "axis=-2",
        ),
        Mistake(
            "softmax goes down the columns: each *query* distributes its attention, along its row",
            "exps.sum(axis=-1",
            "exps.sum(axis=-2",
        ),
        Mistake(
            "`key.T` reverses all axes, that of the batch, too: key.swapaxes(-1, -2)", "key.swapaxes(-1, -2)", "key.T"
        ),
        Mistake(
            "queries and keys are swapped: rows are queries",
            "query @ key.swapaxes(-1, -2)",
            "key @ query.swapaxes(-1, -2)",
        ),
        Mistake(
            "the weights come first: return (context, weights)",
            "return weights @ value, weights",
            "return weights, weights @ value",
        ),
        Mistake(
            "`exp` overflows: subtract the largest score of each row first", " - scores.max(axis=-1, keepdims=True)", ""
        ),
    ),
)
def attention(query, key, value):
    """Return context (..., T, E) and weights (..., T, S) of query (..., T, D), key (..., S, D), value (..., S, E)."""
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])  # (..., T, S)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)  # every row sums to 1
    return weights @ value, weights


_ONE = ([1, 1, 4], [1, 1 / 256, 4], [1, 1, 1024])  # without the sum over 256 products


variance_of_a_dot_product = question(
    "03.4",
    "How large are scores?",
    minutes=6,
    difficulty="medium",
    hints=(
        "A product of two such numbers has variance 1, and variances of independent things add up.",
        "Dividing by c divides the variance by c².",
        "In the last question each product has the variance 4 · 1.",
    ),
    next_thought="A GPT starts with small weights. What variance do its scores have at first?",
    value=[256, 1, 1024],
    answer="[256, 1, 1024]: 256 products of variance 1; divided by 16² = 256; 256 products of variance 4.",
    mistakes=(
        Mistake("that is the deviation, √256: the variance is its square", value=[16, None, None]),
        Mistake("dividing by 16 divides the variance by 16²", value=[None, 16, None]),
        Mistake(
            "each product has variance 4, not 2: variances of factors with mean 0 are multiplied",
            value=[None, None, 512],
        ),
        Mistake(
            "each product has variance 4, not 16: the 4 is the variance already, not the deviation",
            value=[None, None, 4096],
        ),
        *(Mistake("the variances of 256 products add up: 256 of them", value=value) for value in _ONE),
    ),
)


def _largest_weights(scale, axis=-1, how=np.mean):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 50, 256))
    scores = q @ k.T * scale
    exps = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return round(float(how((exps / exps.sum(axis=axis, keepdims=True)).max(axis=axis))), 2)


no_scale = question(
    "03.5",
    "No scale at head size 256",
    minutes=10,
    difficulty="medium",
    hints=(
        "scores = q @ k.T, one row for each query; softmax along each row.",
        "weights.max(axis=-1).mean() is the number you want. A row of 50 equal weights would give 0.02.",
    ),
    next_thought="What is the gradient of softmax where one weight is almost 1? Which of the two models can learn?",
    value=[_largest_weights(1), _largest_weights(1 / 16)],
    digits=2,
    answer=(
        f"[{_largest_weights(1)}, {_largest_weights(1 / 16)}]: without the scale each row is almost a choice of one"
        " key, although q and k were drawn at random."
    ),
    mistakes=(
        Mistake(
            "the two are swapped: without the scale comes first", value=[_largest_weights(1 / 16), _largest_weights(1)]
        ),
        Mistake(
            "divided by 256: the scale is its root",
            value=[None, _largest_weights(1 / 256)],
        ),
        Mistake(
            "shares down the columns: a row is a query, and its weights sum to 1",
            value=[_largest_weights(1, 0), _largest_weights(1 / 16, 0)],
        ),
        Mistake(
            "the largest of all rows: take the largest of each row, then the mean",
            value=[_largest_weights(1, how=np.max), _largest_weights(1 / 16, how=np.max)],
        ),
        Mistake(
            "the scale has no effect here: were the scores divided *before* exp?",
            value=[_largest_weights(1)] * 2,
        ),
        Mistake("each row was compared with itself: the keys are another array, q @ k.T", value=[1, 1]),
    ),
)
