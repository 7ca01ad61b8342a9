"""Two bars a label, one before and one after a change."""

import numpy as np

from . import style
from .cells import number, text_width

WIDTH, BAR, ABOVE, BELOW = 5.4, 0.25, 0.5, 0.62  # inches: the card, one label's row, room for the legend, for the axis


def before_and_after(names, before, after, labels=("before", "after"), xlabel="probability"):
    """A figure of wide pale bars for the values before, on each a narrow strong one for the value after, as a number.

    names: one label a pair, from the top down; they must be drawable (`labels.drawn`). Everything has its place in
    inches, so that a redraw needs no search for a layout.
    """
    height = ABOVE + BAR * len(names) + BELOW
    left = max(text_width(name, 9) for name in names) + 0.3
    fig = style.card_figure(WIDTH, height)
    with style.rules():
        ax = fig.add_axes((left / WIDTH, BELOW / height, (WIDTH - left - 0.3) / WIDTH, BAR * len(names) / height))
        places = np.arange(len(names))
        pale = ax.barh(places, before, height=0.8, color=style.PALETTE[0], alpha=0.3, label=labels[0])
        strong = ax.barh(places, after, height=0.4, color=style.PALETTE[1], label=labels[1])
        for place, pair in enumerate(zip(before, after, strict=True)):
            ax.annotate(
                number(pair[1]),
                (max(pair), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center_baseline",
                fontsize=8.5,
            )
        ax.set_yticks(places, names, parse_math=False)
        ax.grid(False, axis="y")
        ax.set(xlabel=xlabel, xlim=(0, max(*before, *after) * 1.14), ylim=(len(names) - 0.5, -0.5))
        fig.legend(handles=[pale, strong], loc="upper left", bbox_to_anchor=(0.02, 1 - 0.1 / height), ncols=2)
    return fig
