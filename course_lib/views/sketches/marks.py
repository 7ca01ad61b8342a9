"""The vocabulary of the sketches: grid, box, arrow, arc, brace, on the card of a Drawing.

Coordinates are pixels, rounded to a tenth, so that equal numbers give equal files. A value is read to three decimals
before it becomes a colour, for another machine may round the last digit differently.
"""

import math

from ..drawing import Drawing
from ..labels import escaped
from ..style import DIVERGING, GRID, HIGHLIGHT, INK, MUTED, PALETTE, SEQUENTIAL

BLUE, ORANGE, GREEN, PINK = PALETTE[:4]
LIT_FILL, EDGE = "#fde6d6", HIGHLIGHT  # what is new: a pale fill, on which ink stays legible, and a strong edge
LIT_INK = "#a84400"  # the orange of words, dark enough to be read on the card
EMPTY = "#f1efe9"  # a cell that may not be read
# a pale and a strong tone of one colour, for a filled shape and its edge or words
TONES = {
    "blue": ("#cfe4f4", "#00568a"), "orange": (LIT_FILL, LIT_INK), "green": ("#cdebe0", "#006b4e"),
    "pink": ("#f6dfec", "#96487a"), "grey": ("#e9e7e0", MUTED),
}  # fmt: skip


def rounded(value):
    """Return a number as short text, to a tenth of a pixel.

    >>> rounded(12.0), rounded(0.333), rounded(-0.01)
    ('12', '0.3', '0')
    """
    return f"{round(float(value), 1) + 0.0:g}"


def signed(value, digits=1):
    """Return a number with a real minus sign, and no minus before zero.

    >>> signed(-0.52), signed(0.04), signed(-0.04)
    ('−0.5', '0.0', '0.0')
    """
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def shade(value, most=1.0):
    """Return (fill, ink) of a cell: paper at zero, blue above it, or orange below on the scale that has both signs.

    >>> shade(0.0)
    ('#fbfaf6', '#22262e')
    """
    place = max(-1.0, min(1.0, round(float(value), 3) / most))
    scale, at = (SEQUENTIAL, place) if place >= 0 else (DIVERGING, 0.5 - place / 2)
    red, green, blue, _ = scale(0.92 * at if place >= 0 else at)
    fill = "#" + "".join(f"{round(255 * c):02x}" for c in (red, green, blue))
    luminance = sum(
        w * ((c / 12.92) if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        for w, c in zip((0.2126, 0.7152, 0.0722), (red, green, blue))
    )
    return fill, INK if luminance > 0.3 else "#000000" if luminance > 0.179 else "#ffffff"


class Sketch(Drawing):
    """A Drawing with marks for numbers: strips and grids of cells, arrows in any direction, arcs and braces."""

    def label(self, x, y, text, size=13, colour=INK, weight="normal", anchor="middle", turned=False):
        """Write a line of text with its baseline at y, upwards if ``turned``."""
        where = f'x="{rounded(x)}" y="{rounded(y)}"'
        more = "" if anchor == "middle" else f' text-anchor="{anchor}"'
        more += f' font-weight="{weight}"' if weight != "normal" else ""
        more += f' transform="rotate(-90 {rounded(x)} {rounded(y)})"' if turned else ""
        self.marks.append(f'<text {where} font-size="{size}" fill="{colour}"{more}>{escaped(text)}</text>')

    def shape(self, x, y, width, height, fill="#ffffff", edge=INK, thick=1.5, corner=7, dash=""):
        """Draw a rectangle whose left upper corner is (x, y)."""
        place = " ".join(f'{k}="{rounded(v)}"' for k, v in zip(("x", "y", "width", "height"), (x, y, width, height)))
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.marks.append(f'<rect {place} rx="{corner}" fill="{fill}" stroke="{edge}" stroke-width="{thick}"{dash}/>')

    def part(self, x, y, width, text, under="", lit=False, height=34, fill="#ffffff", edge=INK):
        """Draw a box centred on (x, y) with its name and, below it inside the box, a number."""
        fill, edge = (LIT_FILL, EDGE) if lit else (fill, edge)
        self.shape(x - width / 2, y - height / 2, width, height, fill, edge, 2.4 if lit else 1.5)
        if text:
            self.label(x, y + (-1.5 if under else 4.5), text, weight="bold" if lit else "normal")
        if under:
            self.label(x, y + 13, under, 12, MUTED if not lit else INK)

    def path(self, points, colour=INK, width=1.6, arrow=False, dash=""):
        """Draw a line through the points, with a tip at its end if it is an arrow, in any direction."""
        points = [(float(x), float(y)) for x, y in points]
        if arrow:
            (x0, y0), (x, y) = points[-2:]
            far = math.hypot(x - x0, y - y0)
            dx, dy, size = (x - x0) / far, (y - y0) / far, 7 + width / 2
            back = (x - size * dx, y - size * dy)
            half = size * 0.52
            tip = [(x, y), (back[0] - half * dy, back[1] + half * dx), (back[0] + half * dy, back[1] - half * dx)]
            points[-1] = (x - 0.7 * size * dx, y - 0.7 * size * dy)
        dash = f' stroke-dasharray="{dash}"' if dash else ""
        self.marks.append(
            f'<polyline points="{_points(points)}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-linejoin="round"{dash}/>'
        )
        if arrow:
            self.marks.append(f'<polygon points="{_points(tip)}" fill="{colour}"/>')

    def arc(self, start, end, y, height, colour=INK, width=1.6, arrow=False):
        """Draw half an ellipse over the line at y, from x ``start`` to x ``end``, standing upright on it."""
        stop = y - 9 if arrow else y
        turn = int(end > start)
        self.marks.append(
            f'<path d="M {rounded(start)} {rounded(y)} A {rounded(abs(end - start) / 2)} {rounded(height)} 0 0 {turn} '
            f'{rounded(end)} {rounded(stop)}" fill="none" stroke="{colour}" stroke-width="{rounded(width)}"/>'
        )
        if arrow:
            self.path([(end, stop), (end, y)], colour, 1, arrow=True)

    def dot(self, x, y, radius=4, fill=INK, edge="none", thick=1.5):
        """Draw a filled circle."""
        self.marks.append(
            f'<circle cx="{rounded(x)}" cy="{rounded(y)}" r="{rounded(radius)}" fill="{fill}" stroke="{edge}" '
            f'stroke-width="{thick}"/>'
        )

    def sign(self, x, y, what, lit=False):
        """Draw a circle with + or × in it."""
        colour, a = EDGE if lit else INK, 5 if what == "+" else 3.6
        self.dot(x, y, 10, LIT_FILL if lit else "#ffffff", colour, 2.2 if lit else 1.8)
        strokes = [(-a, 0, a, 0), (0, -a, 0, a)] if what == "+" else [(-a, -a, a, a), (-a, a, a, -a)]
        for x0, y0, x1, y1 in strokes:
            self.path([(x + x0, y + y0), (x + x1, y + y1)], colour)

    def grid(self, x, y, rows, side=30, most=None, digits=1, allow=None, high=None, fills=None, size=12):
        """Draw a matrix from (x, y), each cell with its number, shaded by it; return (width, height).

        ``digits`` None: no numbers; a string in ``rows`` stands as it is. ``allow``: cells where it is False stay
        empty. ``fills``: colours in place of shades.
        """
        high = side if high is None else high
        numbers = [abs(v) for row in rows for v in row if not isinstance(v, str) and math.isfinite(v)]
        most = max(numbers, default=1.0) or 1.0 if most is None else most
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                left, top = x + j * side, y + i * high
                if allow is not None and not allow[i][j]:
                    self.shape(left, top, side, high, EMPTY, GRID, 1, 0)
                    continue
                text = isinstance(value, str)
                fill, ink = ("#ffffff", INK) if text else shade(value, most)
                if fills is not None:
                    fill, ink = fills[i][j], INK
                self.shape(left, top, side, high, fill, "#a9a69b", 1, 0)
                if text or digits is not None:
                    self.label(
                        left + side / 2, top + high / 2 + 4.3, value if text else signed(value, digits), size, ink
                    )
        return len(rows[0]) * side, len(rows) * high

    def around(self, x, y, width, height, colour=INK, thick=2.6):
        """Draw a frame around cells."""
        self.shape(x - 1, y - 1, width + 2, height + 2, "none", colour, thick, 3)

    def brace(self, x0, x1, y, text, size=12, colour=MUTED, above=True):
        """Draw a brace from x0 to x1 with its point at ``text``, above or below it."""
        up, middle = -1 if above else 1, (x0 + x1) / 2
        a, b = rounded(y + 6 * up), rounded(y + 12 * up)
        xs = [rounded(v) for v in (x0, x0 + 6, middle - 6, middle, middle + 6, x1 - 6, x1)]
        self.marks.append(
            f'<path d="M {xs[0]} {rounded(y)} Q {xs[0]} {a} {xs[1]} {a} H {xs[2]} Q {xs[3]} {a} {xs[3]} {b} '
            f'Q {xs[3]} {a} {xs[4]} {a} H {xs[5]} Q {xs[6]} {a} {xs[6]} {rounded(y)}" fill="none" '
            f'stroke="{colour}" stroke-width="1.3"/>'
        )
        self.label(middle, y + (-17 if above else 25), text, size, colour)


def _points(points):
    return " ".join(f"{rounded(x)},{rounded(y)}" for x, y in points)
