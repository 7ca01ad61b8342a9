"""What the open models of 2023 to 2026 changed in GPT-2's block, each a setting of GPTConfig.

With none of them set a GPT is made of the layers in ``modules.py``. This file reads the same in both tracks.
Letters: B batch, T time, S positions so far, C channels, H query heads, G key and value heads, D head size.
"""

from ..common.initializer import as_initializer
from ..common.positions import rotary_angles
from . import functional as F
from .modules import MLP, Dropout, Embedding, LayerNorm, Linear, Module, SelfAttention
from .tensor import Parameter, from_numpy


class RMSNorm(Module):
    """The division of each vector by the root of its mean square, then ``· weight``: (..., C) -> (..., C)."""

    def __init__(self, width, eps=1e-5, init=None):
        self.weight = Parameter(as_initializer(init).constant(1, width))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class NormalizedEmbedding(Embedding):
    """An Embedding whose vectors are divided by the root of their mean square, without a weight: (...) -> (..., C)."""

    def __init__(self, size, width, init=None, std=None, eps=1e-5):
        init = as_initializer(init)
        super().__init__(size, width, init, std)
        self.ones, self.eps = from_numpy(init.constant(1, width)), eps  # untrained

    def forward(self, ids):
        return F.rms_norm(super().forward(ids), self.ones.shape, self.ones, self.eps)


class SwiGLU(Module):
    """The gated MLP ``down(silu(gate(x)) * up(x))``: (..., C) -> (..., d_ff) -> (..., C) (Shazeer 2020)."""

    def __init__(self, width, d_ff, bias=True, init=None, gain=1.0):
        init = as_initializer(init)
        self.gate = Linear(width, d_ff, bias, init)
        self.up = Linear(width, d_ff, bias, init)
        self.down = Linear(d_ff, width, bias, init, gain)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))  # the gate decides how much of each hidden unit passes


class CausalConv1d(Module):
    """Each channel mixed with its own last K inputs, ``x + causal_conv1d(x)``: (B, T, C) -> (B, T, C).

    With the K numbers that each channel learns, a position knows the K - 1 before it, without attention (So et al. 2021
    put such sums after query, key and value; Allen-Zhu 2025 in more places). They start at 0.
    """

    def __init__(self, width, kernel_size, init=None):
        self.weight = Parameter(as_initializer(init).constant(0, width, 1, kernel_size))

    def forward(self, x, before=None):
        return x + F.causal_conv1d(x, self.weight, before)


class ConvolvedMLP(MLP):
    """An MLP that reads its input through a CausalConv1d, ``conv``: (B, T, C) -> (B, T, C)."""

    def forward(self, x, cache=None, layer=0):
        return super().forward(self.conv(x, None if cache is None else cache.inputs_before(layer, x)))


class ConvolvedSwiGLU(SwiGLU):
    """A SwiGLU that reads its input through a CausalConv1d, ``conv``: (B, T, C) -> (B, T, C)."""

    def forward(self, x, cache=None, layer=0):
        return super().forward(self.conv(x, None if cache is None else cache.inputs_before(layer, x)))


class GroupedQueryAttention(SelfAttention):
    """SelfAttention with fewer heads of key and value, rotary positions, QK-norm and a window, as the config says.

    Query head h reads the key and value head ``h // (H / G)`` (Ainslie et al. 2023). ``weights`` is (B, H, T, S), as in
    SelfAttention. A cache holds the G heads, their keys normalised and rotated by their own position.
    """

    def __init__(self, config, init=None, dropout=None, gain=1.0):
        C, H, G, D = config.width, config.heads, config.key_value_heads, config.head_size
        bias, init = config.attention_bias, as_initializer(init)
        self.config, self.heads, self.kv_heads = config, H, G
        self.query = Linear(C, H * D, bias, init)
        self.key = Linear(C, G * D, bias, init)
        self.value = Linear(C, G * D, bias, init)
        self.output = Linear(H * D, C, bias, init, gain)
        self.query_norm = RMSNorm(D, config.norm_eps, init) if config.qk_norm else None
        self.key_norm = RMSNorm(D, config.norm_eps, init) if config.qk_norm else None
        self.dropout = Dropout(0.0) if dropout is None else dropout
        T = config.context_length
        self.allow = F.window_mask(T, config.window or T) if config.causal else None
        self.weights = None

    def forward(self, x, cache=None, layer=0):
        B, T, _ = x.shape
        q, k, v = self.project(x, 0 if cache is None else cache.position)
        start = 0
        if cache is not None:
            start = cache.length
            k, v = cache.extend(layer, k, v)  # (B, G, T, D) -> (B, G, S, D), S = start + T
        k, v = self.share(k), self.share(v)  # (B, G, S, D) -> (B, H, S, D)
        allow = None if self.allow is None else self.allow[start : start + T, : start + T]
        dropout_mask = self.dropout.mask((B, self.heads, T, T))
        context, self.weights = F.attention(q, k, v, allow, dropout_mask=dropout_mask)  # (B, H, T, D)
        return self.output(F.merge_heads(context))  # (B, H, T, D) -> (B, T, C)

    def project(self, x, position=0):
        """Return query (B, H, T, D), key and value (B, G, T, D) of x (B, T, C), whose first row is at ``position``."""
        q = F.split_heads(self.query(x), self.heads)
        k, v = (F.split_heads(f(x), self.kv_heads) for f in (self.key, self.value))
        if self.query_norm is not None:  # first: the weight of a norm belongs to a channel, and a rotation mixes two
            q, k = self.query_norm(q), self.key_norm(k)
        if self.config.rotary:
            of = self.config
            cos, sin = rotary_angles(position, x.shape[1], of.head_size, of.rope_theta, of.rope_scaling)
            q, k = F.rotary(q, cos, sin), F.rotary(k, cos, sin)
        return q, k, v

    def share(self, x):
        """Give each query head its key or value head: (B, G, S, D) -> (B, H, S, D)."""
        return x if self.kv_heads == self.heads else F.repeat_interleave(x, self.heads // self.kv_heads, 1)


def token_layer(config, init):
    """Return the token table that ``config`` asks for."""
    V, C, std = config.vocab_size, config.width, config.embedding_std
    if config.embedding_norm:
        return NormalizedEmbedding(V, C, init, std, config.norm_eps)
    return Embedding(V, C, init, std)


def norm_layer(config, init):
    """Return the norm that ``config`` asks for, over the C channels."""
    if config.norm_layer == "rms_norm":
        return RMSNorm(config.width, config.norm_eps, init)
    return LayerNorm(config.width, config.norm_eps, init, config.bias)


def attention_layer(config, init, dropout, gain):
    """Return the attention that ``config`` asks for: SelfAttention, unless one of today's settings is on."""
    return (SelfAttention if config.plain_attention else GroupedQueryAttention)(config, init, dropout, gain)


def mlp_layer(config, init, gain):
    """Return the MLP that ``config`` asks for."""
    C, d_ff, K = config.width, config.hidden_units, config.conv_kernel
    if config.activation == "swiglu":
        mlp = (ConvolvedSwiGLU if K else SwiGLU)(C, d_ff, config.bias, init, gain)
    else:
        mlp = (ConvolvedMLP if K else MLP)(C, d_ff, config.activation, init, gain)
        if not config.bias:
            mlp.up.bias = mlp.down.bias = None
    if K:
        mlp.conv = CausalConv1d(C, K, init)
    return mlp
