"""`with figure(...)`: axes in the course's style, shown as a picture with its words when the block ends.

JupyterLab 4.6 and nbconvert 7 both ignore an `alt` in the output's metadata, so `show` puts the words next to the
picture as well, in a line that only screen readers get (GitHub, which removes the styling, shows it as a caption).
"""

from contextlib import contextmanager

from IPython.display import display

from . import style
from .labels import escaped

# Out of sight, yet read aloud. JupyterLab's class survives its own cleaning, the style serves other pages; <em> is one
# of the few tags that nbconvert's strict cleaning keeps (a <p> would be shown as text).
_HIDDEN = (
    'class="jp-sr-only" style="position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; '
    'clip-path: inset(50%); white-space: nowrap"'
)


class Picture:
    """PNG bytes with their alternative text: what a cell displays. As text: `Figure: …`, the same on every machine."""

    def __init__(self, png, alt, width):
        if not alt or not alt.strip():
            raise ValueError("a picture needs alt=: one sentence that says what it shows")
        self.png, self.alt, self.width = png, " ".join(alt.split()), width

    def __repr__(self):
        return f"Figure: {self.alt}"

    def _repr_mimebundle_(self, **_keywords):
        return (
            {"image/png": style.png_text(self.png), "text/plain": repr(self)},
            {"image/png": {"alt": self.alt, "width": self.width}},
        )


class Words:
    """The alternative text of the picture above, for screen readers only."""

    def __init__(self, alt):
        self.alt = alt

    def __repr__(self):
        return self.alt

    def _repr_mimebundle_(self, **_keywords):
        return {"text/html": f"<em {_HIDDEN}>Figure: {escaped(self.alt)}</em>", "text/plain": self.alt}


def picture(fig, alt):
    """The figure as a Picture, without showing it."""
    return Picture(style.png_bytes(fig), alt, style.shown_width(fig))


def show(fig, alt):
    """Display the figure as a PNG with its alternative text. Nothing stays open: these figures are not pyplot's."""
    shown = picture(fig, alt)
    display(shown)
    display(Words(shown.alt))
    fig.clear()


@contextmanager
def figure(width=7.0, height=3.2, *, alt, rows=1, columns=1, **keywords):
    """Axes in the course's style, shown when the block ends; inches; keywords go to `Figure.subplots`.

    with figure(6, 3, alt="A parabola that touches zero at zero") as ax:
        ax.plot(x, x**2)

    With rows or columns above 1 the block gets the array of axes.
    """
    Picture(b"", alt, 0)  # complain about a missing text before the drawing, not after it
    fig = style.card_figure(width, height, layout="constrained")
    fig.get_layout_engine().set(w_pad=0.14, h_pad=0.14, wspace=0.03, hspace=0.04)
    with style.rules():
        yield fig.subplots(rows, columns, **keywords)
    show(fig, alt)


def put_title(ax, title):
    if title:
        ax.set_title(title, parse_math=False)
