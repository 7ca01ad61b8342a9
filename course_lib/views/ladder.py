"""The picture of the loss ladder: one step down per rung; a rung that cheats is marked at the edge, off the scale."""

from . import style
from .figures import picture, put_title


def draw_ladder(ax, rungs):
    """Draw ``rungs``, dicts with ``name``, ``loss`` in nats and ``cheats``, with the first at the top."""
    honest = [(position, rung["loss"]) for position, rung in enumerate(rungs) if not rung["cheats"]]
    positions, losses = [position for position, _ in honest], [loss for _, loss in honest]
    span = max(losses) - min(losses) or 1.0
    low, high = min(losses) - 0.22 * span, max(losses) + 0.16 * span
    ax.plot(losses, positions, drawstyle="steps-pre", color=style.MUTED, linewidth=1.2, zorder=2)
    ax.scatter(losses, positions, s=46, color=style.PALETTE[0], zorder=3)
    for position, loss in honest:
        ax.annotate(
            f"{loss:.2f}",
            (loss, position),
            xytext=(-9, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=9,
        )
    for position, rung in enumerate(rungs):
        if rung["cheats"]:
            ax.scatter([low], [position], s=70, marker="<", color=style.HIGHLIGHT, zorder=3, clip_on=False)
            words = f"{rung['loss']:.2f}: it cheats, off the scale"
            ax.annotate(words, (low, position), xytext=(11, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(range(len(rungs)), [rung["name"] for rung in rungs], parse_math=False)
    ax.set(xlim=(low, high), ylim=(len(rungs) - 0.5, -0.5), xlabel="validation loss (nats per character)")
    ax.grid(False, axis="y")
    put_title(ax, "What each idea buys, in this order")


def ladder_picture(rungs, alt):
    """Return the ladder as a Picture, for a file."""
    fig = style.plot_figure(7.4, 3.8)
    with style.rules():
        draw_ladder(fig.subplots(), rungs)
    return picture(fig, alt)
