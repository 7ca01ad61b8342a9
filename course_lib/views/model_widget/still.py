"""The still picture of a model at work, for saved notebooks and for readers without JavaScript. Sizes are in pixels."""

import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch

from .. import style
from ..cells import colours, put_heading
from ..labels import drawn, readable

ROAD = "#a9bccf"
EACH, START, END, BARS = 92, 98, 84, 190  # widths: of a station, of both ends, of the list of next tokens
TOP, BOX, NORM, STREAM, SIZE, STOPS = 66, 92, 186, 232, 276, 290
HEIGHT, STRIP = 368, 60
FROM_EACH_END = 3  # blocks that are drawn of a deep model
FOLLOWING, STOPPED = 8, 3


def still_png(inside, plan, text, focus, name):
    """Draw what the model did for the token ``focus``: (PNG bytes, shown width in pixels).

    ``inside``: an Inside; ``plan``: of ``plan_of``; ``text``: as far as that token; ``name``: from an id to its token.
    """
    blocks = list(range(plan["layers"]))
    if len(blocks) > 2 * FROM_EACH_END:
        blocks = [*blocks[:FROM_EACH_END], None, *blocks[-FROM_EACH_END:]]
    kinds = ("attention", "mlp") if plan["mlp"] else ("attention",)
    wide = START + sum(EACH * len(kinds) if block is not None else 40 for block in blocks)
    width = wide + END + BARS
    fig = style.card_figure(width / 96, HEIGHT / 96)
    column = list(inside.positions).index(focus)
    chances = _softmax(inside.lens[:, column])  # (S, V)
    stream = inside.stream[:, focus]
    sizes = np.linalg.norm(stream, axis=-1)
    with style.rules():
        ax = fig.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(HEIGHT, 0), facecolor="none")
        ax.axis("off")
        pen = _Pen(ax, stream, sizes, chances, name)
        shown = readable(text if len(text) < 52 else "…" + text[-50:])
        put_heading(ax, f"A GPT reads “{shown}”", 18, 24, (width - 36) / 96)
        _start(pen, plan)
        x = START
        for block in blocks:
            if block is None:
                pen.road(x, x + 40, sizes[1 + len(kinds) * FROM_EACH_END])
                pen.text(x + 20, STREAM - 16, "…", 14)
                x += 40
                continue
            pen.box(x + 3, TOP - 16, EACH * len(kinds) - 6, SIZE - TOP + 24, edge=style.GRID, dashed=True)
            pen.text(x + 12, TOP - 8, f"block {block}", 7.5, colour=style.MUTED, align="left")
            for n, kind in enumerate(kinds):
                _station(pen, inside, plan, x, block, kind, 1 + len(kinds) * block + n, focus)
                x += EACH
        _end(pen, plan, x, chances[-1])
    return style.png_bytes(fig), style.shown_width(fig)


def _start(pen, plan):
    learned = any(part["kind"] == "position" for part in plan["parts"])
    pen.line((30, TOP + BOX), (30, STREAM))
    for label, y in (("tokens", TOP), ("positions", TOP + 52)) if learned else (("tokens", TOP),):
        pen.box(12, y, START - 26, 40 if learned else BOX)
        pen.text(12 + (START - 26) / 2, y + (20 if learned else BOX / 2), label, 8)
    if learned:
        pen.plus(12 + (START - 26) / 2, TOP + 46, 6)
    pen.road(30, START, pen.sizes[0])
    pen.place(0, START)


def _station(pen, inside, plan, x, block, kind, place, focus):
    """Draw one attention or MLP, the strip of the stream behind it, and what would come next there."""
    out, back = x + 24, x + EACH - 36
    if plan["residual"]:
        pen.road(x, x + EACH, pen.sizes[place - 1], pen.sizes[place], back)
    else:
        pen.road(x, out, pen.sizes[place - 1])
        pen.road(back, x + EACH, pen.sizes[place])
    pen.line((out, STREAM), (out, TOP + BOX), arrow=True)
    pen.line((back, TOP + BOX), (back, STREAM - 9), arrow=True)
    if plan["residual"]:
        pen.plus(back, STREAM)
    if plan["norm"]:
        at = (x + 5, NORM - 9) if plan["norm"] == "pre" else (x + 44, STREAM - 9)
        pen.box(*at, 38, 18)
        pen.text(at[0] + 19, at[1] + 9, "norm", 7)
    pen.box(x + 6, TOP, EACH - 12, BOX)
    pen.text(x + EACH / 2, TOP + 10, "MLP" if kind == "mlp" else "attention", 8)
    if kind == "attention":
        heads = inside.trace.weights[block]
        across = int(np.ceil(np.sqrt(len(heads))))
        size = min((EACH - 20 - 3 * across) / across, 66 / np.ceil(len(heads) / across))
        for h, weights in enumerate(heads):
            left, top = x + 10 + (h % across) * (size + 3), TOP + 20 + (h // across) * (size + 3)
            pen.image(colours(weights, (0, 1)), left, top, size, size)
    else:
        units = inside.hidden[block][focus]
        best = units[np.argsort(-np.abs(units), kind="stable")[:8]]
        most = max(np.abs(hidden).max() for hidden in inside.hidden) or 1.0
        for n, value in enumerate(best):
            colour = style.HIGHLIGHT if value > 0 else style.PALETTE[0]
            pen.fill(x + 12, TOP + 21 + 8 * n, max(1, abs(value) / most * (EACH - 24)), 6, colour)
    pen.place(place, x + EACH)


def _end(pen, plan, x, chances):
    pen.road(x, x + 25, pen.sizes[-1])
    pen.line((x + 24, STREAM), (x + 24, TOP + BOX), arrow=True)
    if plan["norm"] == "pre":
        pen.box(x + 5, NORM - 9, 38, 18)
        pen.text(x + 24, NORM, "norm", 7)
    pen.box(x + 5, TOP, 58, BOX)
    pen.text(x + 34, TOP + BOX / 2, "head", 8)
    pen.line((x + 63, TOP + BOX / 2), (x + END - 4, TOP + BOX / 2), arrow=True)
    left = x + END + 4
    pen.text(left, TOP - 14, "What comes next", 8.5, weight="bold", align="left")
    for n, token in enumerate(np.argsort(-chances, kind="stable")[:FOLLOWING]):
        y = TOP + 6 + 21 * n
        pen.text(left, y, drawn(pen.name(int(token)), 9), 8, align="left")
        pen.fill(left + 62, y - 5, 72, 10, style.GRID)
        pen.fill(left + 62, y - 5, 72 * chances[token], 10, style.HIGHLIGHT)
        pen.text(left + 172, y, f"{chances[token]:.2f}", 8, align="right")


class _Pen:
    """What the picture is drawn with, in pixels from its upper left corner."""

    def __init__(self, ax, stream, sizes, chances, name):
        self.ax, self.stream, self.sizes, self.chances, self.name = ax, stream, sizes, chances, name
        self.most = np.abs(stream).max() or 1.0
        self.answer = int(chances[-1].argmax())

    def text(self, x, y, text, points, colour=style.INK, weight="normal", align="center"):
        self.ax.text(
            x, y, text, fontsize=points, color=colour, weight=weight, ha=align, va="center_baseline", parse_math=False
        )

    def line(self, start, end, arrow=False):
        how = {"arrowstyle": "-|>" if arrow else "-", "color": style.MUTED, "lw": 1, "shrinkA": 0, "shrinkB": 0}
        self.ax.annotate("", end, start, arrowprops=how | {"mutation_scale": 8}, zorder=1)

    def box(self, x, y, width, height, edge=style.MUTED, dashed=False):
        how = {
            "facecolor": "none" if dashed else "#ffffff",
            "edgecolor": edge,
            "ls": "--" if dashed else "-",
            "zorder": 2,
        }
        self.ax.add_patch(
            FancyBboxPatch((x + 4, y + 4), width - 8, height - 8, boxstyle="round,pad=4,rounding_size=5", lw=0.9, **how)
        )

    def fill(self, x, y, width, height, colour, zorder=3):
        self.ax.add_patch(
            FancyBboxPatch((x, y), width, height, boxstyle="square,pad=0", facecolor=colour, lw=0, zorder=zorder)
        )

    def plus(self, x, y, r=8):
        self.ax.add_patch(Circle((x, y), r, facecolor=style.CARD, edgecolor=style.INK, lw=1, zorder=4))
        self.text(x, y + 0.5, "+", 10)
        self.ax.texts[-1].set_zorder(5)

    def road(self, start, end, size, after=None, turn=None):
        """Draw a piece of the road, as thick as the stream is large; ``after`` is its size from ``turn`` on."""
        for x0, x1, value in ((start, turn or end, size), (turn or end, end, after)):
            if value is not None:
                thick = 3 + 10 * value / self.sizes.max()
                self.fill(x0, STREAM - thick / 2, x1 - x0, thick, ROAD, zorder=1)

    def image(self, rgba, x, y, width, height):
        shown = self.ax.imshow(
            rgba, extent=(x, x + width, y + height, y), interpolation="nearest", aspect="auto", zorder=3
        )
        shown.set_clip_on(False)
        frame = {"facecolor": "none", "edgecolor": style.GRID, "lw": 0.6, "zorder": 4}
        self.ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="square,pad=0", **frame))
        self.ax.set(xlim=(0, self.ax.figure.get_figwidth() * 96), ylim=(HEIGHT, 0))

    def place(self, place, right):
        """Draw the strip of the stream at a place that ends at ``right``, its size, and what would come next there."""
        x = self.stream[place] / self.most
        rgba = style.DIVERGING(0.5 + 0.5 * np.sign(x) * np.sqrt(np.abs(x)))[:, None]
        self.image(rgba, right - 20, STREAM - STRIP / 2, 16, STRIP)
        self.text(right - 4, SIZE - 4, f"size {self.sizes[place]:.1f}", 7, colour=style.MUTED, align="right")
        left = right - EACH + 8
        for n, token in enumerate(np.argsort(-self.chances[place], kind="stable")[:STOPPED]):
            y, chance = STOPS + 11 + 21 * n, self.chances[place][token]
            self.fill(left, y - 9, EACH - 12, 18, "#f0efe9")
            self.fill(left, y - 9, (EACH - 12) * chance, 18, "#efc9ad")
            weight = "bold" if token == self.answer else "normal"
            self.text(left + 4, y, drawn(self.name(int(token)), 7), 8, weight=weight, align="left")
            self.text(right - 8, y, f"{100 * chance:.0f}%", 8, weight=weight, align="right")


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
