"""One attention head as a large picture, redrawn for each choice. Sizes are in inches."""

import math

import numpy as np
from matplotlib.patches import Rectangle

from . import style
from .cells import colour_bar, colours, fit_heading, hatching, ink_on, not_allowed_key, number, put_heading, text_width

FADE = 0.5  # how much of the card shows through the rows that are not in focus
NUMBERS_UP_TO = 10  # rows or columns: larger matrices are drawn without the numbers in their cells
SAYS_SOMETHING = 0.05  # a smaller weight has its number only in the row in focus


class HeadPicture:
    """One head, large: rows are queries, columns are keys. The figure is built once and redrawn for each head.

    ``rows``, ``columns``: the labels. ``limits``: the values at the ends of the colour bar. ``outside``: whether there
    are values below and above them. ``hatch``: keep room for the legend of the hatching.
    """

    def __init__(self, rows, columns, limits, outside, hatch):
        self.limits = limits
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
            ax.set_xticks(
                range(0, k, step),
                columns[::step],
                fontsize=points,
                parse_math=False,
                rotation=turn,
                ha="left" if turn == 45 else "center",
                rotation_mode="anchor" if turn == 45 else "default",
            )
            self.row_labels = dict(zip(range(0, q, step), ax.get_yticklabels(), strict=False))
            small = {"color": style.MUTED, "fontsize": 9}
            inch = fig.dpi_scale_trans
            name, middle = "query: the token that looks", bottom + q * cell / 2
            if text_width(name, 9) > 2 * min(middle, self.height - 0.45 - middle) - 0.2:
                name = "query"
            ax.text(
                0.24,
                middle,
                name,
                transform=inch,
                rotation=90,
                ha="center",
                va="center",
                **small,
            )
            ax.text(left, self.height - 0.55, "key: the token it looks at", transform=inch, va="center", **small)
            self.title = put_heading(ax, "", 0.2, self.height - 0.27, self.width - 0.4, transform=inch)
            bar = min(q * cell, 2.6)
            colour_bar(fig, (left + k * cell + 0.22, bottom + q * cell - bar, 0.15, bar), limits, outside)
            if hatch:
                under = fig.add_axes((0, 0, 1, 1), xlim=(0, self.width), ylim=(self.height, 0), facecolor="none")
                under.axis("off")
                not_allowed_key(under, left, self.height - 0.31)
            self.numbers = []
            if max(q, k) <= NUMBERS_UP_TO:
                self.numbers = [
                    [ax.text(j, i, "", ha="center", va="center", fontsize=8.5) for j in range(k)] for i in range(q)
                ]
            if max(q, k) <= 16:  # thin lines between the cells
                ax.hlines(np.arange(0.5, q - 1), -0.5, k - 0.5, color=style.GRID, linewidth=0.6, zorder=0.5)
                ax.vlines(np.arange(0.5, k - 1), -0.5, q - 0.5, color=style.GRID, linewidth=0.6, zorder=0.5)
            shade = {"facecolor": style.CARD, "alpha": FADE, "linewidth": 0, "zorder": 2.5}
            self.above, self.below = (ax.add_patch(Rectangle((-0.5, -0.5), k, 0, **shade)) for _ in range(2))
            self.frame = ax.add_patch(
                Rectangle((-0.5, 0), k, 1, fill=False, edgecolor=style.HIGHLIGHT, linewidth=2, zorder=4, clip_on=False)
            )
        self.hatched, self.shown_mask = None, None

    def png(self, matrix, allowed, title, row):
        """Return the head as PNG bytes, with ``row`` framed and the others faded, unless it is None."""
        rgba = colours(matrix, self.limits)
        self.image.set_data(rgba)
        self._hatch(allowed)
        inks = ink_on(rgba)
        shown = np.ones(matrix.shape, dtype=bool) if allowed is None else np.array(allowed)
        if row is not None:
            shown &= (np.arange(len(matrix)) == row)[:, None]  # faded cells carry no numbers
        elif self.limits == (0, 1):
            shown &= matrix >= SAYS_SOMETHING
        for i, line in enumerate(self.numbers):
            for j, text in enumerate(line):
                text.set_text(number(matrix[i, j]) if shown[i, j] else "")
                text.set_color(str(inks[i, j]))
        fit_heading(self.title, title, self.width - 0.4)
        for i, label in self.row_labels.items():
            label.set_weight("bold" if i == row else "normal")
        for patch in (self.above, self.below, self.frame):
            patch.set_visible(row is not None)
        if row is not None:
            self.above.set_height(row)
            self.below.set(y=row + 0.5, height=len(rgba) - row - 1)
            self.frame.set_y(row - 0.5)
        return style.png_bytes(self.fig)

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
