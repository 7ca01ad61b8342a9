"""Layers: parameters drawn once, and a ``forward`` made of the functions next door.

Letters: B batch, T time, C channels, H heads, D head size. This file reads the same in both tracks.
"""

from .. import module
from ..inputs import keep_mask
from . import functional as F
from .tensor import Parameter, no_grad


class Module(module.Module):
    """Base of every layer of this track; see ``course_lib/module.py``."""

    no_grad = staticmethod(no_grad)


class Linear(Module):
    """``y = x @ weight + bias``: (..., fan_in) -> (..., fan_out). ``initial`` draws the weights."""

    def __init__(self, fan_in, fan_out, initial, bias=True, gain=1.0):
        self.weight = Parameter(initial.matrix(fan_in, fan_out, gain))
        self.bias = Parameter(initial.bias(fan_in, fan_out)) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Embedding(Module):
    """A table with one row of ``width`` numbers for each of ``size`` ids: (...) -> (..., width)."""

    def __init__(self, size, width, initial):
        self.table = Parameter(initial.table(size, width))

    def forward(self, ids):
        return F.embedding(self.table, ids)


class LayerNorm(Module):
    """Each position's numbers to mean 0 and variance 1, then times ``gain`` plus ``bias``: (..., C) -> (..., C)."""

    def __init__(self, width, initial, epsilon=1e-5):
        self.gain = Parameter(initial.constant(1, width))
        self.bias = Parameter(initial.constant(0, width))
        self.epsilon = epsilon

    def forward(self, x):
        return F.layer_norm(x, self.gain, self.bias, self.epsilon)


class Dropout(Module):
    """Zeros with probability ``p`` in training, nothing in evaluation. Draws from its own Generator ``rng``."""

    def __init__(self, p, rng):
        self.p, self.rng = p, rng

    def forward(self, x):
        return F.dropout(x, self.p, self.rng, self.training)

    def mask(self, shape):
        """What attention multiplies its weights with, or None when nothing is dropped."""
        return keep_mask(shape, self.p, self.rng) if self.training and self.p else None


class Sequential(Module):
    """Layers one after the other."""

    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class SimpleAttention(Module):
    """Attention with no matrices of its own: query, key and value are all x. (B, T, C) -> (B, T, C).

    After each call ``weights`` (B, T, T) holds who looked at whom.
    """

    def __init__(self, context, causal):
        self.allow = F.causal_mask(context) if causal else None
        self.weights = None

    def forward(self, x):
        T = x.shape[1]
        allow = None if self.allow is None else self.allow[:T, :T]
        out, self.weights = F.attention(x, x, x, allow)
        return out


class SelfAttention(Module):
    """Multi-head self-attention: (B, T, C) -> (B, T, C). Query, key, value and output matrices; their biases as
    ``config.attention_bias`` says.

    After each call ``weights`` (B, H, T, T) holds who looked at whom, before dropout. With a cache x holds the new
    positions only, their keys and values join those of ``layer`` in the cache, and ``weights`` is (B, H, T, S): each
    new position looks at all S so far.
    """

    def __init__(self, config, initial, dropout, gain=1.0):
        C, bias = config.width, config.attention_bias
        self.heads = config.heads
        self.query = Linear(C, C, initial, bias)
        self.key = Linear(C, C, initial, bias)
        self.value = Linear(C, C, initial, bias)
        self.output = Linear(C, C, initial, bias, gain=gain)
        self.dropout = dropout
        self.allow = F.causal_mask(config.context) if config.causal else None
        self.weights = None

    def forward(self, x, cache=None, layer=0):
        B, T, _ = x.shape
        layers = (self.query, self.key, self.value)
        q, k, v = F.linear_heads(x, [f.weight for f in layers], [f.bias for f in layers], self.heads)  # (B, H, T, D)
        start = 0
        if cache is not None:
            start = cache.length
            k, v = cache.extend(layer, k, v)  # (B, H, T, D) -> (B, H, S, D), S = start + T
        allow = None if self.allow is None else self.allow[start : start + T, : start + T]
        keep = self.dropout.mask((B, self.heads, T, T))
        context, self.weights = F.attention(q, k, v, allow, keep=keep)  # (B, H, T, D)
        return self.output(F.merge_heads(context))  # (B, H, T, D) -> (B, T, C)


class MLP(Module):
    """Two layers with a bend between: (..., C) -> (..., 4C) -> (..., C)."""

    def __init__(self, width, initial, activation="gelu", gain=1.0):
        self.inner = Linear(width, 4 * width, initial)
        self.outer = Linear(4 * width, width, initial, gain=gain)
        self.activation = F.relu if activation == "relu" else F.gelu

    def forward(self, x):
        return self.outer(self.activation(self.inner(x)))
