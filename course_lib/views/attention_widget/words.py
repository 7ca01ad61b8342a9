"""The attention view in words: readings with exact numbers, and the alternative text."""

import numpy as np

from ..labels import quoted, quoted_short

TOP_KEYS = 5


class Words:
    """Sentences about the head that is shown.

    A subclass provides ``weights`` and ``allow`` (L, H, Q, K), ``layer``, ``head``, ``query``, ``keys_shown``,
    ``queries_shown``, ``caption`` and ``trained_here``.
    """

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
        """Return [(key position, exact weight)], largest first, of the allowed keys that the query reads most."""
        row = self._matrix()[query]
        allowed = np.arange(len(row)) if self.allow is None else np.flatnonzero(self._mask()[query])
        order = allowed[np.argsort(-row[allowed], kind="stable")][:count]
        return [(int(k), float(row[k])) for k in order]

    def reading(self):
        """Return what the locked query reads, with exact weights."""
        if self.query is None:
            return "Choose a query to see which keys it reads, with the exact weights."
        return self._reads(self.top_keys(self.query), ".6g", ".3g", quoted)

    def _reads(self, top, form, form_of_sum, name):
        """Return what the locked query reads as one sentence that names the keys ``top`` and counts the others."""
        row = self._matrix()[self.query].astype(np.float64)
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
        """Return the picture in words, for readers who cannot see it; two decimals are the same on every machine."""
        queries, keys = self._matrix().shape
        text = f"{self._title()}: attention weights of {queries} queries (rows) on {keys} keys (columns). "
        if self.query is not None:
            top = [(k, round(value, 2)) for k, value in self.top_keys(self.query, len(self.keys_shown))]
            top.sort(key=lambda pair: (-pair[1], pair[0]))  # by position where weights differ in the last digit only
            named = [(k, value) for k, value in top if value] or top  # keys that would read 0.00 are only counted
            return text + self._reads(named[:TOP_KEYS], ".2f", ".2f", quoted_short)
        matrix = self._matrix() if self.allow is None else np.where(self._mask(), self._matrix(), -np.inf)
        if not np.isfinite(matrix).any():
            return text + "No query may look at any key."
        q, k = np.unravel_index(matrix.argmax(), matrix.shape)
        return text + (
            f"The largest is {matrix[q, k]:.2f}, where query {q} {quoted_short(self.queries_shown[q])} "
            f"reads key {k} {quoted_short(self.keys_shown[k])}."
        )

    def static_text(self):
        """Return the static picture in words."""
        layers, heads = self.weights.shape[:2]
        several = (
            "" if self._one_head() else f"All {layers} x {heads} heads side by side, layers as rows. One of them: "
        )
        return several + self.alternative_text()

    def _one_head(self):
        return self.query is not None or self.weights.shape[0] * self.weights.shape[1] == 1

    def __repr__(self):
        if getattr(self, "weights", None) is None:
            return f"{type(self).__name__}(not ready)"
        counts = ", ".join(
            _counted(n, word) for n, word in zip(self.weights.shape, ("layer", "head", "query", "key"), strict=True)
        )
        if self.trained_here:  # the numbers differ between processors
            return f"{type(self).__name__}({counts}; of a model trained in this run)"
        matrix, mask = self._matrix().astype(np.float64), self._mask()
        most = matrix.max(axis=-1) if mask is None else np.where(mask, matrix, -np.inf).max(axis=-1)[mask.any(axis=-1)]
        most = most if most.size else np.zeros(1)
        return (
            f"{type(self).__name__}({counts}; layer {self.layer} head {self.head}: "
            f"row max {most.min():.2f}..{most.max():.2f}, mean {most.mean():.3f})"
        )


def _counted(n, word):
    plural = {"query": "queries"}.get(word, word + "s")
    return f"{n} {word if n == 1 else plural}"
