"""Pictures of attention weights: one head large (`HeadPicture`), all heads small (`grid_png`). Sizes are in inches."""

import math
import unicodedata

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from . import style

NOT_ALLOWED, HATCH = "#e6e3da", "#a8a498"
FADE = 0.5  # how much of the card shows through the rows that are not in focus
NUMBERS_UP_TO = 10  # cells carry their numbers while there are at most so many rows and columns


def text_width(text, points):
    """Roughly how wide the text is, drawn at this size; East Asian wide signs count double."""
    units = sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.62 for c in text)
    return units * points / 72


def colours(matrix, limits, colour_map=style.SEQUENTIAL):
    """RGBA of each value: the map's first colour at limits[0], its last at limits[1]."""
    low, high = limits
    return colour_map((np.asarray(matrix, dtype=float) - low) / (high - low))


def ink_on(rgba):
    """White on a dark cell, nearly black on a light one."""
    return np.where((rgba[..., :3] @ [0.299, 0.587, 0.114]) < 0.55, "#ffffff", "#15181d")


def hatching(allowed, x=-0.5, y=-0.5, cell=1.0):
    """One patch that covers every cell where `allowed` is False, hatched, so that it cannot be taken for a zero."""
    vertices, codes = [], []
    for i, row in enumerate(allowed):
        edges = np.flatnonzero(np.diff(np.concatenate(([1], row.astype(int), [1]))))
        for start, stop in edges.reshape(-1, 2):  # neighbours in a row become one rectangle
            left, right, top, bottom = x + start * cell, x + stop * cell, y + i * cell, y + (i + 1) * cell
            vertices += [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
            codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    if not vertices:
        return None
    return PathPatch(Path(vertices, codes), facecolor=NOT_ALLOWED, edgecolor=HATCH, hatch="//////", linewidth=0)


def number(value):
    """A value as it is written in a cell: two decimals, an exact 0 as "0"."""
    return "0" if value == 0 else f"{value:.2f}"


def colour_bar(fig, box, limits, colour_map, outside=(False, False)):
    """A bar with numbers; ≤ or ≥ at an end beyond which there are values."""
    width, height = fig.get_size_inches()
    ax = fig.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    ax.imshow(np.linspace(0, 1, 256)[:, None], cmap=colour_map, aspect="auto", origin="lower", extent=(0, 1, *limits))
    ticks = np.linspace(*limits, 5 if box[3] > 1 else 3)
    names = [f"{t:.3g}" for t in ticks]
    names[0] = ("≤ " if outside[0] else "") + names[0]
    names[-1] = ("≥ " if outside[1] else "") + names[-1]
    ax.set_yticks(ticks, names, fontsize=8)
    ax.set_xticks([])
    ax.grid(False)
    ax.yaxis.tick_right()
    ax.tick_params(length=3, width=0.7)
    ax.spines[:].set_visible(False)


def not_allowed_key(ax, x, y, size=0.16):
    """The line of the legend that explains the hatching, at data coordinates in inches."""
    ax.add_patch(hatching(np.zeros((1, 1)), x, y, size))
    ax.text(x + size + 0.07, y + size / 2, "not allowed", fontsize=8.5, color=style.MUTED, va="center_baseline")


class HeadPicture:
    """One head, large: rows are queries, columns are keys. The figure is built once and redrawn for each head.

    rows, columns: the labels; limits: the values of the colour bar's ends; hatch: keep room for the hatching's key.
    `png(matrix, allowed, title, row)` → PNG bytes.
    """

    def __init__(self, rows, columns, limits=(0, 1), hatch=False, colour_map=style.SEQUENTIAL,
                 axis_names=("query: the token that looks", "key: the token it looks at"), outside=(False, False)):
        self.limits, self.colour_map = limits, colour_map
        q, k = len(rows), len(columns)
        cell = min(0.5, 5.0 / max(q, k))
        points = min(10.0, max(6.5, cell * 72 * 0.72))
        step = math.ceil(points * 1.05 / 72 / cell)  # leave labels out where they would overlap
        left = max(text_width(r, points) for r in rows) + 0.58
        longest = max(text_width(c, points) for c in columns)
        turn = 0 if longest < cell * 0.9 else 45 if cell > 0.25 else 90
        name_height = {0: 0.2, 45: 0.14 + longest * 0.71, 90: 0.06 + longest}[turn]
        top = 0.42 + 0.3 + name_height
        bottom = 0.44 if hatch else 0.2
        self.width = max(left + k * cell + 0.95 + (longest * 0.3 if turn == 45 else 0), 4.4)
        self.height = top + q * cell + bottom
        self.fig = fig = style.card_figure(self.width, self.height)
        with style.rules():
            across, down = k * cell / self.width, q * cell / self.height
            self.ax = ax = fig.add_axes((left / self.width, bottom / self.height, across, down))
            ax.grid(False)
            ax.spines[:].set_visible(False)
            self.image = ax.imshow(np.zeros((q, k, 4)), interpolation="nearest", aspect="auto")
            ax.tick_params(length=0, pad=3)
            ax.xaxis.tick_top()
            ax.set_yticks(range(0, q, step), rows[::step], fontsize=points, parse_math=False)
            ax.set_xticks(range(0, k, step), columns[::step], fontsize=points, parse_math=False, rotation=turn,
                          ha="left" if turn == 45 else "center", rotation_mode="anchor" if turn == 45 else "default")
            self.row_labels = dict(zip(range(0, q, step), ax.get_yticklabels(), strict=False))
            place = {"color": style.MUTED, "fontsize": 9}
            inch = fig.dpi_scale_trans
            ax.text(0.24, bottom + q * cell / 2, axis_names[0], transform=inch, rotation=90, ha="center", va="center", **place)
            ax.text(left, self.height - 0.55, axis_names[1], transform=inch, va="center", **place)
            self.title = ax.text(0.2, self.height - 0.27, "", transform=inch, fontsize=11, weight="bold", va="center",
                                 parse_math=False)
            bar = min(q * cell, 2.6)
            colour_bar(fig, (left + k * cell + 0.22, bottom + q * cell - bar, 0.15, bar), limits, colour_map, outside)
            if hatch:
                under = fig.add_axes((0, 0, 1, 1), xlim=(0, self.width), ylim=(self.height, 0), facecolor="none")
                under.axis("off")
                not_allowed_key(under, left, self.height - 0.31)
            self.numbers = []
            if max(q, k) <= NUMBERS_UP_TO:
                self.numbers = [[ax.text(j, i, "", ha="center", va="center", fontsize=8.5) for j in range(k)] for i in range(q)]
            if max(q, k) <= 16:  # thin lines between the cells
                ax.hlines(np.arange(0.5, q - 1), -0.5, k - 0.5, color=style.CARD, linewidth=0.8, zorder=0.5)
                ax.vlines(np.arange(0.5, k - 1), -0.5, q - 0.5, color=style.CARD, linewidth=0.8, zorder=0.5)
            shade = {"facecolor": style.CARD, "alpha": FADE, "linewidth": 0, "zorder": 2.5}
            self.above, self.below = (ax.add_patch(Rectangle((-0.5, -0.5), k, 0, **shade)) for _ in range(2))
            self.frame = ax.add_patch(Rectangle((-0.5, 0), k, 1, fill=False, edgecolor=style.HIGHLIGHT, linewidth=2,
                                                zorder=4, clip_on=False))
        self.hatched, self.shown_mask = None, None

    def png(self, matrix, allowed=None, title="", row=None, quick=False):
        """The head as PNG; `row` is framed and the others are faded."""
        rgba = colours(matrix, self.limits, self.colour_map)
        self.image.set_data(rgba)
        self._hatch(allowed)
        seen = rgba.copy()
        if row is not None:
            faded = np.arange(len(seen)) != row
            seen[faded, :, :3] = (1 - FADE) * seen[faded, :, :3] + FADE * np.array(to_rgb(style.CARD))
        inks = ink_on(seen)
        for i, line in enumerate(self.numbers):
            for j, text in enumerate(line):
                text.set_text(number(matrix[i, j]) if allowed is None or allowed[i, j] else "")
                text.set_color(str(inks[i, j]))
        self.title.set_text(title)
        for i, label in self.row_labels.items():
            label.set_weight("bold" if i == row else "normal")
        for patch in (self.above, self.below, self.frame):
            patch.set_visible(row is not None)
        if row is not None:
            self.above.set_height(row)
            self.below.set(y=row + 0.5, height=len(rgba) - row - 1)
            self.frame.set_y(row - 0.5)
        return style.png_bytes(self.fig, quick)

    def _hatch(self, allowed):
        if allowed is self.shown_mask:
            return
        if self.hatched is not None:
            self.hatched.remove()
        self.hatched = None if allowed is None else hatching(allowed)
        if self.hatched is not None:
            with style.rules():
                self.ax.add_patch(self.hatched)
        self.shown_mask = allowed


def grid_png(weights, allowed, rows, columns, limits, title, width=7.2):
    """All heads small: one panel a head, layers below each other. weights (L, H, Q, K) → (PNG bytes, width in inches)."""
    layers, heads, q, k = weights.shape
    across = heads if layers > 1 or heads <= 4 else 4 if heads <= 12 else 8
    down = layers if layers > 1 else math.ceil(heads / across)
    first, gap = 0.36, 0.14
    cell = min(2.1 / max(q, k), (width - 1.2 - gap * across) / across / k)
    points, step = 7.5, 1
    if cell * 72 >= 9:  # wide enough for the tokens
        points = min(9, cell * 72 * 0.8)
        names = max(text_width(r, points) for r in rows)
        first += names
        cell = min(2.1 / max(q, k), (width - 0.85 - first - gap * across) / across / k)
        step = math.ceil(points * 1.02 / 72 / cell)
    labelled = first > 0.36
    pitch_x, pitch_y = k * cell + gap, q * cell + (gap if layers > 1 else 0.32)
    top = 0.72
    feet = max(text_width(c, points) for c in columns) + 0.05 if labelled else 0.0
    legend = 0.3 if allowed is not None else 0.12
    total = max(first + across * pitch_x + 0.75, 4.4)
    height = top + down * pitch_y + feet + legend
    fig = style.card_figure(total, height)
    with style.rules():
        ax = fig.add_axes((0, 0, 1, 1), xlim=(0, total), ylim=(height, 0), facecolor="none")
        ax.axis("off")
        ax.text(0.2, 0.27, title, fontsize=11, weight="bold", va="center", parse_math=False)
        small = {"fontsize": 8.5 if pitch_x > 0.5 else 6, "color": style.MUTED}
        for n in range(layers * heads):
            line, column = divmod(n, across) if layers == 1 else divmod(n, heads)
            x, y = first + column * pitch_x, top + line * pitch_y
            head = (0, n) if layers == 1 else (line, column)
            image = ax.imshow(colours(weights[head], limits), extent=(x, x + k * cell, y + q * cell, y),
                              interpolation="nearest", aspect="auto")
            image.set_clip_on(False)
            if allowed is not None and (patch := hatching(allowed[head], x, y, cell)) is not None:
                ax.add_patch(patch)
            if layers == 1 or line == 0:
                ax.text(x + k * cell / 2, y - 0.06, f"head {head[1]}" if pitch_x > 0.42 else head[1], ha="center", **small)
            if column == 0 and layers > 1:
                ax.text(0.23, y + q * cell / 2, f"layer {line}" if pitch_y > 0.45 else line, rotation=90, ha="center",
                        va="center", **small)
            if labelled and column == 0:
                for i in range(0, q, step):
                    ax.text(x - 0.06, y + (i + 0.5) * cell, rows[i], ha="right", va="center_baseline", fontsize=points,
                            parse_math=False)
            if labelled and n + across >= layers * heads:
                for j in range(0, k, step):
                    ax.text(x + (j + 0.5) * cell, y + q * cell + 0.06, columns[j], ha="center", va="top", rotation=90,
                            fontsize=points, parse_math=False)
        ax.set(xlim=(0, total), ylim=(height, 0))
        bar = min(q * cell, 1.6)
        colour_bar(fig, (first + across * pitch_x + 0.06, height - top - bar, 0.13, bar), limits, style.SEQUENTIAL)
        if allowed is not None:
            not_allowed_key(ax, first, height - 0.28)
            ax.text(first + 1.2, height - 0.2, "rows: queries · columns: keys", fontsize=8.5, color=style.MUTED,
                    va="center_baseline")
    return style.png_bytes(fig), style.shown_width(fig)
