"""The GPT of the course as idiomatic PyTorch: compare ``course_lib/torch_track/models.py``.

The parts are named as in the raw track, so that ``weights.py`` can copy weights from one form to the other. Dropout
draws from PyTorch's own generator here. Letters: B batch, T time, C channels, H heads, D head size, V vocabulary.
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from ..torch_track import functional as raw
from .today import CausalConv1d, GroupedQueryAttention, SwiGLU, norm_layer

# those of the raw track, but PyTorch's own function, a single operation, for the ones it has
ACTIVATIONS = {**raw.ACTIVATIONS, "relu": F.relu, "gelu": partial(F.gelu, approximate="tanh")}


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
        dropout = self.dropout if self.training else 0.0  # unlike a layer, the function does not know the mode
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.output(context.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, C)


class MLP(nn.Module):
    """Two linear layers with a nonlinearity between them: (..., C) -> (..., 4C) -> (..., C)."""

    def __init__(self, width, activation="gelu", d_ff=None, bias=True, conv_kernel=None):
        super().__init__()
        d_ff = 4 * width if d_ff is None else d_ff
        self.up = nn.Linear(width, d_ff, bias)
        self.down = nn.Linear(d_ff, width, bias)
        self.activation = ACTIVATIONS[activation]
        self.conv = CausalConv1d(width, conv_kernel) if conv_kernel else nn.Identity()

    def forward(self, x):
        return self.down(self.activation(self.up(self.conv(x))))


class Residual(nn.Module):
    """A layer with pre-norm and a residual path: ``x + dropout(layer(norm(x)))``."""

    def __init__(self, layer, config):
        super().__init__()
        self.norm = norm_layer(config)
        self.layer = layer
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return x + self.dropout(self.layer(self.norm(x)))


class Block(nn.Module):
    """Attention, then an MLP, each on the residual path: (B, T, C) -> (B, T, C)."""

    def __init__(self, config):
        super().__init__()
        attention = SelfAttention if config.plain_attention else GroupedQueryAttention
        C, d_ff, bias, K = config.width, config.hidden_units, config.bias, config.conv_kernel
        gated = config.activation == "swiglu"
        mlp = SwiGLU(C, d_ff, bias, K) if gated else MLP(C, config.activation, d_ff, bias, K)
        self.attention = Residual(attention(config), config)
        self.mlp = Residual(mlp, config)

    def forward(self, x):
        return self.mlp(self.attention(x))


class GPT(nn.Module):
    """The decoder-only Transformer: tensors ids (B, T) and targets (B, T) -> (logits (B, T, V), loss or None).

    ``config`` is a GPTConfig. The initial weights are PyTorch's defaults; ``load_raw`` loads those of a raw model.
    Raises ValueError unless the config is causal and pre-norm, with positions and an MLP, and for a window that is
    empty or longer than the context.
    """

    def __init__(self, config):
        super().__init__()
        pre_norm = config.norm == "pre" and config.residual
        if not (pre_norm and config.causal and config.positions and config.activation != "none"):
            raise ValueError(f"this form is causal and pre-norm, with positions and an MLP, not {config}")
        V, C = config.vocab_size, config.width
        self.config, self.vocab_size, self.context_length = config, V, config.context_length
        self.token = nn.Embedding(V, C)
        self.position = None if config.rotary else nn.Embedding(config.context_length, C)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = norm_layer(config)
        self.head = None if config.tied else nn.Linear(C, V, config.bias)
        self.to(getattr(torch, config.dtype))

    def forward(self, ids, targets=None):
        T = ids.shape[1]
        if not 1 <= T <= self.context_length:
            raise ValueError(f"a window of {T} tokens: the model takes 1 to {self.context_length} (its context)")
        x = self.token(ids)  # (B, T) -> (B, T, C)
        if self.config.embedding_norm:
            x = F.rms_norm(x, x.shape[-1:], eps=self.config.norm_eps)
        if self.position is not None:
            x = x + self.position(torch.arange(T, device=ids.device))
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        logits = F.linear(x, self.token.weight) if self.head is None else self.head(x)  # (B, T, C) -> (B, T, V)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
