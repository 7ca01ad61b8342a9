"""Exercises of notebook 03: weights by hand, and what the scale is for."""

import math

import numpy as np

from .exercise import Mistake, question

weights_by_hand = question(
    "03.2",
    "Weights by hand",
    minutes=5,
    difficulty="easy",
    task="""
A word has the scores 0, ln 2 and ln 5 with three words. Which weights does softmax make of them? Give a list of three
numbers; you need no computer.
""",
    hints=(
        "exp undoes the logarithm: exp(ln 5) = 5. And exp(0)?",
        "The shares of 1, 2 and 5: divide each by their sum.",
    ),
    next_thought="All three scores grow by 7. What happens to the weights?",
    value=[1 / 8, 2 / 8, 5 / 8],
    answer="[0.125, 0.25, 0.625]: exp gives 1, 2 and 5, their sum is 8.",
    mistakes=(
        Mistake("not yet divided by their sum", [1, 2, 5]),
        Mistake("`exp(0)` is 1, so the first word gets something, too", [0, 2 / 7, 5 / 7]),
        Mistake(
            "shares of the scores themselves: softmax takes exp of them first",
            [0, math.log(2) / math.log(10), math.log(5) / math.log(10)],
        ),
        Mistake(
            "all the same would be right for equal scores: the larger the score, the larger the weight",
            when=lambda got, want, case: np.allclose(got, 1 / 3, atol=0.01),
        ),
    ),
)

variance_of_a_dot_product = question(
    "03.4",
    "How large are scores?",
    minutes=6,
    difficulty="middle",
    task="""
Two vectors of 256 numbers each, all independent, with mean 0 and variance 1. What is the variance of q · k? Of
q · k / √256? And of q · k (without the scale) when each number of q has variance 4? Give a list of three numbers.
""",
    hints=(
        "A product of two such numbers has variance 1, and variances of independent things add up.",
        "Dividing by c divides the variance by c².",
        "In the last question each product has the variance 4 · 1.",
    ),
    next_thought="A GPT starts with small weights. Which variance do its scores have at first?",
    value=[256, 1, 1024],
    answer="[256, 1, 1024]: 256 products of variance 1; divided by 16² = 256; 256 products of variance 4.",
    mistakes=(
        Mistake("that is the deviation, √256: the variance is its square", when=lambda got, want, case: got[0] == 16),
        Mistake("dividing by 16 divides the variance by 16²", when=lambda got, want, case: got[1] == 16),
        Mistake(
            "each product has variance 4, not 2: variances of factors with mean 0 are multiplied",
            when=lambda got, want, case: got[2] == 512,
        ),
        Mistake(
            "each product has variance 4, not 16: the 4 is the variance already, not the deviation",
            when=lambda got, want, case: got[2] == 4096,
        ),
        Mistake("the variances of 256 products add up: 256 of them", when=lambda got, want, case: got[0] == 1),
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
    difficulty="middle",
    task="""
Change and measure: draw `rng = np.random.default_rng(0)` and `q, k = rng.standard_normal((2, 50, 256))`, and let each
of the 50 queries look at the 50 keys. How large is the largest weight of a row, as a mean over the rows: without the
scale, and with scores divided by √256? Give a list of two numbers, with two decimals. (Guess before you compute!)
""",
    hints=(
        "scores = q @ k.T, one row for each query; softmax along each row.",
        "weights.max(axis=-1).mean() is the number that is asked for. A row of 50 equal weights would give 0.02.",
    ),
    next_thought="What is the gradient of softmax where one weight is almost 1? Which of the two models can learn?",
    value=[_largest_weights(1), _largest_weights(1 / 16)],
    digits=2,
    answer=(
        f"[{_largest_weights(1)}, {_largest_weights(1 / 16)}]: without the scale each row is almost a choice of one"
        " key, although q and k were drawn by chance."
    ),
    mistakes=(
        Mistake(
            "the two are exchanged: without the scale comes first", [_largest_weights(1 / 16), _largest_weights(1)]
        ),
        Mistake(
            "divided by 256: the scale is its root",
            when=lambda got, want, case: abs(got[1] - _largest_weights(1 / 256)) < 0.005,
        ),
        Mistake(
            "shares down the columns: a row is a query, and its weights sum to 1",
            [_largest_weights(1, 0), _largest_weights(1 / 16, 0)],
        ),
        Mistake(
            "the largest of all rows: take the largest of each row, then the mean",
            [_largest_weights(1, how=np.max), _largest_weights(1 / 16, how=np.max)],
        ),
        Mistake(
            "the scale has no effect here: were the scores divided *before* exp?",
            when=lambda got, want, case: got[0] == got[1],
        ),
    ),
)
