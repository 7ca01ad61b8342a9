"""Exercises of notebook 05: many heads from one matrix."""

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from .cases import arrays, numbered
from .exercise import Mistake, exercise


@exercise(
    "05.1",
    "Split into heads",
    minutes=10,
    difficulty="middle",
    task="""
Cut each position's C numbers into H pieces of D = C / H, and put the heads before the positions:
(B, T, C) → (B, H, T, D). Head 0 gets the first D numbers of *every* position.
""",
    hints=(
        "First only cut: which shape has each position's C numbers as H rows of D?",
        "x.reshape(B, T, H, D). Now the heads stand behind the positions.",
        "swapaxes(1, 2) exchanges T and H. A bare reshape to (B, H, T, D) has the right shape and mixes positions.",
    ),
    next_thought="Which numbers does head 1 of position 0 hold? Would a bare reshape be noticed by looking at shapes?",
    cases=lambda: [(numbered(2, 3, 8), 2), (*arrays(0, (1, 4, 6)), 3), (*arrays(1, (2, 2, 4), dtype="float32"), 4)],
    right=lambda x, heads: F.split_heads(Tensor(x), heads).data,
    forbids=("split_heads",),
    mistakes=(
        Mistake(
            "a bare reshape: the shape is right, but the numbers of one position land in another's place. Cut first,"
            " then exchange axes",
            lambda x, heads: x.reshape(x.shape[0], heads, x.shape[1], -1),
        ),
        Mistake(
            "the heads must stand before the positions: exchange axes 1 and 2",
            lambda x, heads: x.reshape(*x.shape[:2], heads, -1),
        ),
        Mistake(
            "H and D are exchanged: cut into (B, T, heads, C // heads), the heads first",
            lambda x, heads: x.reshape(*x.shape[:2], -1, heads),
        ),
        Mistake(
            "the axes of the cut are exchanged: reshape to (B, T, heads, C // heads), and then swap T and H",
            lambda x, heads: x.reshape(*x.shape[:2], -1, heads).swapaxes(1, 2),
        ),
        Mistake(
            "the pieces are cut across: each head should get D numbers that lie side by side, so reshape to (.., H, D)",
            lambda x, heads: x.reshape(*x.shape[:2], -1, heads).transpose(0, 3, 1, 2),
        ),
        Mistake(
            "the last two axes are exchanged: it should end in (T, D)",
            lambda x, heads: x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 3, 1),
        ),
        Mistake(
            "the batch has moved: (H, B, T, D) in place of (B, H, T, D)",
            lambda x, heads: x.reshape(*x.shape[:2], heads, -1).transpose(2, 0, 1, 3),
        ),
    ),
)
def split_heads(x, heads):
    """(B, T, C) → (B, H, T, D): head h of a position holds its numbers h·D to (h + 1)·D - 1."""
    B, T, C = x.shape
    x = x.reshape(B, T, heads, C // heads)  # (B, T, C) → (B, T, H, D)
    return x.swapaxes(1, 2)  # → (B, H, T, D)


@exercise(
    "05.2",
    "Merge the heads again",
    minutes=6,
    difficulty="easy",
    task="""
The way back: put the heads of each position side by side again, (B, H, T, D) → (B, T, C). What was split must come back
as it was.
""",
    hints=(
        "Undo the steps of the split, the last one first.",
        "swapaxes(1, 2) gives (B, T, H, D); now H and D lie side by side and can become one axis.",
    ),
    next_thought="After merging, the output matrix mixes the heads. What could a model without it not do?",
    cases=lambda: [(numbered(2, 2, 3, 4),), arrays(0, (1, 3, 4, 2)), arrays(1, (2, 4, 2, 1), dtype="float32")],
    right=lambda x: F.merge_heads(Tensor(x)).data,
    forbids=("merge_heads",),
    mistakes=(
        Mistake(
            "a bare reshape: it puts positions of one head side by side, not the heads of one position",
            lambda x: x.reshape(x.shape[0], x.shape[2], -1),
        ),
        Mistake(
            "the axes are exchanged, but H and D are not yet joined into one axis C",
            lambda x: x.swapaxes(1, 2),
        ),
        Mistake(
            "the numbers of the heads are interleaved: it should be all of head 0, then all of head 1",
            lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1),
        ),
        Mistake(
            "the heads are added up: they should lie side by side",
            lambda x: x.sum(axis=1),
        ),
        Mistake("only one head came through", lambda x: x[:, 0]),
    ),
)
def merge_heads(x):
    """(B, H, T, D) → (B, T, C), C = H·D: the inverse of split_heads."""
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)  # (B, H, T, D) → (B, T, H, D) → (B, T, C)
