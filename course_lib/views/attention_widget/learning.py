"""``LearningView``: the attention of a model while it trains, beside its loss; afterwards a slider over the steps."""

import time

import numpy as np
import traitlets
from IPython.display import display

from . import codec
from .view import AttentionView

LARGEST = 1_000_000  # bytes of all saved steps together; beyond that every second one is forgotten
MOST = 80  # saved steps
_BUSY = 10  # a redraw waits ten times as long as the last one took, so training loses at most a tenth of its time


class LearningView(AttentionView):
    """An AttentionView of one sentence, redrawn while a model trains.

    With ``view = LearningView(model, ids, tokens)``, ``train(..., plot=view.plot)`` shows it with the first step.
    ``model`` has ``attention_maps``: a FirstGPT or a GPT of either track. ``ids`` (T,): a sentence that it reads every
    ``every`` steps; ``tokens``: its T tokens as text. After training, ``frame`` chooses one of the saved steps, None
    the last; ``saved`` holds the steps, ``maps`` the weights (L, H, T, T) at each, ``losses`` the mean training loss
    since the one before. Of a long run every second saved step is forgotten, as often as is needed.

    Raises ValueError for ``every`` below 1, and what AttentionView raises.
    """

    frame = traitlets.Int(None, allow_none=True).tag(sync=True)
    choices = (*AttentionView.choices, "frame")

    def __init__(self, model, ids, tokens, *, every=25, title="A model learns to look back", **choices):
        if every < 1:
            raise ValueError(f"every is {every}: the view is redrawn every so many steps, at least 1")
        self.model, self.ids, self.every = model, np.asarray(ids), every
        self.saved, self.maps, self.losses = [0], [self._look()], [float("nan")]
        self.plot, self._history, self._handle, self._due, self._seen = _Plot(self), None, None, 0.0, 0
        causal = np.tri(len(self.ids), dtype=bool) if model.config.causal else None
        super().__init__(self.maps[0], tokens, allow=causal, title=title, trained_here=True, **choices)
        self._tokens = list(tokens)
        self._show()

    def _look(self):
        return np.array(self.model.attention_maps(self.ids), np.float32)

    @traitlets.validate("frame")
    def _frame_exists(self, proposal):
        if proposal.value is not None and not 0 <= proposal.value < len(self.saved):
            raise traitlets.TraitError(f"frame {proposal.value} does not exist: {len(self.saved)} steps are saved")
        return proposal.value

    @traitlets.observe("frame")
    def _turn(self, _change):
        """Let the numbers of the view be those of the chosen step; the browser has them all."""
        if self.weights is not None:
            self.weights = self.maps[-1 if self.frame is None else self.frame]
            self.__dict__.pop("_picture", None)

    def follow(self, history):
        """Save the attention if it is time, and redraw; ``history`` is that of the training so far."""
        self._history = history
        if self._handle is None:
            self._handle = display(self, display_id=True) or _Nowhere()
        if history.steps % self.every == 0:
            self._save(history)
            self._forget()
            if time.perf_counter() >= self._due:
                self._show()

    def finish(self):
        """Save and show the last state, and leave its picture in the notebook."""
        if self._history is not None and self._history.steps != self.saved[-1]:
            self._save(self._history)
        self._show()
        if self._handle is not None:
            self._handle.update(self)

    def _save(self, history):
        self.saved.append(history.steps)
        self.maps.append(self._look())
        self.losses.append(float(np.mean(history.losses[self._seen :])))
        self._seen = len(history.losses)

    def _forget(self):
        """Keep every second saved step if there are too many; the loss of a step is then the mean of two."""
        cells = self.maps[0].size if self.allow is None else int(self.allow.sum())
        if len(self.saved) > min(MOST, max(4, LARGEST // (4 * cells) * 2)):  # an even number
            self.every *= 2
            self.losses[2::2] = [(a + b) / 2 for a, b in zip(self.losses[1::2], self.losses[2::2])]
            del self.saved[1::2], self.maps[1::2], self.losses[1::2]

    def _show(self):
        start = time.perf_counter()
        masks = len(self.maps[0]) * [None] if self.allow is None else self.allow
        frames = [
            [codec.pack_layer(layer, mask, (0, 1)) for layer, mask in zip(weights, masks)] for weights in self.maps
        ]
        learning = {"steps": list(self.saved), "losses": [None if n != n else n for n in self.losses], "frames": frames}
        mask = None if self.allow is None else self.allow
        with self.hold_sync():
            self.frame = None
            self._load(self.maps[-1], self._tokens, None, mask, (0, 1), None, None, None, learning=learning)
        self._due = time.perf_counter() + _BUSY * (time.perf_counter() - start)


class _Plot:
    """What ``train`` wants of a plot; the view itself cannot be one, as closing a widget means taking it away."""

    def __init__(self, view):
        self.update, self.close = view.follow, view.finish


class _Nowhere:
    """The handle outside a notebook, where there is nothing to update."""

    def update(self, shown):
        pass
