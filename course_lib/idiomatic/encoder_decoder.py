"""The encoder–decoder Transformer as idiomatic PyTorch: compare ``course_lib/torch_track/encoder_decoder.py``.

The parts are named as in the raw track, so that ``weights.py`` can copy weights from one form to the other. nn.Module
gives for free: parameters found by assignment, buffers that move with the model, train and eval modes, state_dict.
Dropout draws from PyTorch's own generator here.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from ..common.positions import sinusoidal_positions


class MultiHeadAttention(nn.Module):
    """Attention with a separate source of keys and values: query (B, T, C), key and value (B, S, C) -> (B, T, C)."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, query, key, value, allow=None):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, C) -> (B, H, T, D)
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        dropout = self.dropout if self.training else 0.0  # unlike a layer, the function does not know the mode
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=allow, dropout_p=dropout)
        return self.output(context.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, C)


class FeedForward(nn.Module):
    """Two linear layers with ReLU and dropout between them: (..., C) -> (..., inner) -> (..., C)."""

    def __init__(self, width, inner, dropout):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.down(self.dropout(F.relu(self.up(x))))


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward layer, post-norm: (B, S, C) -> (B, S, C)."""

    def __init__(self, config):
        super().__init__()
        C = config.width
        self.attention = MultiHeadAttention(C, config.heads, config.dropout)
        self.attention_norm = nn.LayerNorm(C)
        self.feed_forward = FeedForward(C, config.d_ff, config.dropout)
        self.feed_forward_norm = nn.LayerNorm(C)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, allow=None):
        x = self.attention_norm(x + self.dropout(self.attention(x, x, x, allow)))
        return self.feed_forward_norm(x + self.feed_forward(x))


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention and feed-forward, post-norm: (B, T, C), memory (B, S, C) -> (B, T, C)."""

    def __init__(self, config):
        super().__init__()
        C = config.width
        self.attention = MultiHeadAttention(C, config.heads, config.dropout)
        self.attention_norm = nn.LayerNorm(C)
        self.cross = MultiHeadAttention(C, config.heads, config.dropout)
        self.cross_norm = nn.LayerNorm(C)
        self.feed_forward = FeedForward(C, config.d_ff, config.dropout)
        self.feed_forward_norm = nn.LayerNorm(C)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, memory, allow=None, memory_allow=None):
        x = self.attention_norm(x + self.dropout(self.attention(x, x, x, allow)))
        x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory, memory_allow)))
        return self.feed_forward_norm(x + self.feed_forward(x))


class PositionedEmbedding(nn.Module):
    """The input layer, ``token(ids) · √C + positions``: ids (B, T) -> (B, T, C).

    The positions are a buffer: moved with the model, but not trained. Raises ValueError for a window that is empty or
    longer than the context.
    """

    def __init__(self, size, config):
        super().__init__()
        self.token = nn.Embedding(size, config.width)
        table = sinusoidal_positions(config.context_length, config.width, config.dtype)
        self.register_buffer("positions", torch.from_numpy(table), persistent=False)  # computed, so not stored
        self.scale = math.sqrt(config.width)

    def forward(self, ids):
        if not 1 <= ids.shape[1] <= len(self.positions):
            raise ValueError(f"a window of {ids.shape[1]} tokens: the model takes 1 to {len(self.positions)}")
        return self.token(ids) * self.scale + self.positions[: ids.shape[1]]


class Encoder(nn.Module):
    """The encoder: source ids (B, S) -> memory (B, S, C)."""

    def __init__(self, config):
        super().__init__()
        self.embedding = PositionedEmbedding(config.source_vocab_size, config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))

    def forward(self, source, allow=None):
        x = self.embedding(source)
        allow = None if allow is None else allow[:, None, None, :]  # (B, S) -> (B, 1, 1, S): on the key axis
        for layer in self.layers:
            x = layer(x, allow)
        return x


class Decoder(nn.Module):
    """The decoder without its head: target ids (B, T) and memory (B, S, C) -> (B, T, C)."""

    def __init__(self, config):
        super().__init__()
        self.embedding = PositionedEmbedding(config.target_vocab_size, config)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))

    def forward(self, target, memory, allow=None, memory_allow=None):
        x = self.embedding(target)
        T = target.shape[1]
        seen = torch.ones(T, T, dtype=torch.bool, device=target.device).tril()
        if allow is not None:
            seen = seen & allow[:, None, None, :]
        memory_allow = None if memory_allow is None else memory_allow[:, None, None, :]
        for layer in self.layers:
            x = layer(x, memory, seen, memory_allow)
        return x


class Transformer(nn.Module):
    """The encoder–decoder Transformer: tensors of source ids (B, S) and target ids (B, T) -> logits (B, T, V).

    ``config`` is a TransformerConfig. The masks (B, S) and (B, T) are boolean, True = a real token. The initial weights
    are PyTorch's defaults; ``load_raw`` loads those of a raw model.
    """

    def __init__(self, config):
        super().__init__()
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.head = nn.Linear(config.width, config.target_vocab_size)
        self.to(getattr(torch, config.dtype))

    def forward(self, source, target, source_allow=None, target_allow=None):
        memory = self.encoder(source, source_allow)
        return self.head(self.decoder(target, memory, target_allow, source_allow))
