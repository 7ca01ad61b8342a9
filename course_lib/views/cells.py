"""The parts of a heat map: the colour of a cell, its number, the hatching of forbidden cells, the colour bar."""

import numpy as np
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from . import style

NOT_ALLOWED, HATCH = "#f1efe9", "#d6d2c7"  # faint: what may not be attended to says nothing


def text_width(text, points, weight="normal"):
    """Return how many inches a line of text takes at this size."""
    return sum(style.advance(c, weight) for c in text) * points / 72


def put_heading(ax, text, x, y, room, **keywords):
    """Write the title of a picture into ``room`` inches: smaller if it is long, then cut; return the text artist."""
    made = ax.text(x, y, "", weight="bold", va="center", parse_math=False, **keywords)
    fit_heading(made, text, room)
    return made


def fit_heading(artist, text, room):
    """Set the text of a title so that it fits into ``room`` inches."""
    largest, smallest = 11, 8
    text = style.drawable(" ".join(text.split()))
    points = largest * min(1, room / max(text_width(text, largest, "bold"), 1e-9))
    if points < smallest:
        while len(text) > 1 and text_width(text + "…", smallest, "bold") > room:
            text = text[:-1]
        text, points = text + "…", smallest
    artist.set(text=text, fontsize=points)


def colour_scale(limits):
    """Return (colour map, function from values to places 0 to 1) for these values at the ends of the colour bar.

    Weights, from 0 to 1, are placed by their square root: most are small, and their pattern would be lost. Scores are
    placed evenly, on both sides of zero if there are negative ones.
    """
    low, high = limits
    if low < 0 < high:
        most = max(-low, high)
        return style.DIVERGING, lambda values: 0.5 + 0.5 * values / most
    if (low, high) == (0, 1):
        return style.SEQUENTIAL, lambda values: np.sqrt(np.clip(values, 0, 1))
    return style.SEQUENTIAL, lambda values: (values - low) / (high - low)


def colours(matrix, limits):
    """Return the RGBA of each value on the scale of these limits."""
    colour_map, place = colour_scale(limits)
    return colour_map(place(np.asarray(matrix, dtype=float)))


def ink_on(rgba):
    """Return the colour of a number that is legible on ``rgba``: white or black, whichever has more contrast.

    The smaller of the two contrasts that a colour can have to white and black is at most the root of 21, so that the
    larger is at least 4.58, and WCAG asks for 4.5.
    """
    rgb = np.asarray(rgba)[..., :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.where((linear @ [0.2126, 0.7152, 0.0722] + 0.05) ** 2 < 1.05 * 0.05, "#ffffff", "#000000")


def hatching(allowed, x=-0.5, y=-0.5, cell=1.0):
    """Return one hatched patch over every cell where ``allowed`` is False, which cannot be taken for a zero.

    Returns None if every cell is allowed.
    """
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
    """Return a value as it is written in a cell: with two decimals, an exact 0 as "0"."""
    return "0" if value == 0 else f"{value:.2f}"


def colour_bar(fig, box, limits, outside=(False, False)):
    """Draw a colour bar with numbers, with ≤ or ≥ at an end beyond which there are values."""
    width, height = fig.get_size_inches()
    ax = fig.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    colour_map, place = colour_scale(limits)
    low, high = place(np.asarray(limits))
    ax.imshow(
        np.linspace(low, high, 256)[:, None],
        cmap=colour_map,
        vmin=0,
        vmax=1,
        aspect="auto",
        origin="lower",
        extent=(0, 1, low, high),
    )
    many = box[3] > 1
    if tuple(limits) == (0, 1):
        ticks = np.array([0, 0.05, 0.25, 0.5, 1] if many else [0, 0.25, 1])
    else:
        ticks = np.linspace(*limits, 5 if many else 3)
    names = [f"{t:.3g}" for t in ticks]
    names[0] = ("≤ " if outside[0] else "") + names[0]
    names[-1] = ("≥ " if outside[1] else "") + names[-1]
    ax.set_yticks(place(ticks), names, fontsize=8)
    ax.set_xticks([])
    ax.grid(False)
    ax.yaxis.tick_right()
    ax.tick_params(length=3, width=0.7)
    ax.spines[:].set_visible(False)
    ax.add_patch(Rectangle((0, low), 1, high - low, fill=False, edgecolor=style.GRID, linewidth=0.8, clip_on=False))


def not_allowed_key(ax, x, y):
    """Draw the line of the legend that explains the hatching, at data coordinates in inches."""
    size = 0.16
    ax.add_patch(hatching(np.zeros((1, 1)), x, y, size))
    ax.text(x + size + 0.07, y + size / 2, "not allowed", fontsize=8.5, color=style.MUTED, va="center_baseline")
