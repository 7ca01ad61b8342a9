"""The loss curve of a model while it trains, in one output that is updated in place."""

import time

from IPython.display import display

from . import style
from .figures import Picture, Words, picture
from .plots import draw_losses

EVERY_SECONDS = 0.5  # between two redraws, at least
_BUSY = 10  # a redraw waits ten times as long as the last one took, so training loses at most a tenth of its time


class LivePlot:
    """A loss curve for ``train(..., plot=LivePlot())``, redrawn at most every half second and once at the end.

    The output's text is always ``Figure: <alt>``, however often the picture was redrawn, so a test that compares
    outputs sees no change. Raises ValueError for an empty ``alt``.

    plot = LivePlot(alt="The training loss falls")
    for step in range(1000): ...; plot.update(history)   # history.losses: a list of floats
    plot.close()
    """

    def __init__(self, alt="Training loss by step, drawn while the model trains"):
        Picture(b"", alt, 0)
        self.alt = alt
        self.redraws = 0
        self._history, self._drawn, self._handle, self._due = None, -1, None, 0.0

    def update(self, history):
        """Redraw with ``history.losses`` if it is time; between two redraws this costs one look at the clock."""
        self._history = history
        if time.perf_counter() >= self._due:
            self._redraw()

    def close(self):
        """Draw the last state, unless it is already shown."""
        if self._history is not None and len(self._history.losses) != self._drawn:
            self._redraw()

    def _redraw(self):
        start = time.perf_counter()
        losses = list(self._history.losses)
        fig = style.plot_figure(7.0, 2.8)
        with style.rules():
            draw_losses(fig.subplots(), {"training loss": losses})
        shown = picture(fig, self.alt)
        if self._handle is None:
            self._handle = display(shown, display_id=True) or _Nowhere()
            display(Words(shown.alt))
        else:
            self._handle.update(shown)
        self._drawn = len(losses)
        self.redraws += 1
        end = time.perf_counter()
        self._due = end + max(EVERY_SECONDS, _BUSY * (end - start))


class _Nowhere:
    """The handle outside a notebook, where there is nothing to update."""

    def update(self, shown):
        pass
