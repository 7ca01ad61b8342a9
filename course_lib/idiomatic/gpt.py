"""The GPT of the course as idiomatic PyTorch: compare ``course_lib/torch_track/models.py``.

The parts are named as in the raw track, so the two forms exchange weights and checkpoints: ``load_raw(model,
raw.state())`` and back with ``raw.load_state(raw_state(model))``. Dropout draws from PyTorch's own generator here.
Letters: B batch, T time, C channels, H heads, D head size, V vocabulary.
"""

import torch
from torch import nn
from torch.nn import functional as F

from .weights import load_raw, raw_state

__all__ = ["GPT", "load_raw", "raw_state"]


class SelfAttention(nn.Module):
    """Causal multi-head self-attention: (B, T, C) -> (B, T, C)."""

    def __init__(self, config):
        super().__init__()
        C, bias = config.width, config.attention_bias
        self.heads, self.dropout = config.heads, config.dropout
        self.query = nn.Linear(C, C, bias)
        self.key = nn.Linear(C, C, bias)
        self.value = nn.Linear(C, C, bias)
        self.output = nn.Linear(C, C, bias)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, C) -> (B, H, T, D)
            for layer in (self.query, self.key, self.value)
        )
        dropout = self.dropout if self.training else 0.0  # the function knows no train and eval
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.output(context.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, C)


class MLP(nn.Module):
    """Two layers with a bend between: (..., C) -> (..., 4C) -> (..., C)."""

    def __init__(self, config):
        super().__init__()
        self.inner = nn.Linear(config.width, 4 * config.width)
        self.outer = nn.Linear(4 * config.width, config.width)
        self.activation = nn.ReLU() if config.activation == "relu" else nn.GELU(approximate="tanh")

    def forward(self, x):
        return self.outer(self.activation(self.inner(x)))


class Residual(nn.Module):
    """``x + dropout(layer(norm(x)))``: the pre-norm way around a layer."""

    def __init__(self, layer, config):
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.layer = layer
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return x + self.dropout(self.layer(self.norm(x)))


class Block(nn.Module):
    """Look around, then think: (B, T, C) -> (B, T, C)."""

    def __init__(self, config):
        super().__init__()
        self.attention = Residual(SelfAttention(config), config)
        self.mlp = Residual(MLP(config), config)

    def forward(self, x):
        return self.mlp(self.attention(x))


class GPT(nn.Module):
    """The decoder-only Transformer: ids (B, T) and targets (B, T), tensors -> (logits (B, T, V), loss or None).

    ``config`` is a GPTConfig; ValueError unless it is causal and pre-norm, with positions and an MLP. Weights start as
    PyTorch starts them; load those of a raw model with ``load_raw``.
    """

    def __init__(self, config):
        super().__init__()
        if (config.wiring, config.causal, config.positions) != ("pre", True, True) or config.activation == "none":
            raise ValueError(f"this form is causal and pre-norm, with positions and an MLP; asked was {config}")
        V, C = config.vocabulary_size, config.width
        self.config, self.vocabulary_size, self.context = config, V, config.context
        self.token = nn.Embedding(V, C)
        self.position = nn.Embedding(config.context, C)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(C)
        self.head = None if config.tied else nn.Linear(C, V)
        self.to(getattr(torch, config.dtype))

    def forward(self, ids, targets=None):
        T = ids.shape[1]
        if not 1 <= T <= self.context:
            raise ValueError(f"a window of {T} tokens: the model takes 1 to {self.context} (its context)")
        places = torch.arange(T, device=ids.device)  # where the ids are, the places must be too
        x = self.dropout(self.token(ids) + self.position(places))  # (B, T) -> (B, T, C)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        logits = F.linear(x, self.token.weight) if self.head is None else self.head(x)  # (B, T, C) -> (B, T, V)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
