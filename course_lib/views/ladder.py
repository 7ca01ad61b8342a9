"""The picture of the loss ladder: one step down a rung; a rung that cheats is marked at the edge, off the scale."""

from . import style
from .figures import figure, picture, put_title


def draw_ladder(ax, rungs, title=None):
    """``rungs``: dicts with ``name``, ``loss`` in nats and ``cheats``, the first on top."""
    honest = [(place, rung["loss"]) for place, rung in enumerate(rungs) if not rung["cheats"]]
    places, losses = [place for place, _ in honest], [loss for _, loss in honest]
    span = max(losses) - min(losses) or 1.0
    low, high = min(losses) - 0.22 * span, max(losses) + 0.16 * span
    ax.plot(losses, places, drawstyle="steps-pre", color=style.MUTED, linewidth=1.2, zorder=2)
    ax.scatter(losses, places, s=46, color=style.PALETTE[0], zorder=3)
    for place, loss in honest:
        ax.annotate(
            f"{loss:.2f}",
            (loss, place),
            xytext=(-9, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=9,
        )
    for place, rung in enumerate(rungs):
        if rung["cheats"]:
            ax.scatter([low], [place], s=70, marker="<", color=style.HIGHLIGHT, zorder=3, clip_on=False)
            words = f"{rung['loss']:.2f}: it cheats, off the scale"
            ax.annotate(words, (low, place), xytext=(11, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(range(len(rungs)), [rung["name"] for rung in rungs], parse_math=False)
    ax.set(xlim=(low, high), ylim=(len(rungs) - 0.5, -0.5), xlabel="validation loss (nats per character)")
    ax.grid(False, axis="y")
    put_title(ax, title)


def plot_ladder(rungs, *, alt, title=None, width=7.0, height=3.6):
    """Show the ladder in a notebook; ``alt``: one sentence that says what it shows."""
    with figure(width, height, alt=alt) as ax:
        draw_ladder(ax, rungs, title)


def ladder_picture(rungs, alt, title="What each idea buys", width=7.4, height=3.8):
    """The ladder as a Picture, for a file."""
    fig = style.card_figure(width, height, layout="constrained")
    fig.get_layout_engine().set(w_pad=0.14, h_pad=0.14, wspace=0.03, hspace=0.04)
    with style.rules():
        draw_ladder(fig.subplots(), rungs, title)
    return picture(fig, alt)
