"""A drawing as PNG, for where SVG is not shown: JupyterLab shows none in a notebook that it does not trust.

It knows the marks that a Drawing and a Sketch are made of, and draws them with matplotlib, at the same places.
"""

import io
import math
import xml.etree.ElementTree as ET

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path

INCH, SHARP = 96, 2  # pixels per inch; pixels of the picture for one of the drawing
POINTS = 72 / INCH


def png_of(drawing):
    """Return ``drawing`` as the bytes of a PNG, twice as fine as it is wide. Raises ValueError for an unknown mark."""
    figure = Figure((drawing.width / INCH, drawing.height / INCH), dpi=INCH * SHARP)
    FigureCanvasAgg(figure)
    figure.patch.set_alpha(0)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    root = ET.fromstring(drawing.svg)
    for order, mark in enumerate(root):
        tag = mark.tag.rpartition("}")[2]
        if tag == "title":
            continue
        if tag not in MARKS:
            raise ValueError(f"a PNG of <{tag}> is not possible: {', '.join(MARKS)} are")
        MARKS[tag](ax, mark, order)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _numbers(mark, *names):
    return [float(mark.get(name, 0)) for name in names]


def _look(mark):
    """Return how a shape looks, as matplotlib says it."""
    colour = {name: mark.get(name, "none") for name in ("fill", "stroke")}
    dash = mark.get("stroke-dasharray")
    width = float(mark.get("stroke-width", 1))
    style = (0, tuple(float(n) / width for n in dash.split())) if dash else "-"
    return {"facecolor": colour["fill"], "edgecolor": colour["stroke"], "linewidth": width * POINTS, "linestyle": style}


def _rect(ax, mark, order):
    x, y, width, height, corner = _numbers(mark, "x", "y", "width", "height", "rx")
    corner = min(corner, width / 2, height / 2)
    inner = ((x + corner, y + corner), width - 2 * corner, height - 2 * corner)
    ax.add_patch(
        FancyBboxPatch(*inner, boxstyle=f"round,pad={corner},rounding_size={corner}", zorder=order, **_look(mark))
    )


def _points(ax, mark, order):
    points = [tuple(map(float, point.split(","))) for point in mark.get("points").split()]
    ax.add_patch(Polygon(points, closed=mark.tag.endswith("polygon"), joinstyle="round", zorder=order, **_look(mark)))


def _circle(ax, mark, order):
    x, y, radius = _numbers(mark, "cx", "cy", "r")
    ax.add_patch(Circle((x, y), radius, zorder=order, **_look(mark)))


def _text(ax, mark, order):
    x, y, size = _numbers(mark, "x", "y", "font-size")
    where = {"start": "left", "middle": "center", "end": "right"}[mark.get("text-anchor", "middle")]
    ax.text(
        x, y, "".join(mark.itertext()), fontsize=size * POINTS, color=mark.get("fill"), ha=where, va="baseline",
        weight=mark.get("font-weight", "normal"), rotation=90 if mark.get("transform") else 0, rotation_mode="anchor",
        parse_math=False, zorder=order,
    )  # fmt: skip


def _path(ax, mark, order):
    """Draw M, H, Q and the half ellipse A of Sketch.arc and Sketch.brace."""
    steps, places, codes = mark.get("d").split(), [], []
    while steps:
        step = steps.pop(0)
        many = {"M": 2, "H": 1, "Q": 4, "A": 7}[step]
        given = [float(steps.pop(0)) for _ in range(many)]
        x, y = places[-1] if places else (0, 0)
        if step == "M":
            places, codes = [*places, tuple(given)], [*codes, Path.MOVETO]
        elif step == "H":
            places, codes = [*places, (given[0], y)], [*codes, Path.LINETO]
        elif step == "Q":
            places, codes = [*places, tuple(given[:2]), tuple(given[2:])], [*codes, Path.CURVE3, Path.CURVE3]
        else:
            high, (end, stop) = given[1], given[5:]
            for n in range(1, 41):
                part = math.pi * n / 40
                across = (x + end) / 2 - (end - x) / 2 * math.cos(part)
                places.append((across, y + (stop - y) * n / 40 - high * math.sin(part)))
                codes.append(Path.LINETO)
    ax.add_patch(PathPatch(Path(places, codes), zorder=order, **_look(mark)))


MARKS = {"rect": _rect, "polyline": _points, "polygon": _points, "circle": _circle, "text": _text, "path": _path}
