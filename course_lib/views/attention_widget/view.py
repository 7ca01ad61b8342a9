"""``AttentionView``, the widget on the kernel's side: it checks, packs and sends; the browser draws (``js/``)."""

import sys
import warnings
from functools import cached_property

import numpy as np
import traitlets

try:
    import anywidget
    import ipywidgets  # noqa: F401 - anywidget needs it, and its own ImportError does not say how to install it
except ImportError as missing:
    name = missing.name or "anywidget"
    raise ImportError(
        f"the attention view needs {name} in the Python that runs this notebook; install it with:  "
        f'"{sys.executable}" -m pip install {name}'
    ) from missing

from ..all_heads import grid_png
from ..labels import drawn, readable, short, visible
from ..one_head import HeadPicture
from ..style import png_text, shown_width
from ..tensors import checked_mask, checked_tokens, checked_weights, span
from . import assets, codec
from .page import page_of
from .scores import checked_projections, score_limits
from .words import Words

STAGES = ("dot", "scaled", "weights")
LONGEST_SENT = 80  # characters of a token
SENT_AT_ONCE = 4_000_000  # bytes; the layers of a larger model are sent one by one, when they are looked at


class AttentionView(Words, anywidget.AnyWidget):
    """Attention weights to explore: all heads small, one large, with the exact numbers of whatever is pointed at.

    ``weights``: (T, T), (H, T, T) or (L, H, T, T); an array, a list, or a tensor of either track; also a list of one
    array (1, H, T, T) per layer, as other libraries give them. Rows are queries, columns are keys. ``tokens``: the T
    tokens as text. With ``query_tokens``, T_q of them, ``tokens`` are those of the T_k keys, as in cross-attention:
    weights (..., T_q, T_k). ``allow``: boolean, True = may attend, of the last two axes or more; forbidden cells are
    hatched, not drawn as zero. ``value_limits``: the values at the ends of the colour bar. Weights are checked against
    (0, 1); for scores pass other limits, or None for the smallest and largest score. With ``queries`` (..., T_q, D),
    ``keys`` (..., T_k, D) and ``scale`` (default 1/√D) the view also shows q · k, the scaled and masked scores, and the
    products that add up to the score of a cell. ``trained_here``: the weights come from training in this notebook and
    differ a little between machines, so the view's repr leaves the numbers out.

    Every choice is a trait, which can be passed as a keyword, set by a cell, and read after the learner has chosen.
    ``layer``, ``head``: the head that is shown. ``query``, ``key``: the locked row and column, or None. ``mode``:
    "heatmap" or "arcs". ``stage``: "dot" (q · k), "scaled" (scaled and masked) or "weights" (after softmax).
    ``log_scale``: colours by magnitude. ``hide_first``: leave out the first key. ``per_head``: the colours of each head
    span its own values. ``solo``: one head without the small ones beside it.

    Raises ValueError, naming the numbers, for shapes that do not fit the tokens, values that are not finite, weights
    outside 0 to 1, and a weight on a forbidden cell; TraitError for a choice outside its range. Warns about rows that
    do not sum to 1.

    >>> attention_view([[1, 0], [0.25, 0.75]], ["the", "cat"])
    AttentionView(1 layer, 1 head, 2 queries, 2 keys; layer 0 head 0: row max 0.75..1.00, mean 0.875)
    """

    _esm = assets.script()
    _css = assets.style()

    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    query = traitlets.Int(None, allow_none=True).tag(sync=True)
    key = traitlets.Int(None, allow_none=True).tag(sync=True)
    mode = traitlets.Enum(("heatmap", "arcs"), "heatmap").tag(sync=True)
    stage = traitlets.Enum(STAGES, "weights").tag(sync=True)
    log_scale = traitlets.Bool(False).tag(sync=True)
    hide_first = traitlets.Bool(False).tag(sync=True)
    per_head = traitlets.Bool(False).tag(sync=True)
    solo = traitlets.Bool(False).tag(sync=True)
    content = traitlets.Dict().tag(sync=True)  # tokens, sizes and packed weights, in one trait: they change together
    weights = None
    trained_here = False

    def __init__(
        self,
        weights,
        tokens,
        *,
        query_tokens=None,
        allow=None,
        title=None,
        value_limits=(0, 1),
        queries=None,
        keys=None,
        scale=None,
        trained_here=False,
        **choices,
    ):
        self.caption, self.trained_here = None if title is None else readable(str(title)), trained_here
        super().__init__()
        opening = choices.get("layer", 0)  # the layer to send first
        self._load(weights, tokens, query_tokens, allow, value_limits, queries, keys, scale, opening)
        for name in choices:
            if name not in self.choices:
                raise TypeError(f"{name} is not an option of the view: choose from {', '.join(self.choices)}")
        for name, value in choices.items():
            setattr(self, name, value)
        self.on_msg(self._answer)

    choices = ("layer", "head", "query", "key", "mode", "stage", "log_scale", "hide_first", "per_head", "solo")

    def _load(self, weights, tokens, query_tokens, allow, value_limits, queries, keys, scale, opening=None, **more):
        """Check everything, then show it; unlock a row or column that no longer exists."""
        keys_shown = checked_tokens(tokens, "tokens")
        queries_shown = keys_shown if query_tokens is None else checked_tokens(query_tokens, "query_tokens")
        array, limits, outside = checked_weights(weights, queries_shown, keys_shown, allow, value_limits)
        mask = checked_mask(allow, array.shape)
        projections = checked_projections(queries, keys, array.shape, scale)
        stages = None
        if projections is not None:
            q, k, scale = projections
            stages = {"q": q.tobytes(), "k": k.tobytes(), "size": q.shape[3], "scale": scale}
            stages["limits"] = score_limits(q, k, scale, mask, array)
        proper = value_limits is not None and tuple(value_limits) == (0, 1)
        notes = _rows_off(array, mask) if proper else []
        for note in notes:
            warnings.warn(note, stacklevel=3)
        array.flags.writeable = False  # changed in place, it would no longer be what is shown
        self.weights, self.allow, self.limits, self.outside = array, mask, limits, outside
        self.keys_shown, self.queries_shown = tuple(keys_shown), tuple(queries_shown)
        self._code = (0.0, 1.0) if proper else span(array if mask is None else array[mask])  # ends of the 16-bit steps
        self.__dict__.pop("_picture", None)
        with self.hold_sync():
            for name, count in zip(("layer", "head", "query", "key"), array.shape, strict=True):
                if getattr(self, name) is not None and getattr(self, name) >= count:
                    setattr(self, name, 0 if name in ("layer", "head") else None)
            if stages is None:
                self.stage = "weights"
            self.content = {
                "version": self.content.get("version", 0) + 1,
                "shape": list(array.shape),
                "queries": [short(visible(t), LONGEST_SENT) for t in queries_shown],
                "keys": [short(visible(t), LONGEST_SENT) for t in keys_shown],
                "same": query_tokens is None,
                "title": self.caption or "",
                "proper": proper,
                "limits": list(limits),
                "outside": list(outside),
                "code": list(self._code),
                "mask": codec.pack_mask(mask),
                "layers": self._layers(opening),
                "stages": stages,
                "notes": notes,
                **more,
            }

    def _layers(self, opening=None, everything=False):
        """Return the bytes of each layer; for a large model, None for each layer the browser has to ask for."""
        opening = self.layer if opening is None else opening
        cells = self.weights.size if self.allow is None else int(self.allow.sum())
        few = everything or 2 * cells <= SENT_AT_ONCE
        return [self._packed(n) if few or n == opening else None for n in range(len(self.weights))]

    def _packed(self, layer):
        return codec.pack_layer(self.weights[layer], None if self.allow is None else self.allow[layer], self._code)

    @traitlets.validate("layer", "head", "query", "key")
    def _within(self, proposal):
        name, value = proposal.trait.name, proposal.value
        if self.weights is None:
            return value
        count = self.weights.shape[("layer", "head", "query", "key").index(name)]
        if value is not None and not 0 <= value < count:
            raise traitlets.TraitError(
                f"{name} {value} does not exist: there are {count}, numbered from 0 to {count - 1}"
            )
        return value

    @traitlets.validate("stage")
    def _stage_exists(self, proposal):
        if proposal.value != "weights" and not self.content.get("stages"):
            raise traitlets.TraitError(f"stage {proposal.value!r} needs the scores: pass queries= and keys=")
        return proposal.value

    def _answer(self, _widget, message, _buffers):
        """Answer the browser, which asks for exact numbers or for a layer that was not sent."""
        kind, layer = message.get("kind"), message.get("layer", 0)
        if message.get("version") != self.content["version"] or not 0 <= layer < len(self.weights):
            return  # the question is about weights that are no longer shown
        if kind == "layer":
            self.send({**message, "kind": "layer"}, [self._packed(layer)])
        elif kind == "exact":
            matrix = self.weights[layer, message["head"]].astype("<f4")
            q, k = message.get("query"), message.get("key")
            row = b"" if q is None else matrix[q].tobytes()
            column = b"" if k is None else np.ascontiguousarray(matrix[:, k]).tobytes()
            self.send(message, [row, column])

    @property
    def weight(self):
        """The exact weight of the chosen cell, or None unless both query and key are locked."""
        return None if None in (self.query, self.key) else float(self._matrix()[self.query, self.key])

    @cached_property
    def _picture(self):
        return HeadPicture(
            [drawn(t) for t in self.queries_shown],
            [drawn(t) for t in self.keys_shown],
            self.limits,
            self.outside,
            hatch=self.allow is not None and not self.allow.all(),
        )

    def static_png(self):
        """Return (PNG bytes, shown width in pixels): the head of the locked query, else all heads in small panels."""
        if self._one_head():
            png = self._picture.png(self._matrix(), self._mask(), self._title(), self.query)
            return png, shown_width(self._picture.fig)
        rows, columns = ([drawn(t) for t in tokens] for tokens in (self.queries_shown, self.keys_shown))
        return grid_png(self.weights, self.allow, rows, columns, self.limits, self.caption or "Attention weights")

    def to_html(self, path=None):
        """Return the view as a page that needs neither kernel nor network; write it to ``path`` if one is given."""
        state = {name: getattr(self, name) for name in self.choices}
        state["content"] = {**self.content, "layers": self._layers(everything=True)}
        return page_of(state, self.caption or "Attention weights", path)

    def _repr_mimebundle_(self, **keywords):
        data = super()._repr_mimebundle_(**keywords) or {"text/plain": repr(self)}
        data = dict(data[0] if isinstance(data, tuple) else data)
        png, width = self.static_png()
        data["image/png"] = png_text(png)
        return data, {"image/png": {"alt": self.static_text(), "width": width}}


def _rows_off(weights, allow):
    """Return [] or [one sentence about rows that do not sum to 1]; rows in which nothing is allowed are exempt."""
    sums = weights.sum(axis=-1, dtype=np.float64)
    off = np.abs(sums - 1) > 1e-3
    if allow is not None:
        off &= allow.any(axis=-1)
    if not off.any():
        return []
    layer, head, query = (int(n) for n in np.argwhere(off)[0])
    return [
        f"{off.sum()} of {off.size} rows do not sum to 1; the first is layer {layer}, head {head}, query {query}: "
        f"{sums[layer, head, query]:.3g}"
    ]


attention_view = AttentionView  # the name that notebooks use
