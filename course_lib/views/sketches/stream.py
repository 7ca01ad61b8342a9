"""The residual stream with the norm before or after the sum, and the MLP that widens and narrows one vector."""

from ..style import PALETTE
from .marks import TONES, Sketch

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
