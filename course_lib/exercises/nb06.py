"""Exercises of notebook 06: many heads from one matrix."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from . import mending
from .exercise import (
    FLOAT_SIZE,
    Mistake,
    a_float_size,
    arrays,
    drawn,
    draws,
    exercise,
    numbered,
    question,
    varied,
)
from .words import plain


def _right_qkv(x, heads):
    return tuple(F.split_heads(Tensor(part), heads).data for part in np.split(x, 3, axis=-1))


def _beside(parts):
    """Return three arrays (B, T, H, D) as one product (B, T, 3C), and H."""
    return np.concatenate([x.reshape(*x.shape[:2], -1) for x in parts], axis=-1), parts[0].shape[2]


_CUT_PART = "part.reshape(B, T, heads, C // heads).swapaxes(1, 2)"
_BARE = "a bare reshape gives the right shape but mixes the positions: cut first, then swap axes"
_ACROSS = "the pieces are cut across: each head should get D adjacent numbers, so reshape to (.., H, D)"
_ORDER = "the order is another: first q, then k, then v"


@exercise(
    "06.1",
    "Split one product into heads",
    minutes=12,
    difficulty="medium",
    hints=(
        "First cut the row of 3C numbers in three: which of them are the queries'?",
        "x[..., :C] are the queries', with C = x.shape[-1] // 3. Then cut each of the three into heads.",
        "A part (B, T, C) becomes (B, T, H, D) by a reshape, and swapaxes(1, 2) puts the heads before the positions.",
    ),
    next_thought="GPT-2 stores the three matrices as one of 768 × 2304. What does one product save, and what not?",
    cases=lambda: [
        (numbered(2, 3, 12), 2),
        (*arrays(0, (1, 4, 18)), 3),
        (*arrays(1, (2, 2, 12), dtype="float32"), 4),
        *varied(*arrays(2, (2, 3, 12)), 2, by=[1]),
        (*arrays(3, (2, 1, 12)), 2),
    ],
    more=lambda rng: [_beside(drawn(rng, "bthd bthd bthd", n)) for n in range(5)],
    right=_right_qkv,
    forbids=("split_heads", "linear_heads"),
    mistakes=(
        Mistake(_BARE, _CUT_PART, "part.reshape(B, heads, T, C // heads)"),
        Mistake(_BARE, "x[..., i * C : (i + 1) * C]", "x.reshape(3, B, T, C)[i]"),
        Mistake(_BARE, f"{_CUT_PART} for part in parts", "x.reshape(3, B, heads, T, C // heads)[i] for i in range(3)"),
        Mistake("the heads must come before the positions: swap axes 1 and 2", ".swapaxes(1, 2)", ""),
        Mistake(
            "cut first, then swap: after the swap the numbers of a head no longer lie side by side",
            _CUT_PART,
            "part.swapaxes(1, 2).reshape(B, heads, T, C // heads)",
        ),
        Mistake(
            "the heads are in front of the batch: it should be (B, H, T, D)",
            ".swapaxes(1, 2)",
            ".transpose(2, 0, 1, 3)",
        ),
        Mistake(
            "the axes of the cut are swapped: reshape to (B, T, heads, C // heads), then swap T and H",
            "heads, C // heads)",
            "C // heads, heads)",
        ),
        Mistake(_ACROSS, _CUT_PART, "part.reshape(B, T, C // heads, heads).transpose(0, 3, 1, 2)"),
        Mistake("the last two axes are swapped: it should end in (T, D)", ".swapaxes(1, 2)", ".transpose(0, 2, 3, 1)"),
        Mistake(
            "queries, keys and values lie side by side, not in turn: the first C numbers are the queries'",
            "x[..., i * C : (i + 1) * C]",
            "x[..., i::3]",
        ),
        Mistake(
            "the heads are cut before q, k and v: the first C numbers are the queries', of all heads",
            "x[..., i * C : (i + 1) * C]",
            "x.reshape(B, T, heads, 3, C // heads)[:, :, :, i]",
        ),
        Mistake(_ORDER, "return q, k, v", "return k, q, v"),
        Mistake(_ORDER, "return q, k, v", "return q, v, k"),
        Mistake(_ORDER, "return q, k, v", "return v, k, q"),
        Mistake(_ORDER, "return q, k, v", "return k, v, q"),
        Mistake(_ORDER, "return q, k, v", "return v, q, k"),
        Mistake(FLOAT_SIZE, when=a_float_size),
    ),
)
def split_qkv(x, heads):
    """Split x (B, T, 3C), with q, k and v side by side, into q, k and v, each (B, H, T, D), D = C / H."""
    B, T, C = x.shape[0], x.shape[1], x.shape[2] // 3
    parts = [x[..., i * C : (i + 1) * C] for i in range(3)]  # (B, T, 3C) -> three times (B, T, C)
    q, k, v = (part.reshape(B, T, heads, C // heads).swapaxes(1, 2) for part in parts)  # -> (B, H, T, D)
    return q, k, v


_MERGED = "heads.swapaxes(0, 1).swapaxes(1, 2).reshape(B, T, H * D)"


@exercise(
    "06.2",
    "Merge a stack of heads",
    minutes=8,
    difficulty="easy",
    hints=(
        "In the result, which numbers come right after the D numbers of head 0? Which axes must be last, side by side?",
        "H and D must be the last two axes. Two swaps of neighbours bring H there: (H, B, T, D) → (B, H, T, D) → …",
        "From (B, T, H, D), a reshape to (B, T, H · D) makes the two one axis.",
    ),
    next_thought="np.concatenate(heads, axis=-1) does it in one call. Why does it need no swap?",
    cases=lambda: [
        (numbered(2, 2, 3, 4),),
        arrays(0, (3, 1, 4, 2)),
        arrays(1, (4, 2, 2, 1), dtype="float32"),
        arrays(2, (1, 2, 3, 2)),
        arrays(3, (3, 2, 1, 2)),
    ],
    more=draws("hbtd", turns=5),
    right=lambda heads: F.merge_heads(Tensor(np.moveaxis(heads, 0, 1))).data,
    forbids=("merge_heads",),
    mistakes=(
        Mistake(
            "a bare reshape: it leaves the heads first, not the heads of one position side by side",
            ".swapaxes(0, 1).swapaxes(1, 2).reshape",
            ".reshape",
        ),
        Mistake(
            "the heads still come before the positions: one more swap, (B, H, T, D) → (B, T, H, D)",
            ".swapaxes(1, 2)",
            "",
        ),
        Mistake(
            "batch and positions are exchanged: before the reshape it should be (B, T, H, D)",
            ".swapaxes(0, 1).swapaxes(1, 2)",
            ".swapaxes(0, 2)",
        ),
        Mistake("the axes are swapped, but H and D are not yet joined into one axis C", ".reshape(B, T, H * D)", ""),
        Mistake(
            "the numbers of the heads are interleaved: it should be all of head 0, then all of head 1",
            ".swapaxes(0, 1).swapaxes(1, 2)",
            ".transpose(1, 2, 3, 0)",
        ),
        Mistake(
            "the first axis of a stack is the heads, the second the batch: (H, B, T, D)",
            _MERGED,
            "heads.swapaxes(1, 2).reshape(H, T, B * D)",
        ),
        Mistake(
            "the heads lie behind one another along the positions: they belong side by side, along the last axis",
            _MERGED,
            "heads.swapaxes(0, 1).reshape(B, H * T, D)",
        ),
        Mistake("the heads are added up: they should lie side by side", _MERGED, "heads.sum(axis=0)"),
        Mistake("only one head came through", _MERGED, "heads[0]"),
    ),
)
def merge_stack(heads):
    """Merge a stack of heads (H, B, T, D) -> (B, T, C), C = H·D, head 0's numbers first."""
    H, B, T, D = heads.shape
    return heads.swapaxes(0, 1).swapaxes(1, 2).reshape(B, T, H * D)  # (H, B, T, D) -> (B, T, H, D) -> (B, T, C)


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
        Mistake(_ACROSS, _CUT, "reshape(B, T, C // H, H).permute(0, 3, 1, 2)"),
        Mistake(
            _ACROSS,
            f"{_CUT}{_REST}context.swapaxes(1, 2)",
            f"reshape(B, T, C // H, H).permute(0, 3, 1, 2){_REST}context.permute(0, 2, 3, 1)",
        ),
        Mistake(
            "the axes of the cut are swapped: reshape to (B, T, H, D), then swap T and H",
            _CUT,
            "reshape(B, T, C // H, H).swapaxes(1, 2)",
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


def _rounded(got, want, case):
    """Return True if the second number is the right one to 2 to 6 digits, rounded or cut."""
    mine, right = float(plain(got[1])), want[1]
    steps = (10**places for places in range(1, 6))
    return mine != right and any(mine in (right // step * step, round(right / step) * step) for step in steps)


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
        Mistake(
            "no matrix is 64 × 64: each reads all 768 numbers of a word and gives 768, 12 heads of 64",
            value=[None, 4 * 64 * 64],
        ),
        Mistake("the number of parameters is rounded too far: here every one counts", when=_rounded),
    ),
)
