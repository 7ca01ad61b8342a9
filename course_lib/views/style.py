"""The look of the course's pictures: one palette, one font, one card that reads well on a light and on a dark page.

A picture is drawn on a `matplotlib.figure.Figure` without pyplot: nothing appears twice, no figure stays in memory,
and the same data give the same PNG bytes.
"""

import base64
import io
import warnings
from functools import cache

import matplotlib
from matplotlib import font_manager
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

CARD, INK, MUTED, GRID = "#fbfaf6", "#22262e", "#5f6672", "#d9d7cf"
# Okabe and Ito's colours, which people with any kind of colour blindness tell apart; the pale yellow is left out.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
HIGHLIGHT = "#d55e00"
SEQUENTIAL = matplotlib.colormaps["cividis"]
# Blue below zero, orange above, the card's own white between: also safe for colour-blind readers.
DIVERGING = LinearSegmentedColormap.from_list("blue_orange", ["#083f78", "#4f97cf", "#f4f2ec", "#e08a2e", "#7a3a00"])

PIXELS_PER_INCH = 144  # drawn at 1.5 times the size it is shown at, so that it is sharp on dense screens
SHOWN_PER_INCH = 96

# Tried in this order for signs that matplotlib's own font lacks; those not installed here are left out.
_MORE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "SimHei",
    "WenQuanYi Zen Hei",
    "Noto Emoji",
    "Noto Sans Symbols 2",
    "Segoe UI Symbol",
)


@cache
def font_files():
    """Paths of the fonts that pictures are written with: DejaVu Sans, then what this machine has for other scripts."""
    known = {entry.name: entry.fname for entry in font_manager.fontManager.ttflist if entry.style == "normal"}
    found = {"DejaVu Sans": known["DejaVu Sans"]}
    return found | {name: known[name] for name in _MORE_FONTS if name in known}


@cache
def _characters():
    return frozenset().union(*(font_manager.get_font(path).get_charmap() for path in font_files().values()))


def can_draw(character):
    """True if one of the fonts has this character; otherwise matplotlib would draw the same empty box for all."""
    return ord(character) in _characters()


@cache
def _settings():
    own = {
        "font.family": list(font_files()),
        "font.size": 10,
        "text.color": INK,
        "text.hinting": "none",
        "axes.facecolor": "none",
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlepad": 8,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
        "grid.color": GRID,
        "grid.linewidth": 0.7,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "lines.linewidth": 1.8,
        "hatch.linewidth": 0.7,
    }
    drawing = "font text mathtext axes grid xtick ytick legend lines patch hatch image figure savefig path agg".split()
    return {
        key: value
        for key, value in matplotlib.rcParamsDefault.items()
        if key.split(".")[0] in drawing and key != "savefig.directory"
    } | own


def rules():
    """matplotlib's settings for a course figure, whatever style the notebook has chosen: `with rules(): ...`."""
    return matplotlib.rc_context(_settings())


def card_figure(width, height, **keywords):
    """An empty Figure, width × height inches, on a card with round corners; outside the card it is transparent."""
    with rules():
        fig = Figure(figsize=(width, height), dpi=PIXELS_PER_INCH, facecolor="none", **keywords)
        fig.patches.append(
            FancyBboxPatch(
                (0.1, 0.1),
                width - 0.2,
                height - 0.2,
                boxstyle="round,pad=0.09,rounding_size=0.1",
                figure=fig,
                transform=fig.dpi_scale_trans,
                facecolor=CARD,
                edgecolor="none",
                zorder=-10,
            )
        )
    return fig


def png_bytes(fig, quick=False, level=9):
    """The figure as PNG: equal figures give equal bytes; `quick`, or a lower level, saves time and not bytes."""
    buffer = io.BytesIO()
    with rules(), warnings.catch_warnings():
        # A sign that no font has is drawn as a box; the picture's words are also in its alternative text.
        warnings.filterwarnings("ignore", message="(Glyph .* missing|Matplotlib currently does not support)")
        fig.savefig(
            buffer,
            format="png",
            dpi=PIXELS_PER_INCH,
            facecolor="none",
            metadata={"Software": None},
            pil_kwargs={"compress_level": 1 if quick else level},
        )
    return buffer.getvalue()


def png_text(png):
    """PNG bytes as base64 text, the form in which notebooks and pages carry them."""
    return base64.b64encode(png).decode("ascii")


def shown_width(fig):
    """Width in the pixels of a web page at which the figure has its natural size."""
    return round(fig.get_figwidth() * SHOWN_PER_INCH)
