"""The models of the course, from one table to the whole GPT. This file reads the same in both tracks.

Every model takes ids (B, T) and optional targets (B, T), NumPy arrays, and returns (logits (B, T, V), loss or None).
Letters: B batch, T time, C channels, H heads, L layers, V vocabulary.
"""

import math
import sys

import numpy as np

from ..common.checks import check_batch
from ..common.initializer import Initializer
from . import functional as F
from .cache import KeyValueCache
from .modules import MLP, Dropout, Embedding, Linear, Module, SimpleAttention
from .tensor import Parameter
from .today import attention_layer, mlp_layer, norm_layer, token_layer


class Bigram(Module):
    """A model of the next token given only the last: row ``id`` of a table (V, V) holds the logits of the next."""

    def __init__(self, vocab_size, seed=0, dtype="float32"):
        self.vocab_size, self.context_length = vocab_size, sys.maxsize
        self.weight = Parameter(Initializer(seed, "small", dtype).table(vocab_size, vocab_size))

    def forward(self, ids, targets=None):
        logits = F.embedding(check_batch(ids, self.context_length), self.weight)  # (B, T) -> (B, T, V)
        return logits, None if targets is None else F.cross_entropy(logits, targets)


class FirstBlock(Module):
    """Attention, an output matrix and an MLP, without residual path or LayerNorm: (B, T, C) -> (B, T, C)."""

    def __init__(self, config, init):
        C = config.width
        self.attention = SimpleAttention(config.context_length, config.causal)
        self.output = Linear(C, C, init=init) if config.output_projection else None
        self.feed_forward = MLP(C, activation="gelu", init=init)

    def forward(self, x):
        x = self.attention(x)
        if self.output is not None:
            x = self.output(x)
        return self.feed_forward(x)


class FirstGPT(Module):
    """The first GPT of the course: ids (B, T) -> logits (B, T, V). ``config`` is a FirstGPTConfig."""

    def __init__(self, config, seed=0):
        V, T, C = config.vocab_size, config.context_length, config.width
        init = Initializer(seed, config.init, config.dtype)
        self.config, self.vocab_size, self.context_length = config, V, T
        self.token = Embedding(V, C, init)
        self.position = Parameter(init.table(T, C))
        self.blocks = [FirstBlock(config, init) for _ in range(config.layers)]
        self.head = Linear(C, V, init=init)

    def forward(self, ids, targets=None):
        ids = check_batch(ids, self.context_length)
        x = self.token(ids) + self.position[: ids.shape[1]]  # (B, T) -> (B, T, C)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)  # (B, T, C) -> (B, T, V)
        return logits, None if targets is None else F.cross_entropy(logits, targets)

    def attention_maps(self, ids):
        """Return the attention weights of one sequence ``ids`` (T,): an array (L, H, T, T), here with one head."""
        with self.evaluating():
            self(np.asarray(ids)[None])
        maps = [np.asarray(block.attention.weights) for block in self.blocks]
        return np.stack(maps) if maps else np.empty((0, 1, len(ids), len(ids)))


class Sublayer(Module):
    """One step of a block with its residual connection and LayerNorm: (..., C) -> (..., C).

    ``config.norm``: "pre" normalises the input of ``layer``, "post" the sum, None neither.
    ``config.residual``: x is added to the output of ``layer``.
    """

    def __init__(self, layer, config, init, dropout):
        self.pre, self.post, self.residual = config.norm == "pre", config.norm == "post", config.residual
        self.norm = norm_layer(config, init) if config.norm else None
        self.layer = layer
        self.dropout = dropout

    def forward(self, x, *past):
        change = self.dropout(self.layer(self.norm(x) if self.pre else x, *past))
        x = x + change if self.residual else change
        return self.norm(x) if self.post else x


class Block(Module):
    """Attention, then an MLP, each in its Sublayer: (B, T, C) -> (B, T, C).

    ``past`` is a cache and the index of this block, or nothing.
    """

    def __init__(self, config, init, dropout):
        # Two matrices per block write into the residual stream; scaled, their sum keeps its size at any depth.
        gain = 1 / math.sqrt(2 * config.layers) if config.residual_scaled else 1.0
        self.attention = Sublayer(attention_layer(config, init, dropout, gain), config, init, dropout)
        self.mlp = None
        if config.activation != "none":
            self.mlp = Sublayer(mlp_layer(config, init, gain), config, init, dropout)

    def forward(self, x, *past):
        x = self.attention(x, *past)
        return x if self.mlp is None else self.mlp(x)


class ConvolvedBlock(Block):
    """A Block whose MLP reads earlier positions, too, through its convolution, and so takes the cache."""

    def forward(self, x, *past):
        return self.mlp(self.attention(x, *past), *past)


class GPT(Module):
    """The decoder-only Transformer: ids (B, T) -> logits (B, T, V). ``config`` is a GPTConfig.

    With ``cache`` (from ``new_cache``) ids are the tokens that follow those in the cache, and logits are theirs alone.
    Raises ValueError for a cache of another shape or without room, or with targets, dropout or a graph.
    """

    def __init__(self, config, seed=0):
        V, T, C = config.vocab_size, config.context_length, config.width
        init = Initializer(seed, config.init, config.dtype)
        self.config, self.vocab_size, self.context_length = config, V, T
        self.dropout = Dropout(config.dropout, np.random.default_rng([seed, 1]))  # not the Generator of the weights
        self.token = token_layer(config, init)
        self.position = Parameter(init.table(T, C)) if config.positions and not config.rotary else None
        block = ConvolvedBlock if config.conv_kernel else Block
        self.blocks = [block(config, init, self.dropout) for _ in range(config.layers)]
        self.norm = norm_layer(config, init) if config.norm == "pre" else None
        self.head = None if config.tied else Linear(C, V, config.bias, init)

    def new_cache(self, batch=1):
        """Return an empty cache for ``batch`` texts that grow together, up to the context length."""
        return KeyValueCache(self.config, batch)

    def forward(self, ids, targets=None, cache=None):
        ids = check_batch(ids, self.context_length)
        start = 0 if cache is None else cache.admit(self, ids, targets)  # how many tokens came before
        end = start + ids.shape[1]
        x = self.token(ids)  # (B, T) -> (B, T, C)
        if self.position is not None:
            x = x + self.position[start:end]
        x = self.dropout(x)
        for layer, block in enumerate(self.blocks):
            x = block(x) if cache is None else block(x, cache, layer)
        if cache is not None:
            cache.length = end
        if self.norm is not None:
            x = self.norm(x)
        logits = F.linear(x, self.token.weight.T) if self.head is None else self.head(x)  # (B, T, C) -> (B, T, V)
        return logits, None if targets is None else F.cross_entropy(logits, targets)

    def attention_maps(self, ids):
        """Return the attention weights of one sequence ``ids`` (T,): an array (L, H, T, T)."""
        with self.evaluating():
            self(np.asarray(ids)[None])
        maps = [np.asarray(block.attention.layer.weights[0]) for block in self.blocks]
        return np.stack(maps) if maps else np.empty((0, self.config.heads, len(ids), len(ids)))
