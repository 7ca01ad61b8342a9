"""All attention heads in small panels: the still picture in a saved notebook. Sizes are in inches."""

import math

from matplotlib.patches import Rectangle

from . import style
from .cells import colour_bar, colours, hatching, not_allowed_key, put_heading, text_width
from .mosaic import Mosaic

WIDTH = 7.2


def grid_png(weights, allowed, rows, columns, limits, title):
    """Draw one panel per head, one row per layer: weights (L, H, Q, K) -> (PNG bytes, shown width in pixels)."""
    layers, heads, q, k = weights.shape
    across = heads if layers > 1 or heads <= 4 else 4 if heads <= 12 else 8
    down = layers if layers > 1 else math.ceil(heads / across)
    first, gap = 0.36, 0.14
    cell = min(2.1 / max(q, k), (WIDTH - 1.2 - gap * across) / across / k)
    points, step = 7.5, 1
    if cell * 72 >= 9:  # wide enough for the tokens
        points = min(9, cell * 72 * 0.8)
        names = max(text_width(r, points) for r in rows)
        first += names
        cell = min(2.1 / max(q, k), (WIDTH - 0.85 - first - gap * across) / across / k)
        step = math.ceil(points * 1.02 / 72 / cell)
    labelled = first > 0.36
    pitch_x, pitch_y = k * cell + gap, q * cell + (gap if layers > 1 else 0.32)
    top = 0.72
    feet = max(text_width(c, points) for c in columns) + 0.05 if labelled else 0.0
    total = max(first + across * pitch_x + 0.75, 4.4)
    height = top + down * pitch_y + feet + 0.3
    fig = style.card_figure(total, height)
    with style.rules():
        ax = fig.add_axes((0, 0, 1, 1), xlim=(0, total), ylim=(height, 0), facecolor="none")
        ax.axis("off")
        put_heading(ax, title, 0.2, 0.27, total - 0.4)
        small = {"fontsize": 8.5 if pitch_x > 0.5 else 6, "color": style.MUTED}
        mosaic = Mosaic(total, height, limits) if layers * heads > 16 or max(q, k) > 128 else None
        edge = {"fill": False, "edgecolor": style.GRID, "linewidth": 0.6}  # a head without weights is white as the card
        for n in range(layers * heads):
            line, column = divmod(n, across) if layers == 1 else divmod(n, heads)
            x, y = first + column * pitch_x, top + line * pitch_y
            head = (0, n) if layers == 1 else (line, column)
            mask = None if allowed is None else allowed[head]
            ax.add_patch(Rectangle((x, y), k * cell, q * cell, **edge))
            if mosaic is not None:
                mosaic.put(weights[head], mask, x, y, k * cell, q * cell)
            else:
                image = ax.imshow(
                    colours(weights[head], limits),
                    extent=(x, x + k * cell, y + q * cell, y),
                    interpolation="nearest",
                    aspect="auto",
                )
                image.set_clip_on(False)
                if mask is not None and (patch := hatching(mask, x, y, cell)) is not None:
                    ax.add_patch(patch)
            if layers == 1 or line == 0:
                ax.text(
                    x + k * cell / 2, y - 0.06, f"head {head[1]}" if pitch_x > 0.42 else head[1], ha="center", **small
                )
            if column == 0 and layers > 1:
                ax.text(
                    0.23,
                    y + q * cell / 2,
                    f"layer {line}" if pitch_y > 0.45 else line,
                    rotation=90,
                    ha="center",
                    va="center",
                    **small,
                )
            if labelled and column == 0:
                for i in range(0, q, step):
                    ax.text(
                        x - 0.06,
                        y + (i + 0.5) * cell,
                        rows[i],
                        ha="right",
                        va="center_baseline",
                        fontsize=points,
                        parse_math=False,
                    )
            if labelled and n + across >= layers * heads:
                for j in range(0, k, step):
                    ax.text(
                        x + (j + 0.5) * cell,
                        y + q * cell + 0.06,
                        columns[j],
                        ha="center",
                        va="top",
                        rotation=90,
                        fontsize=points,
                        parse_math=False,
                    )
        if mosaic is not None:
            fig.figimage(mosaic.pixels, zorder=-5)  # unscaled
        ax.set(xlim=(0, total), ylim=(height, 0))
        bar = min(q * cell, 1.6)
        colour_bar(fig, (first + across * pitch_x + 0.06, height - top - bar, 0.13, bar), limits)
        hatched = allowed is not None and not allowed.all()
        if hatched:
            not_allowed_key(ax, 0.2, height - 0.28)
        names = {"fontsize": 8.5, "color": style.MUTED, "va": "center_baseline"}
        ax.text(1.4 if hatched else 0.2, height - 0.2, "rows: queries · columns: keys", **names)
    return style.png_bytes(fig, level=9 if mosaic is None else 6), style.shown_width(fig)
