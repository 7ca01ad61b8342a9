"""The functions that a GPT is made of, from tensors, matrix products and elementwise operations.

There is no backward here: PyTorch differentiates what is written. Compare the twin in ``course_lib/numpy_track``.
Every function works on the last axis. Letters: B batch, T time, C channels, H heads, D head size, V vocabulary.
"""

import math

import numpy as np
import torch

from ..inputs import check_ids, check_targets, keep_mask


def linear(x, weight, bias=None):
    """``y = x @ weight + bias`` on the last axis: (..., fan_in) -> (..., fan_out). ``weight`` is (fan_in, fan_out)."""
    if bias is None:
        return x @ weight
    # one product of all rows; addmm adds the bias on the way
    rows = torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight)  # (..., fan_in) -> (rows, fan_out)
    return rows.reshape(*x.shape[:-1], weight.shape[-1])


def relu(x):
    """``max(x, 0)``; the gradient at 0 is 0."""
    return torch.relu(x)


def gelu(x, approximate="tanh"):
    """``x Φ(x)`` with Φ the normal distribution function (Hendrycks and Gimpel 2016).

    "tanh" is the approximation that GPT-2 uses, ``x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))``; "none" is exact, with
    the error function. They differ by up to 5e-4.
    """
    if approximate == "tanh":
        slope, cubic = math.sqrt(2 / math.pi), 0.044715
        # 1/2 (1 + tanh(u)) = sigmoid(2u): the same function with fewer steps
        return x * torch.sigmoid(x * (2 * slope + 2 * slope * cubic * (x * x)))
    if approximate != "none":
        raise ValueError(f"approximate must be 'tanh' or 'none', not {approximate!r}")
    return x * (0.5 + 0.5 * torch.erf(x * math.sqrt(0.5)))


def softmax(x, axis=-1):
    """``exp(x) / Σ exp(x)`` along ``axis``: positive numbers that sum to 1.

    The maximum of each row is taken off first: the result is the same, and exp cannot overflow.
    """
    exps = torch.exp(x - x.detach().amax(axis, keepdim=True))
    return exps / exps.sum(axis, keepdim=True)


def log_softmax(x, axis=-1):
    """``x - log Σ exp(x)`` along ``axis``."""
    shifted = x - x.detach().amax(axis, keepdim=True)
    return shifted - torch.logsumexp(shifted, axis, keepdim=True)


def layer_norm(x, gain, bias, epsilon=1e-5):
    """``(x - μ) / √(σ² + ε) · gain + bias``, μ and σ² (divided by C, not C - 1) over the last axis (Ba et al. 2016)."""
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred * torch.rsqrt(variance + epsilon) * gain + bias


def cross_entropy(logits, targets, ignore_index=-100):
    """Mean of ``-log softmax(logits)[target]`` over all targets that are not ``ignore_index``; nats per token.

    ``logits`` (..., V), ``targets`` (...) integers. Raises IndexError for a target outside 0 ... V - 1, ValueError when
    all targets are ignored.
    """
    size = logits.shape[-1]
    rows = logits.reshape(-1, size)
    targets, kept = check_targets(targets, logits.shape[:-1], size, ignore_index)
    if kept is not None:
        rows, targets = rows[torch.from_numpy(kept)], targets[kept]
    picked = rows.gather(1, _indices(targets)[:, None])  # (n, 1)
    return (torch.logsumexp(rows, -1, keepdim=True) - picked).mean()


def embedding(table, ids):
    """Row ``ids[...]`` of ``table`` (V, C): (...) -> (..., C).

    Raises IndexError for an id outside 0 ... V - 1, TypeError for ids that are not integers.
    """
    ids = check_ids(ids, table.shape[0])
    return table.index_select(0, _indices(ids)).reshape(*ids.shape, table.shape[1])


def dropout(x, p, rng, training=True):
    """Set each number to 0 with probability ``p`` and divide the others by 1 - p; nothing changes unless ``training``.

    ``rng`` is a NumPy Generator, in both tracks.
    """
    if not training or p == 0:
        return x
    return x * torch.from_numpy(keep_mask(x.shape, p, rng)).to(x.dtype)


def causal_mask(size):
    """Who may look at whom: (T, T) booleans, True where key j ≤ query i. Rows are queries, columns are keys.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    return torch.tril(torch.ones(size, size, dtype=torch.bool))


def attention(query, key, value, allow=None, scale=None, keep=None):
    """Mix the values: ``context = softmax(query keyᵀ · scale) value`` (Vaswani et al. 2017, section 3.2.1).

    Shapes: query (..., T, D), key (..., S, D), value (..., S, E) -> context (..., T, E), weights (..., T, S).
    ``allow`` (booleans, broadcast to (..., T, S)): True = this query may look at this key. A query that may look at
    nothing gets weights 0 and context 0. ``scale`` is 1/√D when None. ``keep``: a dropout mask for the weights.
    Returns (context, weights): the weights without history, before dropout.
    """
    allow = check_allow(allow)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.swapaxes(-1, -2)  # (..., T, D) @ (..., D, S) -> (..., T, S)
    weights = softmax_allowed(scores, allow)
    mixed = weights if keep is None else weights * torch.from_numpy(keep).to(weights.dtype)
    return mixed @ value, weights.detach()  # (..., T, S) @ (..., S, E) -> (..., T, E)


def split_heads(x, heads):
    """(B, T, C) -> (B, H, T, D): each position's C numbers are cut into H pieces of D = C / H.

    First cut, then exchange axes: a bare ``reshape(B, H, T, D)`` would mix positions.
    """
    B, T, C = x.shape
    if C % heads:
        raise ValueError(f"width {C} is not divisible by {heads} heads")
    return x.reshape(B, T, heads, C // heads).swapaxes(1, 2)


def linear_heads(x, weights, biases, heads):
    """``x`` through several layers, cut into heads: (B, T, C) -> one (B, H, T, D) for each of ``weights`` (C, C').

    ``biases``: one for each weight, or all None. The same as ``split_heads(linear(x, weight, bias), heads)`` of
    each, but one large product takes less time than several small ones.
    """
    B, T, _ = x.shape
    bias = None if biases[0] is None else torch.cat(biases)
    together = linear(x, torch.cat(weights, 1), bias)  # (B, T, C) -> (B, T, number of weights · C')
    pieces = together.reshape(B, T, len(weights), heads, -1)  # (B, T, weight, H, D)
    return pieces.permute(2, 0, 3, 1, 4).contiguous().unbind(0)  # of each weight (B, H, T, D)


def merge_heads(x):
    """(B, H, T, D) -> (B, T, C): the inverse of ``split_heads``."""
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)


def softmax_allowed(scores, allow):
    """``exp(s) / Σ exp(s)`` over the last axis, over the allowed cells only; a row with none becomes zeros."""
    if allow is None:
        return torch.softmax(scores, -1)  # as ``softmax`` above, in one step
    hidden = ~allow
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
    # a row with nothing allowed is 0 / 0
    return weights if allow.any(-1).all() else weights.masked_fill(hidden, 0)


def _indices(array):
    """A row of integers as PyTorch wants them; a copy, since windows are read-only views of the text."""
    return torch.from_numpy(np.array(array, np.int64).reshape(-1))


def check_allow(allow):
    """A mask is boolean, True = may look; 0/1 numbers are refused, since adding them to the scores hides nothing."""
    if allow is None:
        return None
    allow = torch.as_tensor(allow)
    if allow.dtype != torch.bool:
        raise TypeError(f"allow must be boolean (True = may look), not {allow.dtype}")
    return allow
