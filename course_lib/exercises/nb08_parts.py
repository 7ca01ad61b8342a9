"""Exercises of notebook 08: a tied head, and the parameters of attention."""

import math

import numpy as np

from ..config import GPTConfig
from ..numpy_track import GPT, Tensor
from ..numpy_track import functional as F
from .cases import arrays
from .exercise import Mistake, exercise


def _softmax(x):
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


@exercise(
    "08.3",
    "A tied head",
    minutes=6,
    difficulty="easy",
    task="""
A tied head has no matrix of its own: the logit of a token is the dot product of the last vector with the token's row in
the table. Write the logits for `h` (B, T, C) and `table` (V, C).
""",
    hints=(
        "Which shape must come out? One number for each position and each token: (B, T, V).",
        "h is (B, T, C); a matrix product needs (C, V) behind it.",
    ),
    next_thought="How many parameters does GPT-2 save by this, with V = 50,257 and C = 768?",
    cases=lambda: [
        arrays(0, (2, 3, 4), (4, 4)),
        arrays(1, (1, 2, 3), (5, 3)),
        arrays(2, (2, 2, 3), (4, 3), dtype="float32"),
    ],
    right=lambda h, table: F.linear(Tensor(h), Tensor(table).swapaxes(0, 1)).data,
    mistakes=(
        Mistake("the table is (V, C) and must be transposed", lambda h, table: h @ table),
        Mistake("these are probabilities: logits are asked for", lambda h, table: _softmax(h @ table.T)),
        Mistake("no scale here: that belongs to attention", lambda h, table: h @ table.T / math.sqrt(h.shape[-1])),
        Mistake("only the last position: training needs the logits of all", lambda h, table: h[:, -1] @ table.T),
        Mistake("a choice of tokens: their logits are asked for", lambda h, table: (h @ table.T).argmax(axis=-1)),
    ),
)
def tied_logits(h, table):
    """Logits from the token table: (B, T, C) and (V, C) → (B, T, V)."""
    return h @ table.T  # (B, T, C) @ (C, V) → (B, T, V)


def _right_count(C, H, bias):
    attention = GPT(GPTConfig(5, 4, C, H, layers=1, attention_bias=bias)).blocks[0].attention.layer
    return sum(p.data.size for p in attention.parameters())


@exercise(
    "08.4",
    "The parameters of attention",
    minutes=6,
    difficulty="easy",
    task="""
How many numbers does one attention layer train, with width C and H heads: query, key, value and output? `bias` says
whether each of the four adds a bias (in GPT-2 it does).
""",
    hints=(
        "Each head has D = C / H columns in the matrices, and there are H heads: H · D is C again.",
        "Four matrices C by C; and if bias is True, four rows of C numbers.",
    ),
    next_thought="An MLP has 8 C² numbers. Which share of a block is attention?",
    cases=lambda: [(8, 2, False), (8, 2, True), (12, 3, True), (4, 4, False)],
    right=_right_count,
    forbids=("number_of_parameters", "GPT", "CausalSelfAttention", "parameters"),
    mistakes=(
        Mistake("the output matrix is missing: there are four", lambda C, H, bias: 3 * (C * C + C * bias)),
        Mistake(
            "the output matrix and its bias are there, too: four of each", lambda C, H, bias: 4 * C * C + 3 * C * bias
        ),
        Mistake(
            "a head has only C / H columns: the number of heads changes nothing",
            lambda C, H, bias: (3 * H + 1) * C * C + 4 * C * bias,
        ),
        Mistake("that is one head: there are H, side by side", lambda C, H, bias: 4 * C * C // H + 4 * C * bias),
        Mistake("the biases count only if `bias` is True", lambda C, H, bias: 4 * C * C + 4 * C),
        Mistake("the biases are missing: 4 C if `bias` is True", lambda C, H, bias: 4 * C * C),
        Mistake("each of the four has a bias of its own: 4 C", lambda C, H, bias: 4 * C * C + C * bias),
    ),
)
def attention_parameters(C, H, bias):
    """How many numbers one attention layer trains: a whole number."""
    return 4 * C * C + (4 * C if bias else 0)
