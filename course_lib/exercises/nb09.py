"""Exercises of notebook 09: the whole GPT, counted, and its head."""

import math

from ..common.config import GPTConfig
from ..common.costs import parameter_count
from ..numpy_track import GPT, Tensor
from ..numpy_track import functional as F
from .exercise import COUNTS, Mistake, draws, exercise, question, varied


def _right_parameters(V, T, C, L):
    return parameter_count(GPTConfig(V, T, C, heads=1, layers=L))


@exercise(
    "09.1",
    "Count the parameters",
    minutes=15,
    difficulty="medium",
    hints=(
        "Outside the blocks: two tables, the last LayerNorm, and the head with its bias.",
        "A LayerNorm has a gain and a bias: 2C. A block has two of them.",
        "In a block: 4 C² for attention, (C · 4C + 4C) + (4C · C + C) for the MLP, 4C for the LayerNorms.",
    ),
    next_thought="Which part grows fastest when C doubles? When the vocabulary does? Why are heads not in the formula?",
    cases=lambda: (
        [(17, 8, 32, 3), (65, 32, 64, 2), (5, 7, 8, 0), (3, 5, 7, 1), (20001, 9, 401, 1)]
        + varied(7, 5, 6, 2, by=[8, 6, 7, 3])
    ),
    more=lambda rng: [(*map(int, rng.integers(3, 50, 3)), L) for L in (1, 2, 4)],
    right=_right_parameters,
    forbids=COUNTS,
    mistakes=(
        Mistake(
            "the biases of the MLP are missing: 4C + C in each block",
            "(C * 4 * C + 4 * C) + (4 * C * C + C)",
            "8 * C * C",
        ),
        Mistake("the LayerNorm at the end is missing: 2C", " + 2 * C + (C * V", " + (C * V"),
        Mistake("the table of positions is missing: T · C", "V * C + T * C", "V * C"),
        Mistake(
            "in each block 2C are missing: it has two LayerNorms, and each has a gain and a bias, 2C",
            "norms = 2 * (2 * C)",
            "norms = 2 * C",
        ),
        Mistake(
            "a LayerNorm has a bias, too: 2C each",
            "norms = 2 * (2 * C)\n    return tables + L * (attention + mlp + norms) + 2 * C",
            "norms = 2 * C\n    return tables + L * (attention + mlp + norms) + C",
        ),
        Mistake(
            "in each block 4C are missing: the bias of the wide layer, or the two LayerNorms",
            "norms = 2 * (2 * C)",
            "norms = 0",
        ),
        Mistake(
            "C · V is missing once: the table of tokens, or the head, which has a matrix of its own",
            "(C * V + V)",
            "V",
        ),
        Mistake("query, key, value and output have no bias here", "4 * C * C\n", "4 * (C * C + C)\n"),
    ),
)
def num_parameters(V, T, C, L):
    """Return the number of parameters of the GPT: a whole number."""
    tables = V * C + T * C
    attention = 4 * C * C
    mlp = (C * 4 * C + 4 * C) + (4 * C * C + C)
    norms = 2 * (2 * C)
    return tables + L * (attention + mlp + norms) + 2 * C + (C * V + V)


first_loss = question(
    "09.2",
    "The first loss",
    minutes=3,
    difficulty="easy",
    hints=(
        "Small random weights give nearly equal logits. What does softmax make of equal logits?",
        "The loss is the surprise of the right token: -log of its probability.",
    ),
    next_thought="What would you suspect if the first loss were 5? And if it were 1?",
    value=round(math.log(17), 2),
    digits=2,
    answer="ln 17 = 2.83: every token has the probability 1/17, and -log(1/17) is ln 17.",
    mistakes=(
        Mistake("that is log to the base 2: the course counts in nats, with the natural logarithm", value=4.09),
        Mistake("that is log to the base 10: the course counts in nats, with the natural logarithm", value=1.23),
        Mistake("that is the probability of one token; the loss is the negative logarithm of it", value=0.06),
        Mistake("a surprise is positive: minus the logarithm of 1/17", value=-2.83),
    ),
)


@exercise(
    "09.3",
    "A tied head",
    minutes=6,
    difficulty="easy",
    hints=(
        "Which shape must come out? One number for each position and each token: (B, T, V).",
        "h is (B, T, C); a matrix product needs (C, V) after it.",
    ),
    next_thought="How many parameters does GPT-2 save by this, with V = 50,257 and C = 768?",
    more=draws("btc vc", scales=(1, 1e3)),
    right=lambda h, table: F.linear(Tensor(h), Tensor(table).swapaxes(0, 1)).data,
    mistakes=(
        Mistake("the table is (V, C) and must be transposed", "table.T", "table"),
        Mistake(
            "these are probabilities: return the logits",
            "return h @ table.T",
            "return F.softmax(Tensor(h @ table.T)).data",
        ),
        Mistake("no scale here: that belongs to attention", "h @ table.T", "h / math.sqrt(h.shape[-1]) @ table.T"),
        Mistake("only the last position: training needs the logits of all", "return h @", "return h[:, -1] @"),
        Mistake(
            "these are the chosen tokens: return their logits",
            "return h @ table.T",
            "return (h @ table.T).argmax(axis=-1)",
        ),
    ),
)
def tied_logits(h, table):
    """Return logits from the token table: (B, T, C) and (V, C) -> (B, T, V)."""
    return h @ table.T  # (B, T, C) @ (C, V) -> (B, T, V)


def _right_attention_count(C, H, bias):
    attention = GPT(GPTConfig(5, 4, C, H, layers=1, attention_bias=bias)).blocks[0].attention.layer
    return sum(p.data.size for p in attention.parameters())


@exercise(
    "09.4",
    "The parameters of attention",
    minutes=6,
    difficulty="easy",
    hints=(
        "Each head has D = C / H columns in the matrices, and there are H heads: H · D is C again.",
        "Four matrices C by C; and if bias is True, four vectors of C numbers.",
    ),
    next_thought="An MLP has 8 C² weights. What share of a block is attention?",
    cases=lambda: [(8, 2, False), (8, 2, True), (12, 3, True), (4, 4, False), (10, 2, True)],
    more=lambda rng: [(int(rng.integers(1, 9)) * H, H, bias) for H in (1, 2, 6) for bias in (False, True)],
    right=_right_attention_count,
    forbids=("SelfAttention", "parameters", *COUNTS),
    mistakes=(
        Mistake(
            "the output matrix is missing: there are four",
            "4 * C * C + (4 * C if bias else 0)",
            "3 * (C * C + C * bias)",
        ),
        Mistake("the output matrix has a bias, too: four of each", "4 * C if bias", "3 * C if bias"),
        Mistake(
            "a head has only C / H columns: the number of heads changes nothing", "4 * C * C", "(3 * H + 1) * C * C"
        ),
        Mistake("that is one head: there are H, side by side", "4 * C * C", "4 * C * C // H"),
        Mistake("the biases count only if `bias` is True", "(4 * C if bias else 0)", "4 * C"),
        Mistake("the biases are missing: 4 C if `bias` is True", " + (4 * C if bias else 0)", ""),
    ),
)
def attention_parameters(C, H, bias):
    """Return the number of parameters of one attention layer: a whole number."""
    return 4 * C * C + (4 * C if bias else 0)
