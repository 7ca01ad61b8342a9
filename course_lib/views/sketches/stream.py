"""The residual stream with the norm before or after the sum, and the MLP that widens and narrows one vector."""

from ..style import MUTED, PALETTE
from .marks import EDGE, LIT_FILL, LIT_INK, TONES, Sketch

ROAD, BACK = PALETTE[0], PALETTE[2]


def draw_norm_places():
    """Draw one block with pre-norm above one with post-norm: where the norm is, and what a gradient must pass."""
    d = Sketch(
        930, 430,
        "One block twice, as a road with two side roads, attention and MLP. Above, pre-norm: LayerNorm is at the start "
        "of each side road, x + f(norm(x)); the road itself runs from the input to the output with nothing on it but "
        "the sums, and a gradient can come back along it unchanged. Below, post-norm: LayerNorm is on the road, after "
        "each sum, norm(x + f(x)); every gradient has to pass all of them.",
    )  # fmt: skip
    places = (("pre", 144, "Pre-norm:  x + f(norm(x))"), ("post", 344, "Post-norm:  norm(x + f(x))"))
    for norm, y, title in places:
        d.label(24, y - 110, title, 14, weight="bold", anchor="start")
        start, end, level, x, passed = 70, 850, y - 66, 110, []
        d.path([(start, y), (end, y)], ROAD, 5)
        for name in ("attention", "MLP"):
            d.path([(x, y), (x, level), (x + 30, level)], arrow=True)
            at = x + 30
            if norm == "pre":
                d.part(at + 47, level, 94, "LayerNorm", lit=True)
                d.path([(at + 94, level), (at + 120, level)], arrow=True)
                at += 120
            d.part(at + 52, level, 104, name)
            out = at + 104 + 36
            d.path([(at + 104, level), (out, level), (out, y - 10)], arrow=True)
            d.sign(out, y, "+")
            x = out + 44
            if norm == "post":
                d.part(out + 74, y, 94, "LayerNorm", lit=True)
                passed.append(out + 74)
                x = out + 74 + 47 + 34
        d.label(start - 22, y + 4.5, "x", 14)
        d.label(end + 34, y + 4.5, "new x", 14)
        low = y + 36
        d.path([(end, low), (start, low)], BACK, 2, arrow=True, dash="6 4")
        for at in passed:
            d.shape(at - 36, low - 11, 72, 22, TONES["green"][0], TONES["green"][1], 1.3)
            d.label(at, low + 4.3, "× slope", 12)
        words = (
            "the gradient comes back along the road as it is"
            if norm == "pre"
            else "the gradient goes through each LayerNorm"
        )
        d.label(460, low + 26, words, 12, TONES["green"][1])
    return d


def draw_mlp(width=4, unit=6):
    """Draw an MLP of C → 4C → C as crossing matrices, one column of the first and one row of the second lit.

    Raises ValueError for a unit that is not there.
    """
    hidden = 4 * width
    if not 0 <= unit < hidden:
        raise ValueError(f"unit {unit} is not one of the {hidden} hidden units")
    C, side, gap = width, 20, 12
    left, low = 66, 66 + hidden * side + gap
    middle = left + C * side + gap
    right = middle + hidden * side + gap + 56
    d = Sketch(
        right + C * side + 160, low + side + 62,
        f"An MLP as matrices: x, {C} numbers, times W up ({C}, {hidden}), drawn above the result, gives {hidden} "
        f"hidden units; the activation; and those times W down ({hidden}, {C}) give {C} numbers again. Hidden unit "
        f"{unit} is lit: its column of W up says what it looks for in x, its row of W down what it then adds.",
    )  # fmt: skip

    def cells(x, y, rows, columns, lit=()):
        for i in range(rows):
            for j in range(columns):
                d.shape(x + j * side, y + i * side, side, side, "#ffffff", "#a9a69b", 1, 0)
        for i, j, high, wide in lit:
            d.shape(x + j * side, y + i * side, wide * side, high * side, LIT_FILL, EDGE, 2.4, 0)

    d.label(24, 38, "One hidden unit is a column and a row", 14, weight="bold", anchor="start")
    for n, line in enumerate(("hidden = ReLU(x · W up + bias)", "out = hidden · W down + bias")):
        d.label(24, 64 + 20 * n, line, 13, MUTED, anchor="start")
    top = low - gap - C * side
    cells(left, low, 1, C)
    cells(middle, top, C, hidden, [(0, unit, C, 1)])
    cells(middle, low, 1, hidden, [(0, unit, 1, 1)])
    cells(right, low - gap - hidden * side, hidden, C, [(unit, 0, 1, C)])
    cells(right, low, 1, C)
    for x, wide, text in (
        (left, C, f"x ({C},)"),
        (middle, hidden, f"hidden units ({hidden},)"),
        (right, C, f"out ({C},)"),
    ):
        d.label(x + wide * side / 2, low + side + 22, text, 13, weight="bold")
    at = middle + (unit + 0.5) * side
    d.label(middle, top - 52, f"W up ({C}, {hidden})", 13, weight="bold", anchor="start")
    d.label(at, top - 22, "what this unit looks for", 12, LIT_INK, "bold")
    d.path([(at, top - 16), (at, top - 4)], LIT_INK, 1.6, arrow=True)
    start = middle + hidden * side
    d.path([(start + 8, low + side / 2), (right - 8, low + side / 2)], arrow=True)
    d.label((start + right) / 2, low + side / 2 - 10, "ReLU", 12, MUTED)
    high = low - gap - hidden * side
    d.label(right + C * side / 2, high - 14, f"W down ({hidden}, {C})", 13, weight="bold")
    y = high + (unit + 0.5) * side
    d.path([(right + C * side + 24, y), (right + C * side + 5, y)], LIT_INK, 1.6, arrow=True)
    d.label(right + C * side + 30, y - 3, "what it adds to", 12, LIT_INK, "bold", "start")
    d.label(right + C * side + 30, y + 13, "the stream", 12, LIT_INK, "bold", "start")
    return d
