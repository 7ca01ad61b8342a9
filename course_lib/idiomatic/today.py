"""Today's block as idiomatic PyTorch: compare ``course_lib/torch_track/today.py``.

Letters: B batch, T time, C channels, H query heads, G key and value heads, D head size.
"""

import torch
from torch import nn
from torch.nn import functional as F

from ..common.positions import rotary_angles


class CausalConv1d(nn.Conv1d):
    """Each channel mixed with its own last K inputs, ``x + conv(x)``: (B, T, C) -> (B, T, C)."""

    def __init__(self, width, kernel_size):
        super().__init__(width, width, kernel_size, padding=kernel_size - 1, groups=width, bias=False)

    def forward(self, x):
        return x + super().forward(x.mT)[..., : x.shape[1]].mT  # padded on both sides; what looks ahead is cut off


class SwiGLU(nn.Module):
    """The gated MLP ``down(silu(gate(x)) * up(x))``: (..., C) -> (..., d_ff) -> (..., C)."""

    def __init__(self, width, d_ff, bias=True, conv_kernel=None):
        super().__init__()
        self.gate = nn.Linear(width, d_ff, bias)
        self.up = nn.Linear(width, d_ff, bias)
        self.down = nn.Linear(d_ff, width, bias)
        self.conv = CausalConv1d(width, conv_kernel) if conv_kernel else nn.Identity()

    def forward(self, x):
        x = self.conv(x)
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Rotary(nn.Module):
    """The rotation of each head by its position: (B, H, T, D) -> (B, H, T, D), pairs taken from the two halves."""

    def __init__(self, config):
        super().__init__()
        T, D = config.context_length, config.head_size
        tables = rotary_angles(0, T, D, config.rope_theta, config.rope_scaling)
        for name, table in zip(("cos", "sin"), tables):
            # (T, D): both halves of a head turn by the same angles; computed, so not part of the weights
            self.register_buffer(name, torch.tensor(table).repeat(1, 2), persistent=False)

    def forward(self, x):
        T = x.shape[-2]
        a, b = x.chunk(2, dim=-1)
        return x * self.cos[:T] + torch.cat([-b, a], dim=-1) * self.sin[:T]


class GroupedQueryAttention(nn.Module):
    """Causal self-attention with what the config asks for: rotary positions, grouped queries, QK-norm, a window."""

    def __init__(self, config):
        super().__init__()
        C, H, G, D = config.width, config.heads, config.key_value_heads, config.head_size
        self.head_size, self.shared_by, self.dropout = D, H // G, config.dropout
        self.query = nn.Linear(C, H * D, config.attention_bias)
        self.key = nn.Linear(C, G * D, config.attention_bias)
        self.value = nn.Linear(C, G * D, config.attention_bias)
        self.output = nn.Linear(H * D, C, config.attention_bias)
        self.query_norm = nn.RMSNorm(D, config.norm_eps) if config.qk_norm else nn.Identity()
        self.key_norm = nn.RMSNorm(D, config.norm_eps) if config.qk_norm else nn.Identity()
        self.rotary = Rotary(config) if config.rotary else nn.Identity()
        T = config.context_length
        allow = torch.ones(T, T, dtype=torch.bool).tril().triu(1 - (config.window or T))
        self.register_buffer("allow", allow, persistent=False)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.head_size)).transpose(1, 2)  # (B, T, H·D) -> (B, H, T, D), H or G heads
            for layer in (self.query, self.key, self.value)
        )
        q, k = self.rotary(self.query_norm(q)), self.rotary(self.key_norm(k))
        k, v = (t.repeat_interleave(self.shared_by, dim=1) for t in (k, v))  # (B, G, T, D) -> (B, H, T, D)
        dropout = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, self.allow[:T, :T], dropout_p=dropout)
        return self.output(context.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, C)


def norm_layer(config):
    """Return the norm that ``config`` asks for, over the C channels."""
    if config.norm_layer == "rms_norm":
        return nn.RMSNorm(config.width, config.norm_eps)
    return nn.LayerNorm(config.width, config.norm_eps, bias=config.bias)
