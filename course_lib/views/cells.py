"""What heat maps are made of: the colour of a cell, its number, the hatching of what is not allowed, a colour bar."""

import unicodedata

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from . import style

NOT_ALLOWED, HATCH = "#e6e3da", "#a8a498"


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
