"""Exercises of notebook 08: the whole GPT, counted."""

import math

from ..config import GPTConfig
from ..numpy_track import GPT
from .exercise import Mistake, exercise, question


def _right(V, T, C, L):
    return GPT(GPTConfig(V, T, C, heads=1, layers=L)).number_of_parameters()


@exercise(
    "08.1",
    "Count the parameters",
    minutes=15,
    difficulty="middle",
    task="""
How many numbers does the GPT of this notebook train? V tokens, T positions, width C, L blocks; query, key, value and
output without bias; an MLP of width 4C with biases; LayerNorm before attention, before the MLP and at the end; a head
with bias of its own.
""",
    hints=(
        "Outside the blocks: two tables, the last LayerNorm, and the head with its bias.",
        "A LayerNorm has a gain and a bias: 2C. A block has two of them.",
        "In a block: 4 C² for attention, (C · 4C + 4C) + (4C · C + C) for the MLP, 4C for the LayerNorms.",
    ),
    next_thought="Which part grows fastest when C doubles? When the vocabulary does? Why are heads not in the formula?",
    cases=lambda: [(17, 8, 32, 3), (65, 32, 64, 2), (5, 7, 8, 0)],
    right=_right,
    forbids=("number_of_parameters", "GPT", "named_parameters"),
    mistakes=(
        Mistake(
            "the biases of the MLP are missing: 4C + C in each block", lambda V, T, C, L: _right(V, T, C, L) - 5 * C * L
        ),
        Mistake("the LayerNorm at the end is missing: 2C", lambda V, T, C, L: _right(V, T, C, L) - 2 * C),
        Mistake("the table of positions is missing: T · C", lambda V, T, C, L: _right(V, T, C, L) - T * C),
        Mistake(
            "the output matrix of attention is missing: C² in each block",
            lambda V, T, C, L: _right(V, T, C, L) - C * C * L,
        ),
        Mistake("the bias of the head is missing: V", lambda V, T, C, L: _right(V, T, C, L) - V),
        Mistake(
            "the LayerNorms of the blocks are missing: 4C in each", lambda V, T, C, L: _right(V, T, C, L) - 4 * C * L
        ),
        Mistake("a LayerNorm has a bias, too: 2C each", lambda V, T, C, L: _right(V, T, C, L) - 2 * C * L),
        Mistake("the head has a matrix of its own: C · V", lambda V, T, C, L: _right(V, T, C, L) - C * V),
        Mistake("query, key, value and output have no bias here", lambda V, T, C, L: _right(V, T, C, L) + 4 * C * L),
        Mistake(
            "C / H times H is C: the number of heads changes nothing",
            when=lambda got, want, case: got in [want + 3 * (h - 1) * case[2] ** 2 * case[3] for h in (2, 4, 8)],
        ),
    ),
)
def number_of_parameters(V, T, C, L):
    """How many numbers the GPT trains: a whole number."""
    tables = V * C + T * C
    attention = 4 * C * C
    mlp = (C * 4 * C + 4 * C) + (4 * C * C + C)
    norms = 2 * (2 * C)
    return tables + L * (attention + mlp + norms) + 2 * C + (C * V + V)


first_loss = question(
    "08.2",
    "The first loss",
    minutes=3,
    difficulty="easy",
    task="""
Before you run it: what should the loss of the untrained model be near to, with 17 tokens? Say it with two decimals.
""",
    hints=(
        "Small random weights give nearly equal logits. What does softmax make of equal logits?",
        "The loss is the surprise of the right token: -log of its probability.",
    ),
    next_thought="What would you suspect if the first loss were 5? And if it were 1?",
    value=round(math.log(17), 2),
    digits=2,
    answer="ln 17 = 2.83: every token has the probability 1/17, and -log(1/17) is ln 17.",
    mistakes=(
        Mistake("that is log to the base 2: the course counts in nats, with the natural logarithm", 4.09),
        Mistake("that is log to the base 10: the course counts in nats, with the natural logarithm", 1.23),
        Mistake("that is the probability of one token; the loss is the negative logarithm of it", 0.06),
        Mistake("a surprise is positive: minus the logarithm of 1/17", -2.83),
    ),
)
