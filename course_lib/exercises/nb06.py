"""Exercises of notebook 06: many heads from one matrix."""

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from . import mending
from .exercise import Mistake, arrays, drawn, draws, exercise, numbered, question, varied


@exercise(
    "06.1",
    "Split into heads",
    minutes=10,
    difficulty="medium",
    hints=(
        "First just cut: which shape has each position's C numbers as H rows of D?",
        "x.reshape(B, T, H, D). Now the heads come after the positions.",
        "swapaxes(1, 2) swaps T and H. A bare reshape to (B, H, T, D) has the right shape and mixes positions.",
    ),
    next_thought="Which numbers does head 1 of position 0 hold? Would a bare reshape be noticed by looking at shapes?",
    cases=lambda: [
        (numbered(2, 3, 8), 2),
        (*arrays(0, (1, 4, 6)), 3),
        (*arrays(1, (2, 2, 4), dtype="float32"), 4),
        *varied(*arrays(2, (2, 3, 4)), 2, by=[1]),
        (*arrays(3, (2, 1, 4)), 2),
    ],
    more=lambda rng: [(x.reshape(*x.shape[:2], -1), x.shape[2]) for n in range(5) for x in drawn(rng, "bthd", n)],
    right=lambda x, heads: F.split_heads(Tensor(x), heads).data,
    forbids=("split_heads",),
    mistakes=(
        Mistake(
            "a bare reshape gives the right shape but mixes the positions: cut first, then swap axes",
            "x.swapaxes(1, 2)",
            "x.reshape(B, heads, T, C // heads)",
        ),
        Mistake("the heads must come before the positions: swap axes 1 and 2", "x.swapaxes(1, 2)", "x"),
        Mistake(
            "H and D are swapped: cut into (B, T, heads, C // heads), the heads first",
            "x.swapaxes(1, 2)",
            "x.reshape(B, T, C // heads, heads)",
        ),
        Mistake(
            "the axes of the cut are swapped: reshape to (B, T, heads, C // heads), then swap T and H",
            "heads, C // heads)",
            "C // heads, heads)",
        ),
        Mistake(
            "the pieces are cut across: each head should get D adjacent numbers, so reshape to (.., H, D)",
            "x.swapaxes(1, 2)",
            "x.reshape(B, T, C // heads, heads).transpose(0, 3, 1, 2)",
        ),
        Mistake(
            "the last two axes are swapped: it should end in (T, D)", "x.swapaxes(1, 2)", "x.transpose(0, 2, 3, 1)"
        ),
    ),
)
def split_heads(x, heads):
    """Split (B, T, C) -> (B, H, T, D): head h of a position holds its numbers h·D to (h + 1)·D - 1."""
    B, T, C = x.shape
    x = x.reshape(B, T, heads, C // heads)  # (B, T, C) -> (B, T, H, D)
    return x.swapaxes(1, 2)  # -> (B, H, T, D)


@exercise(
    "06.2",
    "Merge the heads again",
    minutes=6,
    difficulty="easy",
    hints=(
        "Undo the steps of the split, the last one first.",
        "swapaxes(1, 2) gives (B, T, H, D); now H and D lie side by side and can become one axis.",
    ),
    next_thought="After merging, the output matrix mixes the heads. What could a model without it not do?",
    cases=lambda: [
        (numbered(2, 2, 3, 4),),
        arrays(0, (1, 3, 4, 2)),
        arrays(1, (2, 4, 2, 1), dtype="float32"),
        arrays(2, (2, 1, 3, 2)),
        arrays(3, (2, 3, 1, 2)),
    ],
    more=draws("bhtd", turns=5),
    right=lambda x: F.merge_heads(Tensor(x)).data,
    forbids=("merge_heads",),
    mistakes=(
        Mistake(
            "a bare reshape: it puts positions of one head side by side, not the heads of one position",
            "x.swapaxes(1, 2).reshape",
            "x.reshape",
        ),
        Mistake("the axes are swapped, but H and D are not yet joined into one axis C", ".reshape(B, T, H * D)", ""),
        Mistake(
            "the numbers of the heads are interleaved: it should be all of head 0, then all of head 1",
            "x.swapaxes(1, 2)",
            "x.transpose(0, 2, 3, 1)",
        ),
        Mistake(
            "the heads are added up: they should lie side by side",
            "x.swapaxes(1, 2).reshape(B, T, H * D)",
            "x.sum(axis=1)",
        ),
        Mistake("only one head came through", "x.swapaxes(1, 2).reshape(B, T, H * D)", "x[:, 0]"),
    ),
)
def merge_heads(x):
    """Merge (B, H, T, D) -> (B, T, C), C = H·D: the inverse of split_heads."""
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)  # (B, H, T, D) -> (B, T, H, D) -> (B, T, C)


RESHAPE = "a reshape moves numbers"
_CUT = "reshape(B, T, H, C // H).swapaxes(1, 2)"
_REST = """ for f in (self.query, self.key, self.value))
    context, self.weights = F.attention(q, k, v, F.causal_mask(T))  # (B, H, T, D)
    return self.output("""


_SWAPPED = "query, key and value are swapped: F.attention takes them in this order"


def _examine_heads(function):
    if problem := mending.first_problem("attention", 4, function):
        return problem
    different = mending.value_problem("attention", 4, function)
    likely = mending.likely_mistake("attention", 4, function, heads_forward) if different else ""
    model = mending.in_all_blocks(mending.small_model(heads=4), "attention", function)
    if not different:
        return mending.other_problem("attention", 4, function)
    fallen = mending.losses(model)
    if sentence := mending.leak_sentence(model):
        return f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}", likely
    return (
        f"nothing leaks, but this is not the attention of the course's model: {different}",
        likely,
    )


def _heads_broken(self, x):
    """Apply attention with H heads: (B, T, C) -> (B, T, C). Somewhere positions get mixed."""
    B, T, C = x.shape
    H = self.heads
    q, k, v = (f(x).reshape(B, H, T, C // H) for f in (self.query, self.key, self.value))  # (B, H, T, D)
    context, self.weights = F.attention(q, k, v, F.causal_mask(T))  # (B, H, T, D)
    return self.output(context.swapaxes(1, 2).reshape(B, T, C))


@exercise(
    "06.3",
    "Find the bug: heads made by a bare reshape",
    minutes=10,
    difficulty="medium",
    hints=(
        "Follow the numbers of position 1: at which index of (B, H, T, D) does each of them land?",
        "A reshape keeps the numbers in their order in memory. Cut into (B, T, H, D) first, then swap axes.",
    ),
    next_thought="The mask was right all along. Why could it not help?",
    broken=_heads_broken,
    forbids=("SelfAttention",),
    examine=_examine_heads,
    mistakes=(
        Mistake(f"{RESHAPE}: cut into (B, T, H, D), then swap axes 1 and 2", _CUT, "reshape(B, H, T, C // H)"),
        Mistake(
            f"the merge and the cut are bare reshapes, and {RESHAPE}: swap axes 1 and 2",
            f"{_CUT}{_REST}context.swapaxes(1, 2)",
            f"reshape(B, H, T, C // H){_REST}context",
        ),
        Mistake("nothing is hidden: pass the causal mask to F.attention, F.causal_mask(T)", ", F.causal_mask(T))", ")"),
        Mistake(
            "the causal mask is transposed: its rows are queries and its columns keys",
            "F.causal_mask(T)",
            "F.causal_mask(T).T",
        ),
        Mistake("the output matrix is missing: self.output(...) mixes the heads at the end", "self.output(", "("),
        Mistake(
            f"the merge is a bare reshape, and {RESHAPE}: swap axes 1 and 2 first",
            "context.swapaxes(1, 2).reshape",
            "context.reshape",
        ),
        Mistake(_SWAPPED, "attention(q, k, v", "attention(k, q, v"),
        Mistake(_SWAPPED, "attention(q, k, v", "attention(q, v, k"),
    ),
)
def heads_forward(self, x):
    """Apply attention with H heads: (B, T, C) -> (B, T, C)."""
    B, T, C = x.shape
    H = self.heads
    q, k, v = (f(x).reshape(B, T, H, C // H).swapaxes(1, 2) for f in (self.query, self.key, self.value))
    context, self.weights = F.attention(q, k, v, F.causal_mask(T))  # (B, H, T, D)
    return self.output(context.swapaxes(1, 2).reshape(B, T, C))


head_sizes = question(
    "06.4",
    "The heads of GPT-2",
    minutes=5,
    difficulty="easy",
    hints=(
        "The width is divided among the heads: D = C / H.",
        "Each of the four matrices is C by C, for all heads together.",
    ),
    next_thought="With 24 heads instead of 12: which of the two numbers changes?",
    value=[64, 4 * 768**2],
    answer="[64, 2359296]: 768 / 12 = 64, and 4 · 768² = 2,359,296. The second does not depend on the heads.",
    mistakes=(
        Mistake(
            "the order of the two numbers: first the size of one head, then the matrices",
            value=[4 * 768**2, 64],
        ),
        Mistake("the biases are counted, too: here only the matrices count", value=[None, 4 * 768**2 + 4 * 768]),
        Mistake("each head has only a part of the width: 768 / 12", value=[768, None]),
        Mistake("the output matrix is missing: there are four", value=[None, 3 * 768**2]),
        Mistake("that is one matrix: there are four", value=[None, 768**2]),
        Mistake("the heads share the matrices: do not count them once for each head", value=[None, 12 * 4 * 768**2]),
        Mistake(
            "each head reads all 768 numbers of a word: its matrices are 768 × 64, and there are twelve side by side",
            value=[None, 4 * 768 * 64],
        ),
    ),
)
