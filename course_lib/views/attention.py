"""`attention_view`: look at attention weights, choose layer, head and query, and read the exact numbers."""

import sys

try:
    import ipywidgets as widgets
    import traitlets
except ImportError as missing:
    raise ImportError(
        f"the attention view needs ipywidgets in the Python that runs this notebook; install it with:  "
        f'"{sys.executable}" -m pip install ipywidgets'
    ) from missing

import numpy as np

from .all_heads import grid_png
from .labels import drawn, escaped, quoted, short, visible
from .one_head import HeadPicture
from .style import png_text
from .tensors import checked_mask, checked_tokens, checked_weights

TOP_KEYS = 5
LONGEST_IN_WORDS = 24  # characters of a token in the alternative text
# JupyterLab takes arrow keys and letters from a list in an output as commands (x cuts the cell). This mark on the lists
# keeps the keys for them; ipywidgets cannot set it, so the picture does when it has loaded.
_KEEP_KEYS = (
    "this.closest('.attention-view')?.querySelectorAll('select')"
    ".forEach(s =&gt; s.setAttribute('data-lm-suppress-shortcuts', 'true'))"
)


def attention_view(weights, tokens, *, query_tokens=None, allow=None, layer=0, head=0, title=None, value_limits=(0, 1)):
    """Show attention weights: a picture of one head, with selectors for the layer, the head and a query in focus.

    weights: (T, T), (H, T, T) or (L, H, T, T); an array, a list, or a tensor of either track. Rows are queries,
    columns are keys. tokens: the T tokens, as text; with query_tokens (T_q of them) the tokens are those of the keys
    only, as in cross-attention: weights (…, T_q, T_k). allow: boolean, True = may look, of the last two axes or more;
    cells that are not allowed are hatched, and not drawn as zero. value_limits: the values at the ends of the colour
    bar; weights are checked against (0, 1), for scores give limits of their own, or None for the smallest and largest.
    Raises ValueError, naming the numbers, for shapes that do not fit the tokens, values that are not finite, weights
    outside 0 … 1, and weight on a cell that is not allowed.

    >>> attention_view([[1, 0], [0.25, 0.75]], ["the", "cat"])
    AttentionView(1 layer, 1 head, 2 queries, 2 keys; layer 0 head 0: row max 0.75..1.00, mean 0.875)
    """
    return AttentionView(
        weights,
        tokens,
        query_tokens=query_tokens,
        allow=allow,
        layer=layer,
        head=head,
        title=title,
        value_limits=value_limits,
    )


class AttentionView(widgets.VBox):
    """What `attention_view` returns. Set `view.layer`, `view.head` and `view.query` (None: no focus) as you like."""

    layer = traitlets.Int(0)
    head = traitlets.Int(0)
    query = traitlets.Int(None, allow_none=True)

    def __init__(
        self, weights, tokens, *, query_tokens=None, allow=None, layer=0, head=0, title=None, value_limits=(0, 1)
    ):
        self.keys_shown = checked_tokens(tokens, "tokens")
        self.queries_shown = self.keys_shown if query_tokens is None else checked_tokens(query_tokens, "query_tokens")
        self.weights, self.limits, outside = checked_weights(
            weights, self.queries_shown, self.keys_shown, allow, value_limits
        )
        self.allow = checked_mask(allow, self.weights.shape)
        self.caption = None if title is None else str(title)
        self._picture = HeadPicture(
            [drawn(t) for t in self.queries_shown],
            [drawn(t) for t in self.keys_shown],
            self.limits,
            hatch=self.allow is not None and not self.allow.all(),
            outside=outside,
        )
        layers, heads = self.weights.shape[:2]
        self._controls = {
            "layer": _select("Layer", [(str(n), n) for n in range(layers)]),
            "head": _select("Head", [(str(n), n) for n in range(heads)]),
            "query": _select(
                "Query",
                [("all rows", None)]
                + [(f"{n}: {short(visible(t), LONGEST_IN_WORDS)}", n) for n, t in enumerate(self.queries_shown)],
                width="15em",
            ),
        }
        shown = [self._controls[name] for name, n in (("layer", layers), ("head", heads), ("query", 2)) if n > 1]
        self._image, self._status = widgets.HTML(), widgets.HTML()
        super().__init__([widgets.HBox(shown, layout={"flex_flow": "row wrap"}), self._image, self._status])
        self.add_class("attention-view")
        self.layer, self.head = layer, head
        for name, control in self._controls.items():
            traitlets.link((self, name), (control, "value"))
        self.observe(self._draw, ["layer", "head", "query"])
        self._draw()

    @traitlets.validate("layer", "head", "query")
    def _within(self, proposal):
        name, value = proposal.trait.name, proposal.value
        count = self.weights.shape[("layer", "head", "query").index(name)]
        if value is not None and not 0 <= value < count:
            raise traitlets.TraitError(
                f"{name} {value} does not exist: there are {count}, numbered from 0 to {count - 1}"
            )
        return value

    def _draw(self, _change=None):
        png = self._picture.png(self._matrix(), self._mask(), self._title(), self.query, quick=True)
        self._image.value = (
            f'<img alt="{escaped(self.alternative_text())}" onload="{_KEEP_KEYS}" style="max-width: 100%" '
            f'width="{round(self._picture.width * 96)}" src="data:image/png;base64,{png_text(png)}">'
        )
        self._status.value = (
            f'<div role="status" aria-live="polite" style="line-height: 1.5">{escaped(self.reading())}</div>'
        )

    def _matrix(self):
        return self.weights[self.layer, self.head]

    def _mask(self):
        return None if self.allow is None else self.allow[self.layer, self.head]

    def _title(self):
        layers, heads = self.weights.shape[:2]
        where = ", ".join(
            f"{name} {n}" for name, n, count in (("layer", self.layer, layers), ("head", self.head, heads)) if count > 1
        )
        return " · ".join(text for text in (self.caption, where) if text) or "Attention weights"

    def top_keys(self, query, count=TOP_KEYS):
        """[(key position, exact weight)], largest first, of the allowed keys that the query reads most."""
        row = self._matrix()[query]
        places = np.arange(len(row)) if self.allow is None else np.flatnonzero(self._mask()[query])
        order = places[np.argsort(-row[places], kind="stable")][:count]
        return [(int(k), float(row[k])) for k in order]

    def reading(self):
        """The line under the picture: what the query in focus reads, with exact weights."""
        if self.query is None:
            return "Choose a query to see which keys it reads, with the exact weights."
        return self._reads(self.top_keys(self.query), ".6g", ".3g", quoted)

    def _reads(self, top, form, form_of_sum, name):
        """One sentence: what the query in focus reads, with the keys `top` named and the others counted."""
        row = self._matrix()[self.query]
        may = np.ones(len(row), dtype=bool) if self.allow is None else self._mask()[self.query].copy()
        allowed = int(may.sum())
        may[[k for k, _ in top]] = False
        parts = [f"{name(self.keys_shown[k])} ({k}) {value:{form}}" for k, value in top]
        if may.any():
            parts.append(f"the other {may.sum()} together {row[may].sum():{form_of_sum}}")
        if allowed < len(row):
            parts.append(f"{len(row) - allowed} not allowed")
        return f"Query {self.query} {name(self.queries_shown[self.query])} reads: " + ", ".join(parts)

    def alternative_text(self):
        """The picture in words, for a reader who cannot see it; two decimals, which are the same on every machine."""
        queries, keys = self._matrix().shape
        text = f"{self._title()}: attention weights of {queries} queries (rows) on {keys} keys (columns). "
        if self.query is not None:
            top = [(k, round(value, 2)) for k, value in self.top_keys(self.query, len(self.keys_shown))]
            top.sort(key=lambda pair: (-pair[1], pair[0]))  # weights that differ in the last digit only: by place
            named = [(k, value) for k, value in top if value] or top  # what would be read as 0.00 is only counted
            return text + self._reads(named[:TOP_KEYS], ".2f", ".2f", _in_words)
        matrix = self._matrix() if self.allow is None else np.where(self._mask(), self._matrix(), -np.inf)
        if not np.isfinite(matrix).any():
            return text + "No query may look at any key."
        q, k = np.unravel_index(matrix.argmax(), matrix.shape)
        return text + (
            f"The largest is {matrix[q, k]:.2f}, where query {q} {_in_words(self.queries_shown[q])} "
            f"reads key {k} {_in_words(self.keys_shown[k])}."
        )

    def static_text(self):
        """The static picture in words."""
        layers, heads = self.weights.shape[:2]
        several = (
            "" if self._one_head() else f"All {layers} x {heads} heads side by side, layers as rows. One of them: "
        )
        return several + self.alternative_text()

    def _one_head(self):
        return self.query is not None or self.weights.shape[0] * self.weights.shape[1] == 1

    def static_png(self):
        """(PNG bytes, shown width in pixels): with a query in focus its head, else all heads in small panels."""
        if self._one_head():
            return self._picture.png(self._matrix(), self._mask(), self._title(), self.query), round(
                self._picture.width * 96
            )
        rows, columns = ([drawn(t) for t in tokens] for tokens in (self.queries_shown, self.keys_shown))
        return grid_png(self.weights, self.allow, rows, columns, self.limits, self.caption or "Attention weights")

    def __repr__(self):
        if not hasattr(self, "_status"):
            return "AttentionView(not ready)"
        counts = ", ".join(
            _counted(n, word) for n, word in zip(self.weights.shape, ("layer", "head", "query", "key"), strict=True)
        )
        matrix, mask = self._matrix(), self._mask()
        most = matrix.max(axis=-1) if mask is None else np.where(mask, matrix, -np.inf).max(axis=-1)[mask.any(axis=-1)]
        most = most if most.size else np.zeros(1)
        return (
            f"AttentionView({counts}; layer {self.layer} head {self.head}: "
            f"row max {most.min():.2f}..{most.max():.2f}, mean {most.mean():.3f})"
        )

    def _repr_mimebundle_(self, **keywords):
        data = super()._repr_mimebundle_(**keywords) or {"text/plain": repr(self)}
        data = data[0] if isinstance(data, tuple) else data
        png, width = self.static_png()
        data["image/png"] = png_text(png)
        return data, {"image/png": {"alt": self.static_text(), "width": width}}


def _in_words(token):
    return f"“{short(visible(token), LONGEST_IN_WORDS)}”"


def _counted(n, word):
    plural = {"query": "queries"}.get(word, word + "s")
    return f"{n} {word if n == 1 else plural}"


def _select(name, options, width="9em"):
    return widgets.Dropdown(
        options=options, description=name, layout={"width": width}, style={"description_width": "initial"}
    )
