"""Layers: parameters drawn once, and a ``forward`` made of the functions in ``functional``.

Letters: B batch, T time, C channels (width; PyTorch: embed_dim), H heads, D head size. This file reads the same in both
tracks. A layer made from its sizes alone draws its own weights. ``init`` is an Initializer or a seed: equal seeds give
equal weights, and a model passes one Initializer to all its layers.
"""

import numpy as np

from ..common import module
from ..common.checks import check_choice
from ..common.dropout import check_probability, draw_dropout_mask
from ..common.initializer import as_initializer
from . import functional as F
from .tensor import Parameter, from_numpy, mark_changed, no_grad


class Module(module.Module):
    """Base class of every layer of this track; see ``course_lib/common/module.py``."""

    no_grad, mark_changed = staticmethod(no_grad), staticmethod(mark_changed)


class Linear(Module):
    """The layer ``x @ weight + bias``: (..., fan_in) -> (..., fan_out).

    ``weight`` is (fan_in, fan_out), the transpose of torch.nn.Linear's. ``gain`` multiplies the initial weights.
    """

    def __init__(self, fan_in, fan_out, bias=True, init=None, gain=1.0):
        init = as_initializer(init)
        self.weight = Parameter(init.matrix(fan_in, fan_out, gain))
        self.bias = Parameter(init.bias(fan_in, fan_out)) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Embedding(Module):
    """A table with one row, a vector of ``width`` elements, for each of ``size`` ids: (...) -> (..., width).

    ``std`` is the standard deviation of the initial weights; None: that of ``init``.
    """

    def __init__(self, size, width, init=None, std=None):
        init = as_initializer(init)
        self.weight = Parameter(init.table(size, width, std))

    def forward(self, ids):
        return F.embedding(ids, self.weight)


class LayerNorm(Module):
    """The normalisation of each vector to mean 0 and variance 1, then ``· weight + bias``: (..., C) -> (..., C)."""

    def __init__(self, width, eps=1e-5, init=None, bias=True):
        init = as_initializer(init)
        self.weight = Parameter(init.constant(1, width))
        zeros = init.constant(0, width)
        self.bias = Parameter(zeros) if bias else from_numpy(zeros)  # untrained, 0 stays 0
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class Dropout(Module):
    """Zeros with probability ``p`` in training, no change in evaluation; drawn from its own NumPy Generator ``rng``."""

    def __init__(self, p=0.5, rng=None):
        check_probability(p)
        self.p, self.rng = p, np.random.default_rng() if rng is None else rng

    def forward(self, x):
        return F.dropout(x, self.p, self.training, self.rng)

    def mask(self, shape):
        """Draw the factors of attention weights, an array of ``shape``; return None when nothing is dropped."""
        return draw_dropout_mask(shape, self.p, self.rng) if self.training and self.p else None


class Sequential(Module):
    """Layers one after the other."""

    def __init__(self, *layers):
        self.layers = layers

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, index):
        return self.layers[index]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class SimpleAttention(Module):
    """Attention without matrices: query, key and value are all x. (B, T, C) -> (B, T, C).

    After each call ``weights`` (B, T, T) holds the attention weights.
    """

    def __init__(self, context_length, causal):
        self.allow = F.causal_mask(context_length) if causal else None
        self.weights = None

    def forward(self, x):
        T = x.shape[1]
        allow = None if self.allow is None else self.allow[:T, :T]
        out, self.weights = F.attention(x, x, x, allow)
        return out


class SelfAttention(Module):
    """Multi-head self-attention: (B, T, C) -> (B, T, C), with biases if ``config.attention_bias``.

    After each call ``weights`` (B, H, T, T) holds the attention weights, before dropout. With a cache, x holds only the
    new positions, their keys and values join those of ``layer`` in the cache, and ``weights`` is (B, H, T, S): new
    positions attend to all S so far.
    """

    def __init__(self, config, init=None, dropout=None, gain=1.0):
        C, bias = config.width, config.attention_bias
        init = as_initializer(init)
        self.heads = config.heads
        self.query = Linear(C, C, bias, init)
        self.key = Linear(C, C, bias, init)
        self.value = Linear(C, C, bias, init)
        self.output = Linear(C, C, bias, init, gain)
        self.dropout = Dropout(0.0) if dropout is None else dropout
        self.allow = F.causal_mask(config.context_length) if config.causal else None
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
        dropout_mask = self.dropout.mask((B, self.heads, T, T))
        context, self.weights = F.attention(q, k, v, allow, dropout_mask=dropout_mask)  # (B, H, T, D)
        return self.output(F.merge_heads(context))  # (B, H, T, D) -> (B, T, C)


class MLP(Module):
    """Two linear layers with a nonlinearity between them: (..., C) -> (..., d_ff) -> (..., C).

    ``d_ff``, the number of hidden units, is 4C when None; ``dropout``, a Dropout, acts on the hidden units.
    Raises ValueError unless ``activation`` is a name in ``F.ACTIVATIONS``.
    """

    def __init__(self, width, d_ff=None, activation="gelu", init=None, gain=1.0, dropout=None):
        check_choice("activation", activation, F.ACTIVATIONS)
        d_ff = 4 * width if d_ff is None else d_ff
        init = as_initializer(init)
        self.up = Linear(width, d_ff, init=init)
        self.down = Linear(d_ff, width, init=init, gain=gain)
        self.activation = F.ACTIVATIONS[activation]
        self.dropout = dropout

    def forward(self, x):
        hidden = self.activation(self.up(x))  # (..., C) -> (..., d_ff)
        return self.down(hidden if self.dropout is None else self.dropout(hidden))
