"""The models of the course, from one table to the whole GPT. This file reads the same in both tracks.

Every model takes ids (B, T) and, if wanted, targets (B, T), NumPy arrays, and returns (logits (B, T, V), loss or None).
Letters: B batch, T time, C channels, H heads, L layers, V vocabulary.
"""

import math
import sys

import numpy as np

from ..initial import Initial
from ..inputs import check_batch
from . import functional as F
from .cache import KeyValueCache
from .modules import MLP, Dropout, Embedding, LayerNorm, Linear, Module, SelfAttention, SimpleAttention
from .tensor import Parameter


class Bigram(Module):
    """The next token from the last one alone: row ``id`` of one table (V, V) holds the logits of what follows."""

    def __init__(self, vocabulary_size, seed=0, dtype="float32"):
        self.vocabulary_size, self.context = vocabulary_size, sys.maxsize
        self.table = Parameter(Initial(seed, dtype=dtype).table(vocabulary_size, vocabulary_size))

    def forward(self, ids, targets=None):
        logits = F.embedding(self.table, check_batch(ids, self.context))  # (B, T) -> (B, T, V)
        return logits, None if targets is None else F.cross_entropy(logits, targets)


class FirstBlock(Module):
    """Attention, an output matrix, a feed-forward; no residual path, no LayerNorm. (B, T, C) -> (B, T, C)."""

    def __init__(self, config, initial):
        C = config.width
        self.attention = SimpleAttention(config.context, config.causal)
        self.output = Linear(C, C, initial) if config.output_projection else None
        self.feed_forward = MLP(C, initial, activation="gelu")

    def forward(self, x):
        x = self.attention(x)
        if self.output is not None:
            x = self.output(x)
        return self.feed_forward(x)


class FirstGPT(Module):
    """The first GPT of the course: ids (B, T) -> logits (B, T, V). ``config`` is a FirstGPTConfig."""

    def __init__(self, config, seed=0):
        V, T, C = config.vocabulary_size, config.context, config.width
        initial = Initial(seed, config.initial, config.dtype)
        self.config, self.vocabulary_size, self.context = config, V, T
        self.token = Embedding(V, C, initial)
        self.position = Parameter(initial.table(T, C))
        self.blocks = [FirstBlock(config, initial) for _ in range(config.layers)]
        self.head = Linear(C, V, initial)

    def forward(self, ids, targets=None):
        ids = check_batch(ids, self.context)
        x = self.token(ids) + self.position[: ids.shape[1]]  # (B, T) -> (B, T, C)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)  # (B, T, C) -> (B, T, V)
        return logits, None if targets is None else F.cross_entropy(logits, targets)

    def attention_maps(self, ids):
        """Who looks at whom in one sequence ``ids`` (T,): an array (L, H, T, T), here with one head."""
        with self.evaluating():
            self(np.asarray(ids)[None])
        maps = [np.asarray(block.attention.weights) for block in self.blocks]
        return np.stack(maps) if maps else np.empty((0, 1, len(ids), len(ids)))


class Sublayer(Module):
    """One step of a block and the way around it; ``wiring`` says where the residual path and the LayerNorm sit."""

    def __init__(self, layer, config, initial, dropout):
        self.wiring = config.wiring
        self.norm = LayerNorm(config.width, initial) if config.wiring in ("pre", "post") else None
        self.layer = layer
        self.dropout = dropout

    def forward(self, x, *past):
        change = self.dropout(self.layer(self.norm(x) if self.wiring == "pre" else x, *past))
        if self.wiring == "plain":
            return change
        return self.norm(x + change) if self.wiring == "post" else x + change


class Block(Module):
    """Look around, then think: attention and an MLP, each in its Sublayer. (B, T, C) -> (B, T, C).

    ``past`` is a cache and the number of this block, or nothing.
    """

    def __init__(self, config, initial, dropout):
        # Two matrices per block write into the residual stream; scaled, their sum keeps its size at any depth.
        gain = 1 / math.sqrt(2 * config.layers) if config.residual_scaled else 1.0
        self.attention = Sublayer(SelfAttention(config, initial, dropout, gain), config, initial, dropout)
        self.mlp = None
        if config.activation != "none":
            self.mlp = Sublayer(MLP(config.width, initial, config.activation, gain), config, initial, dropout)

    def forward(self, x, *past):
        x = self.attention(x, *past)
        return x if self.mlp is None else self.mlp(x)


class GPT(Module):
    """The decoder-only Transformer: ids (B, T) -> logits (B, T, V). ``config`` is a GPTConfig.

    With ``cache`` (from ``new_cache``) ids are the tokens that follow those of the cache, and logits are theirs alone.
    Raises ValueError for a cache of another shape, without room, or together with targets, dropout or a graph.
    """

    def __init__(self, config, seed=0):
        V, T, C = config.vocabulary_size, config.context, config.width
        initial = Initial(seed, config.initial, config.dtype)
        self.config, self.vocabulary_size, self.context = config, V, T
        self.dropout = Dropout(config.dropout, np.random.default_rng([seed, 1]))  # not the Generator of the weights
        self.token = Embedding(V, C, initial)
        self.position = Parameter(initial.table(T, C)) if config.positions else None
        self.blocks = [Block(config, initial, self.dropout) for _ in range(config.layers)]
        self.norm = LayerNorm(C, initial) if config.wiring == "pre" else None
        self.head = None if config.tied else Linear(C, V, initial)

    def new_cache(self, batch=1):
        """An empty cache for ``batch`` texts that grow together, up to the context."""
        return KeyValueCache(self.config, batch)

    def forward(self, ids, targets=None, cache=None):
        ids = check_batch(ids, self.context)
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
        logits = F.linear(x, self.token.table.T) if self.head is None else self.head(x)  # (B, T, C) -> (B, T, V)
        return logits, None if targets is None else F.cross_entropy(logits, targets)

    def attention_maps(self, ids):
        """Who looks at whom in one sequence ``ids`` (T,): an array (L, H, T, T)."""
        with self.evaluating():
            self(np.asarray(ids)[None])
        maps = [np.asarray(block.attention.layer.weights[0]) for block in self.blocks]
        return np.stack(maps) if maps else np.empty((0, self.config.heads, len(ids), len(ids)))
