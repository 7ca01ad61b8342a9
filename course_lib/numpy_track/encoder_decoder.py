"""The encoder–decoder Transformer (Vaswani et al. 2017). This file reads the same in both tracks.

The encoder reads the source once, every position attending to all; the decoder writes the target, each position
attending to itself, to earlier ones and to the whole source. Letters: B batch, S source length, T target length,
C channels, H heads, D head size, L layers, V vocabulary. Padding is a separate token that never occurs in text; masks
are boolean, True = may be attended to.
"""

import math

import numpy as np

from ..common.checks import check_batch
from ..common.initializer import Initializer, as_initializer
from ..common.positions import sinusoidal_positions
from . import functional as F
from .modules import MLP, Dropout, Embedding, LayerNorm, Linear, Module
from .tensor import from_numpy


class MultiHeadAttention(Module):
    """Attention with a query and a key and value from different sequences: (B, T, C), (B, S, C) -> (B, T, C).

    Self-attention is ``f(x, x, x)``, cross-attention ``f(x, memory, memory)``. Four matrices with biases, as in
    torch.nn.MultiheadAttention. After each call ``weights`` (B, H, T, S) holds the attention weights, before dropout.
    """

    def __init__(self, width, heads, init=None, dropout=None):
        init = as_initializer(init)
        self.heads = heads
        self.query = Linear(width, width, init=init)
        self.key = Linear(width, width, init=init)
        self.value = Linear(width, width, init=init)
        self.output = Linear(width, width, init=init)
        self.dropout = Dropout(0.0) if dropout is None else dropout
        self.weights = None

    def forward(self, query, key, value, allow=None):
        q = F.split_heads(self.query(query), self.heads)  # (B, T, C) -> (B, H, T, D)
        k = F.split_heads(self.key(key), self.heads)  # (B, S, C) -> (B, H, S, D)
        v = F.split_heads(self.value(value), self.heads)
        dropout_mask = self.dropout.mask((*q.shape[:-1], k.shape[-2]))
        context, self.weights = F.attention(q, k, v, allow, dropout_mask=dropout_mask)  # (B, H, T, D)
        return self.output(F.merge_heads(context))  # (B, H, T, D) -> (B, T, C)


class EncoderLayer(Module):
    """Self-attention, then an MLP; each adds its input and normalises the sum (post-norm): (B, S, C) -> (B, S, C)."""

    def __init__(self, config, init, dropout):
        C = config.width
        self.attention = MultiHeadAttention(C, config.heads, init, dropout)
        self.attention_norm = LayerNorm(C, init=init)
        self.feed_forward = MLP(C, config.d_ff, "relu", init, dropout=dropout)
        self.feed_forward_norm = LayerNorm(C, init=init)
        self.dropout = dropout

    def forward(self, x, allow=None):
        x = self.attention_norm(x + self.dropout(self.attention(x, x, x, allow)))
        return self.feed_forward_norm(x + self.feed_forward(x))


class DecoderLayer(Module):
    """Self-attention, cross-attention, MLP, each followed by add and norm: (B, T, C), (B, S, C) -> (B, T, C)."""

    def __init__(self, config, init, dropout):
        C = config.width
        self.attention = MultiHeadAttention(C, config.heads, init, dropout)
        self.attention_norm = LayerNorm(C, init=init)
        self.cross = MultiHeadAttention(C, config.heads, init, dropout)
        self.cross_norm = LayerNorm(C, init=init)
        self.feed_forward = MLP(C, config.d_ff, "relu", init, dropout=dropout)
        self.feed_forward_norm = LayerNorm(C, init=init)
        self.dropout = dropout

    def forward(self, x, memory, allow=None, memory_allow=None):
        x = self.attention_norm(x + self.dropout(self.attention(x, x, x, allow)))
        x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory, memory_allow)))
        return self.feed_forward_norm(x + self.feed_forward(x))


class PositionedEmbedding(Module):
    """Tokens and their positions as vectors: ids (B, T) -> ``table[ids] · √C + positions`` (B, T, C).

    The positions are constant: they are not trained and not among the parameters.
    Raises ValueError for an empty sequence or one longer than ``context_length``.
    """

    def __init__(self, size, width, context_length, init, dtype="float32"):
        self.token = Embedding(size, width, init)
        self.positions = from_numpy(sinusoidal_positions(context_length, width, dtype))
        self.context_length, self.scale = context_length, math.sqrt(width)

    def forward(self, ids):
        ids = check_batch(ids, self.context_length)
        return self.token(ids) * self.scale + self.positions[: ids.shape[1]]


class Encoder(Module):
    """The encoder: source ids (B, S) -> memory (B, S, C). ``allow`` (B, S): True = a real token, False = padding."""

    def __init__(self, config, init, dropout):
        self.embedding = PositionedEmbedding(
            config.source_vocab_size, config.width, config.context_length, init, config.dtype
        )
        self.layers = [EncoderLayer(config, init, dropout) for _ in range(config.layers)]

    def forward(self, source, allow=None):
        x = self.embedding(source)  # (B, S) -> (B, S, C)
        allow = on_key_axis(allow, x.shape[:2], "source_allow")
        for layer in self.layers:
            x = layer(x, allow)
        return x


class Decoder(Module):
    """The decoder: target ids (B, T), memory (B, S, C) -> (B, T, C); position i attends to 0 ... i and all of memory.

    ``allow`` (B, T) and ``memory_allow`` (B, S): True = a real token, False = padding.
    Raises ValueError unless there are as many sources as targets.
    """

    def __init__(self, config, init, dropout):
        self.embedding = PositionedEmbedding(
            config.target_vocab_size, config.width, config.context_length, init, config.dtype
        )
        self.layers = [DecoderLayer(config, init, dropout) for _ in range(config.layers)]

    def forward(self, target, memory, allow=None, memory_allow=None):
        x = self.embedding(target)  # (B, T) -> (B, T, C)
        if len(memory) != len(x):
            raise ValueError(f"{len(memory)} sources, but {len(x)} targets: each target goes with one source")
        seen = F.causal_mask(x.shape[1])  # (T, T)
        if allow is not None:
            seen = seen & on_key_axis(allow, x.shape[:2], "target_allow")  # (B, 1, T, T)
        memory_allow = on_key_axis(memory_allow, memory.shape[:2], "source_allow")
        for layer in self.layers:
            x = layer(x, memory, seen, memory_allow)
        return x


def on_key_axis(allow, shape, name):
    """Return a mask of real tokens in the form for attention: (B, S) -> (B, 1, 1, S), the same keys for every query.

    None stays None. Raises TypeError unless boolean, ValueError unless it has the ``shape`` of the ids.
    """
    allow = F.check_allow(allow, name=name)
    if allow is None:
        return None
    if tuple(allow.shape) != tuple(shape):
        raise ValueError(f"{name} has shape {tuple(allow.shape)}, but the ids {tuple(shape)}")
    return allow[:, None, None, :]


class Transformer(Module):
    """The encoder–decoder: ids (B, S), (B, T) -> logits (B, T, V). ``config`` is a TransformerConfig."""

    def __init__(self, config, seed=0):
        init = Initializer(seed, config.init, config.dtype)
        self.config, self.vocab_size = config, config.target_vocab_size
        self.dropout = Dropout(config.dropout, np.random.default_rng([seed, 1]))  # not the Generator of the weights
        self.encoder = Encoder(config, init, self.dropout)
        self.decoder = Decoder(config, init, self.dropout)
        self.head = Linear(config.width, config.target_vocab_size, init=init)

    def forward(self, source, target, source_allow=None, target_allow=None):
        return self.decode(target, self.encode(source, source_allow), source_allow, target_allow)

    def encode(self, source, source_allow=None):
        """Read the source: (B, S) -> memory (B, S, C)."""
        return self.encoder(source, source_allow)

    def decode(self, target, memory, source_allow=None, target_allow=None):
        """Return the logits (B, T, V) of the token after each of ``target`` (B, T), given the memory of the source."""
        return self.head(self.decoder(target, memory, target_allow, source_allow))

    def attention_maps(self, source, target):
        """Return the attention weights of one pair, ids (S,) and (T,), as a dict of arrays, rows queries, columns keys.

        "encoder" (L, H, S, S), "decoder" (L, H, T, T), "cross" (L, H, T, S).
        """
        source, target = np.asarray(source), np.asarray(target)
        with self.evaluating():
            self(source[None], target[None])
        S, T, H = len(source), len(target), self.config.heads
        parts = {
            "encoder": ([layer.attention for layer in self.encoder.layers], (0, H, S, S)),
            "decoder": ([layer.attention for layer in self.decoder.layers], (0, H, T, T)),
            "cross": ([layer.cross for layer in self.decoder.layers], (0, H, T, S)),
        }
        return {
            name: np.stack([np.asarray(a.weights[0]) for a in layers]) if layers else np.empty(shape)
            for name, (layers, shape) in parts.items()
        }


class TeacherForcing(Module):
    """A Transformer in the form that the training loop expects: ``((source, inputs), labels) -> (logits, loss)``.

    The decoder is given the correct words up to each position and predicts the next one. ``padding`` is the id that
    pads short rows: no position attends to it. As a label it must be -100.
    Raises ValueError for labels that are padding, or if none counts.
    """

    def __init__(self, model, padding=0):
        self.model, self.padding = model, padding

    def forward(self, pair, labels=None):
        source, inputs = map(np.asarray, pair)
        logits = self.model(source, inputs, source != self.padding, inputs != self.padding)
        if labels is None:
            return logits, None
        if (np.asarray(labels) == self.padding).any():
            raise ValueError(f"{self.padding} is padding, so as a label it must be -100: ignore_padding(labels)")
        return logits, F.cross_entropy(logits, labels)
