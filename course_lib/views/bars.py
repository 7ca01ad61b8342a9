"""Two bars per label, one before and one after a change."""

import numpy as np

from . import style
from .cells import number, text_width

WIDTH, BAR, ABOVE, BELOW = 5.4, 0.25, 0.5, 0.62  # inches: card, row of a label, room for legend and axis


def before_and_after(names, before, after, legend):
    """Return a figure of wide pale bars for probabilities before, each under a narrow strong bar for the one after.

    ``names``: one per pair, from the top down, already ``drawn``. ``legend``: two names, before and after. The layout
    is fixed, so that a redraw need not search for one.
    """
    height = ABOVE + BAR * len(names) + BELOW
    left = max(text_width(name, 9) for name in names) + 0.3
    fig = style.card_figure(WIDTH, height)
    with style.rules():
        ax = fig.add_axes((left / WIDTH, BELOW / height, (WIDTH - left - 0.3) / WIDTH, BAR * len(names) / height))
        positions = np.arange(len(names))
        pale = ax.barh(positions, before, height=0.8, color=style.PALETTE[0], alpha=0.3, label=legend[0])
        strong = ax.barh(positions, after, height=0.4, color=style.PALETTE[1], label=legend[1])
        for position, pair in enumerate(zip(before, after, strict=True)):
            ax.annotate(
                number(pair[1]),
                (max(pair), position),
                xytext=(4, 0),
                textcoords="offset points",
                va="center_baseline",
                fontsize=8.5,
            )
        ax.set_yticks(positions, names, parse_math=False)
        ax.grid(False, axis="y")
        ax.set_xticks(np.linspace(0, 1, 6))  # always the whole axis: bars of two settings can be compared
        ax.set(xlabel="probability", xlim=(0, 1.14), ylim=(len(names) - 0.5, -0.5))
        fig.legend(handles=[pale, strong], loc="upper left", bbox_to_anchor=(0.02, 1 - 0.1 / height), ncols=2)
    return fig
