"""Exercises of notebook 13: the size of a GPT-2, and the size that a number of operations is good for."""

import math

from ..gpt2 import gpt2_config, gpt2_shapes
from .exercise import Mistake, exercise


def _right(layers, width, vocabulary_size=50257, context=1024):
    shapes = gpt2_shapes(gpt2_config(layers, 1, width, context, vocabulary_size))
    return sum(math.prod(shape) for shape in shapes.values())


def _with(difference):
    """The right number plus ``difference(L, C, V, T)``."""

    def count(layers, width, vocabulary_size=50257, context=1024):
        more = difference(layers, width, vocabulary_size, context)
        return _right(layers, width, vocabulary_size, context) + more

    return count


_HEAD = "the head is counted twice: it is the token table (`tied=True`), and brings no number of its own"


@exercise(
    "13.1",
    "Count a GPT-2",
    minutes=10,
    difficulty="middle",
    task="""
How many parameters has a GPT-2? From the sizes alone: `layers` blocks of this `width`, `vocabulary_size` tokens,
`context` positions. Every matrix of a block has a bias, the MLP is four times as wide, and the head is the token table.
(The largest one has 48 layers and width 1600. Try it!)
""",
    hints=(
        "Outside the blocks: the table of tokens, the table of positions, and the last LayerNorm.",
        "In a block: four C × C matrices, one C × 4C, one 4C × C, each with a bias; and two LayerNorms of 2C numbers.",
        "Together 12 C² + 13 C in each block. Outside: V · C + T · C + 2 C.",
    ),
    next_thought="Which share of the smallest GPT-2 is its token table, and which share of the largest?",
    cases=lambda: [(12, 768), (48, 1600), (2, 6, 11, 5), (0, 8, 50, 16)],
    right=_right,
    forbids=("gpt2_shapes", "parameter_count", "number_of_parameters", "named_parameters", "GPT"),
    mistakes=(
        Mistake(_HEAD, _with(lambda L, C, V, T: V * C)),
        Mistake(_HEAD, _with(lambda L, C, V, T: V * C + V)),
        Mistake("the head of a GPT-2 has no bias", _with(lambda L, C, V, T: V)),
        Mistake("the table of positions is missing: T · C", _with(lambda L, C, V, T: -T * C)),
        Mistake("the LayerNorm at the end is missing: 2C", _with(lambda L, C, V, T: -2 * C)),
        Mistake(
            "the LayerNorms are missing: 4C in each block, and 2C at the end",
            _with(lambda L, C, V, T: -4 * C * L - 2 * C),
        ),
        Mistake("a LayerNorm has a gain and a bias: 2C numbers", _with(lambda L, C, V, T: -2 * C * L - C)),
        Mistake(  # one LayerNorm in each block, or two with a gain alone
            "in each block 2C numbers are missing: a block has two LayerNorms, each with a gain and a bias",
            _with(lambda L, C, V, T: -2 * C * L),
        ),
        Mistake(  # one bias for all of the attention, or the MLP's first no longer than its second
            "in each block 3C numbers are missing: query, key, value and output have a bias each, together 4C, and the"
            " first bias of the MLP has 4C numbers, too",
            _with(lambda L, C, V, T: -3 * C * L),
        ),
        Mistake(
            "in each block 4C numbers are missing: the biases of the attention, or the two LayerNorms",
            _with(lambda L, C, V, T: -4 * C * L),
        ),
        Mistake("the biases of the MLP are missing: 4C + C in each block", _with(lambda L, C, V, T: -5 * C * L)),
        Mistake("the biases are missing: 9C in each block", _with(lambda L, C, V, T: -9 * C * L)),
        Mistake(
            "biases and LayerNorms are missing: 13C in each block, 2C at the end",
            _with(lambda L, C, V, T: -13 * C * L - 2 * C),
        ),
        Mistake("query, key and value are three matrices", _with(lambda L, C, V, T: -2 * (C * C + C) * L)),
        Mistake("the output matrix of the attention is missing", _with(lambda L, C, V, T: -(C * C + C) * L)),
        Mistake(
            "these are the matrices of the blocks alone: the two tables, biases and LayerNorms count, too",
            lambda layers, width, vocabulary_size=0, context=0: 12 * layers * width**2,
        ),
    ),
)
def gpt2_parameters(layers, width, vocabulary_size=50257, context=1024):
    """How many parameters a GPT-2 of this size has: a whole number."""
    C = width
    tables = vocabulary_size * C + context * C
    attention = 4 * (C * C + C)  # query, key, value, output
    mlp = (C * 4 * C + 4 * C) + (4 * C * C + C)
    norms = 2 * (2 * C)
    return tables + layers * (attention + mlp + norms) + 2 * C


def _pair(operations, factor=6 * 20, tokens=20):
    """N from ``factor`` N² operations, and N times ``tokens``."""
    parameters = math.sqrt(operations / factor)
    return parameters, tokens * parameters


@exercise(
    "13.2",
    "The best size for your operations",
    minutes=8,
    difficulty="easy",
    task="""
You can afford so many `operations`. A training run of N parameters on D tokens takes 6 N D of them, and the best use
of them is D = 20 N. Return the two numbers (N, D). (What does one GPU with 100 trillion operations a second give in a
day, 8.64e18?)
""",
    hints=(
        "Put D = 20 N into 6 N D. What is left has only N in it.",
        "operations = 120 N².",
        "N = (operations / 120) ** 0.5, and D = 20 · N.",
    ),
    next_thought="Four times the operations: how many times the parameters, and how many times the tokens?",
    cases=lambda: [(1.08e20,), (8.64e18,), (480.0,)],
    right=_pair,
    mistakes=(
        Mistake(
            "the root is missing: 120 N² are the operations, not 120 N",
            lambda operations: (operations / 120, operations / 6),
        ),
        Mistake("the 6 is missing: each parameter takes 6 operations a token", lambda c: _pair(c, 20)),
        Mistake("the 20 is missing under the root: D is 20 N, too", lambda c: _pair(c, 6)),
        Mistake("two operations are the forward alone; training takes six", lambda c: _pair(c, 2 * 20)),
        Mistake("multiply 6 and 20: they are not added", lambda c: _pair(c, 6 + 20)),
        Mistake("tokens are 20 N, not N / 20", lambda c: _pair(c, tokens=1 / 20)),
        Mistake("the two are exchanged: first the parameters, then the tokens", lambda c: _pair(c)[::-1]),
        Mistake("operations / N is 6 D: divide by 6, too", lambda c: (_pair(c)[0], 6 * _pair(c)[1])),
        Mistake("equal numbers of both: each parameter wants 20 tokens", lambda c: _pair(c, 6, 1)),
    ),
)
def compute_optimal(operations):
    """The pair (N parameters, D tokens) with 6 N D = operations and D = 20 N."""
    parameters = (operations / (6 * 20)) ** 0.5  # 6 · N · 20 N = operations
    return parameters, 20 * parameters
