"""The encoder–decoder Transformer (Vaswani et al. 2017). This file reads the same in both tracks.

The encoder reads the source once, every position seeing every other; the decoder writes the target, each position
seeing what was written before it, and the whole source. Letters: B batch, S source length, T target length, C channels,
H heads, D head size, L layers, V vocabulary. Padding is a token of its own, which no symbol of a text shares; masks of
real tokens are boolean, True = may be looked at.
"""

import math

import numpy as np

from ..initial import Initial
from ..inputs import check_batch, check_padding_mask
from ..positions import sinusoidal_positions
from . import functional as F
from .modules import Dropout, Embedding, LayerNorm, Linear, Module
from .tensor import from_numpy


class MultiHeadAttention(Module):
    """Attention whose query, key and value may come from different places: (B, T, C), (B, S, C) -> (B, T, C).

    Self-attention is ``f(x, x, x)``, cross-attention ``f(x, memory, memory)``. Four matrices with biases, as in
    torch.nn.MultiheadAttention. After each call ``weights`` (B, H, T, S) holds who looked at whom, before dropout.
    """

    def __init__(self, width, heads, initial, dropout):
        self.heads = heads
        self.query = Linear(width, width, initial)
        self.key = Linear(width, width, initial)
        self.value = Linear(width, width, initial)
        self.output = Linear(width, width, initial)
        self.dropout = dropout
        self.weights = None

    def forward(self, query, key, value, allow=None):
        q = F.split_heads(self.query(query), self.heads)  # (B, T, C) -> (B, H, T, D)
        k = F.split_heads(self.key(key), self.heads)  # (B, S, C) -> (B, H, S, D)
        v = F.split_heads(self.value(value), self.heads)
        keep = self.dropout.mask((*q.shape[:-1], k.shape[-2]))
        context, self.weights = F.attention(q, k, v, allow, keep=keep)  # (B, H, T, D)
        return self.output(F.merge_heads(context))  # (B, H, T, D) -> (B, T, C)


class FeedForward(Module):
    """Each position by itself: (..., C) -> (..., inner) -> (..., C), with ReLU and dropout between."""

    def __init__(self, width, inner, initial, dropout):
        self.inner = Linear(width, inner, initial)
        self.outer = Linear(inner, width, initial)
        self.dropout = dropout

    def forward(self, x):
        return self.outer(self.dropout(F.relu(self.inner(x))))


class EncoderLayer(Module):
    """Look around, then think; after each, add what came in and normalise (post-norm). (B, S, C) -> (B, S, C)."""

    def __init__(self, config, initial, dropout):
        C = config.width
        self.attention = MultiHeadAttention(C, config.heads, initial, dropout)
        self.attention_norm = LayerNorm(C, initial)
        self.feed_forward = FeedForward(C, config.inner, initial, dropout)
        self.feed_forward_norm = LayerNorm(C, initial)
        self.dropout = dropout

    def forward(self, x, allow=None):
        x = self.attention_norm(x + self.dropout(self.attention(x, x, x, allow)))
        return self.feed_forward_norm(x + self.feed_forward(x))


class DecoderLayer(Module):
    """Look back, look at the source, think; add and normalise after each. (B, T, C), (B, S, C) -> (B, T, C)."""

    def __init__(self, config, initial, dropout):
        C = config.width
        self.attention = MultiHeadAttention(C, config.heads, initial, dropout)
        self.attention_norm = LayerNorm(C, initial)
        self.cross = MultiHeadAttention(C, config.heads, initial, dropout)
        self.cross_norm = LayerNorm(C, initial)
        self.feed_forward = FeedForward(C, config.inner, initial, dropout)
        self.feed_forward_norm = LayerNorm(C, initial)
        self.dropout = dropout

    def forward(self, x, memory, allow=None, memory_allow=None):
        x = self.attention_norm(x + self.dropout(self.attention(x, x, x, allow)))
        x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory, memory_allow)))
        return self.feed_forward_norm(x + self.feed_forward(x))


class PositionedEmbedding(Module):
    """Tokens and their places as vectors: ids (B, T) -> ``table[ids] · √C + positions`` (B, T, C).

    The positions are a constant: they are not trained and not among the parameters.
    Raises ValueError for an empty sequence or one longer than ``maximum``.
    """

    def __init__(self, size, width, maximum, initial, dtype="float32"):
        self.token = Embedding(size, width, initial)
        self.positions = from_numpy(sinusoidal_positions(maximum, width, dtype))
        self.maximum, self.scale = maximum, math.sqrt(width)

    def forward(self, ids):
        ids = check_batch(ids, self.maximum)
        return self.token(ids) * self.scale + self.positions[: ids.shape[1]]


class Encoder(Module):
    """Source ids (B, S) -> memory (B, S, C). ``allow`` (B, S): True = a real token, False = padding."""

    def __init__(self, config, initial, dropout):
        self.embedding = PositionedEmbedding(config.source_size, config.width, config.maximum, initial, config.dtype)
        self.layers = [EncoderLayer(config, initial, dropout) for _ in range(config.layers)]

    def forward(self, source, allow=None):
        x = self.embedding(source)  # (B, S) -> (B, S, C)
        allow = on_key_axis(allow, x.shape[:2], "source_allow")
        for layer in self.layers:
            x = layer(x, allow)
        return x


class Decoder(Module):
    """Target ids (B, T) and memory (B, S, C) -> (B, T, C); position i sees positions 0 ... i and all of the memory.

    ``allow`` (B, T) and ``memory_allow`` (B, S): True = a real token, False = padding.
    Raises ValueError when there are not as many sources as targets.
    """

    def __init__(self, config, initial, dropout):
        self.embedding = PositionedEmbedding(config.target_size, config.width, config.maximum, initial, config.dtype)
        self.layers = [DecoderLayer(config, initial, dropout) for _ in range(config.layers)]

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
    """A mask of real tokens (B, S) as attention wants it, (B, 1, 1, S): it hides keys, whoever asks.

    Raises TypeError unless boolean, ValueError unless it has the ``shape`` of the ids; None stays None.
    """
    allow = check_padding_mask(allow, shape, name)
    return None if allow is None else F.check_allow(allow)[:, None, None, :]


class Transformer(Module):
    """Source ids (B, S) and target ids (B, T) -> logits (B, T, V) of the token after each. A TransformerConfig."""

    def __init__(self, config, seed=0):
        initial = Initial(seed, config.initial, config.dtype)
        self.config, self.vocabulary_size = config, config.target_size
        self.dropout = Dropout(config.dropout, np.random.default_rng([seed, 1]))  # not the Generator of the weights
        self.encoder = Encoder(config, initial, self.dropout)
        self.decoder = Decoder(config, initial, self.dropout)
        self.head = Linear(config.width, config.target_size, initial)

    def forward(self, source, target, source_allow=None, target_allow=None):
        return self.decode(target, self.encode(source, source_allow), source_allow, target_allow)

    def encode(self, source, source_allow=None):
        """Read the source: (B, S) -> memory (B, S, C)."""
        return self.encoder(source, source_allow)

    def decode(self, target, memory, source_allow=None, target_allow=None):
        """Logits (B, T, V) of the token after each of ``target`` (B, T), for a source that was read before."""
        return self.head(self.decoder(target, memory, target_allow, source_allow))

    def attention_maps(self, source, target):
        """Who looks at whom for one pair, ids (S,) and (T,): a dict of arrays, rows are queries and columns keys.

        "encoder" (L, H, S, S), "decoder" (L, H, T, T), "cross" (L, H, T, S).
        """
        source, target = np.asarray(source), np.asarray(target)
        with self.evaluating():
            self(source[None], target[None])
        S, T, H = len(source), len(target), self.config.heads
        looked = {
            "encoder": ([layer.attention for layer in self.encoder.layers], (0, H, S, S)),
            "decoder": ([layer.attention for layer in self.decoder.layers], (0, H, T, T)),
            "cross": ([layer.cross for layer in self.decoder.layers], (0, H, T, S)),
        }
        return {
            name: np.stack([np.asarray(a.weights[0]) for a in layers]) if layers else np.empty(shape)
            for name, (layers, shape) in looked.items()
        }


class TeacherForcing(Module):
    """A Transformer in the form that the training loop knows: ``((source, inputs), labels) -> (logits, loss)``.

    The decoder is given the right words up to each place and asked for the next one. ``padding`` is the id that fills
    up short rows: nobody looks at it, and where it is the label nothing counts.
    Raises ValueError when all labels are padding.
    """

    def __init__(self, model, padding=0):
        self.model, self.padding = model, padding

    def forward(self, pair, labels=None):
        source, inputs = map(np.asarray, pair)
        logits = self.model(source, inputs, source != self.padding, inputs != self.padding)
        return logits, None if labels is None else F.cross_entropy(logits, labels, ignore_index=self.padding)
