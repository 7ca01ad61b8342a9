"""The loss curve that grows while a model trains, in one output that is replaced in place."""

import time

from IPython.display import display

from . import style
from .figures import Picture, Words, picture
from .plots import draw_losses

_BUSY = 10  # a redraw waits until ten times its own cost has passed: training loses a tenth of its time at most


class LivePlot:
    """Give it to `train(..., plot=LivePlot())`; it redraws at most every half second and once at the end.

    every_seconds: the shortest time between two redraws. label, floor: as in `plot_losses`. The output's text is always
    `Figure: <alt>`, so a test that compares outputs sees the same, however often the picture was redrawn.

    plot = LivePlot(alt="The training loss falls")
    for step in range(1000): ...; plot.update(history)   # history.losses: a list of floats
    plot.close()
    """

    def __init__(
        self,
        every_seconds=0.5,
        alt="Training loss by step, drawn while the model trains",
        label="training loss",
        floor=None,
        width=7.0,
        height=2.8,
    ):
        Picture(b"", alt, 0)  # complain about a missing text now, not in the middle of the training
        if not every_seconds >= 0:  # nan as well
            raise ValueError(f"every_seconds is {every_seconds}: expected 0 or more")
        self.every_seconds, self.alt, self.label, self.floor = every_seconds, alt, label, floor
        self.size = width, height
        self.redraws = 0
        self._history, self._drawn, self._handle, self._due = None, -1, None, 0.0

    def update(self, history):
        """Redraw with history.losses if it is time; between two redraws this costs one look at the clock."""
        self._history = history
        if time.perf_counter() >= self._due:
            self._redraw()

    def close(self):
        """Draw the last state, if it is not yet shown."""
        if self._history is not None and len(self._history.losses) != self._drawn:
            self._redraw()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    def _redraw(self):
        start = time.perf_counter()
        losses = list(self._history.losses)
        fig = style.card_figure(*self.size, layout="constrained")
        fig.get_layout_engine().set(w_pad=0.14, h_pad=0.14)
        with style.rules():
            draw_losses(fig.subplots(), {self.label: losses}, self.floor)
        shown = picture(fig, self.alt)
        if self._handle is None:
            self._handle = display(shown, display_id=True) or _Nowhere()
            display(Words(shown.alt))
        else:
            self._handle.update(shown)
        self._drawn = len(losses)
        self.redraws += 1
        end = time.perf_counter()
        self._due = end + max(self.every_seconds, _BUSY * (end - start))


class _Nowhere:
    """Outside a notebook there is nothing to update."""

    def update(self, shown):
        pass
