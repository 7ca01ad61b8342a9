"""The look of the course's pictures: one palette, one font, one card that is legible on a light and on a dark page.

A picture is drawn on a ``matplotlib.figure.Figure`` without pyplot: nothing appears twice, no figure stays in memory,
and the same data give the same PNG bytes.
"""

import base64
import io
from functools import cache

import matplotlib
from matplotlib import font_manager
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

CARD, INK, MUTED, GRID = "#fbfaf6", "#22262e", "#5f6672", "#d9d7cf"
# Okabe and Ito's colours, which readers with any kind of colour blindness can tell apart, without the pale yellow.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
HIGHLIGHT = "#d55e00"
# Zero has the colour of the card, so that ink means weight; both scales keep their order for colour-blind readers.
SEQUENTIAL = LinearSegmentedColormap.from_list(
    "paper_blue", [CARD, "#d3e4f3", "#8bbfe0", "#3f8ec4", "#0f5a9c", "#072f66"]
)
DIVERGING = LinearSegmentedColormap.from_list("blue_orange", ["#083f78", "#4f97cf", CARD, "#e08a2e", "#7a3a00"])

PIXELS_PER_INCH = 144  # 1.5 times as many as are shown, so that the picture is sharp on dense screens
SHOWN_PER_INCH = 96

# Tried in this order for characters that matplotlib's own font lacks; those not installed here are left out.
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
    """Return {name: path} of the fonts of a picture: DejaVu Sans, then what this machine has for other scripts."""
    known = {entry.name for entry in font_manager.fontManager.ttflist}
    # findfont, because a family has several files: the extra light face of DejaVu Sans lacks the visible space
    return {name: font_manager.findfont(name) for name in ("DejaVu Sans", *_MORE_FONTS) if name in known}


@cache
def _characters():
    return frozenset().union(*(font_manager.get_font(path).get_charmap() for path in font_files().values()))


def can_draw(character):
    """Return True if one of the fonts has this character; matplotlib draws any other as an empty box."""
    return ord(character) in _characters()


@cache
def advance(character, weight="normal"):
    """Return the width of a character as a part of the font size, in the first font that has it."""
    for name in font_files():
        font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=name, weight=weight)))
        if ord(character) in font.get_charmap():
            font.set_size(100, 72)
            return font.load_char(ord(character)).linearHoriAdvance / 65536 / 100
    return 1.0


def drawable(text):
    """Return the text with U+4F60 in place of a character that no font here has, or that has no ink.

    >>> drawable("a\\U0010fffdb"), drawable("one\\u200b two")
    ('aU+10FFFDb', 'oneU+200B two')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == "\n" or (c.isprintable() and can_draw(c)) else f"U+{ord(c):04X}" for c in text)


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
    """Apply matplotlib's settings for a course figure, whatever style the notebook chose: ``with rules(): ...``."""
    return matplotlib.rc_context(_settings())


def card_figure(width, height, **keywords):
    """Return an empty Figure of width × height inches on a card with round corners, transparent outside the card."""
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


def plot_figure(width, height):
    """Return a card Figure of width × height inches whose axes matplotlib arranges to fit it."""
    fig = card_figure(width, height, layout="constrained")
    fig.get_layout_engine().set(w_pad=0.14, h_pad=0.14, wspace=0.03, hspace=0.04)
    return fig


def png_bytes(fig, level=9):
    """Return the figure as PNG bytes, the same for equal figures; a lower level of compression saves time."""
    buffer = io.BytesIO()
    for axis in (axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)):
        labels = [text.get_text() for text in axis.get_ticklabels()]
        if any(drawable(label) != label for label in labels):
            axis.set_ticks(axis.get_ticklocs(), [drawable(label) for label in labels])
    for text in fig.findobj(Text):
        text.set_text(drawable(text.get_text()))
    with rules():
        fig.savefig(
            buffer,
            format="png",
            dpi=PIXELS_PER_INCH,
            facecolor="none",
            metadata={"Software": None},
            pil_kwargs={"compress_level": level},
        )
    return buffer.getvalue()


def png_text(png):
    """Return PNG bytes as base64 text, the form in which notebooks and pages hold them."""
    return base64.b64encode(png).decode("ascii")


def shown_width(fig):
    """Return the width in pixels of a web page at which the figure has its natural size."""
    return round(fig.get_figwidth() * SHOWN_PER_INCH)
