"""``with figure(...)``: axes in the course's style, shown as a picture with its alternative text when the block ends.

JupyterLab 4.6 and nbconvert 7 both ignore an ``alt`` in the output's metadata, so ``show`` also puts the text next to
the picture, in a line for screen readers only (GitHub, which removes the styling, shows it as a caption).
"""

from contextlib import contextmanager

from IPython.display import display

from . import style
from .labels import escaped, readable

# Hidden from view, yet read aloud. JupyterLab's class survives its own sanitizer, the style serves other pages; <em> is
# one of the few tags that nbconvert's strict sanitizer keeps (a <p> would be shown as text).
_HIDDEN = (
    'class="jp-sr-only" style="position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; '
    'clip-path: inset(50%); white-space: nowrap"'
)


class Picture:
    """PNG bytes with their alternative text, for a cell to display. As text ``Figure: ...``, on every machine."""

    def __init__(self, png, alt, width):
        if not alt or not alt.strip():
            raise ValueError("a picture needs alt=: one sentence that says what it shows")
        self.png, self.alt, self.width = png, readable(" ".join(alt.split())), width

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
    """Return the figure as a Picture, without showing it."""
    return Picture(style.png_bytes(fig), alt, style.shown_width(fig))


def show(fig, alt):
    """Display the figure as a PNG with its alternative text, and clear it."""
    shown = picture(fig, alt)
    display(shown)
    display(Words(shown.alt))
    fig.clear()


@contextmanager
def figure(width=7.0, height=3.2, *, alt, rows=1, columns=1, **keywords):
    """Provide axes in the course's style, width × height inches, and show them when the block ends.

    with figure(6, 3, alt="A parabola that touches zero at zero") as ax:
        ax.plot(x, x**2)

    With more than one row or column the block gets the array of axes. Keywords go to ``Figure.subplots``. Raises
    ValueError, before anything is drawn, for an empty ``alt``.
    """
    Picture(b"", alt, 0)
    fig = style.plot_figure(width, height)
    with style.rules():
        yield fig.subplots(rows, columns, **keywords)
    show(fig, alt)


def put_title(ax, title):
    """Set the title, in which a ``$`` is a dollar; None sets none."""
    if title:
        ax.set_title(title, parse_math=False)
