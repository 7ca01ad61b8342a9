"""The functions that a GPT is made of, each with its own derived backward.

Every function works on the last axis, so (T, C), (B, T, C) and (B, H, T, D) all fit. Letters: B batch, T time,
C channels, H heads, D head size, V vocabulary.
"""

import math

import numpy as np

from ..inputs import check_ids, check_targets, keep_mask
from .tensor import tracked, unbroadcast


def linear(x, weight, bias=None):
    """``y = x @ weight + bias`` on the last axis: (..., fan_in) -> (..., fan_out).

    ``weight`` is (fan_in, fan_out). Backward: dx = g wᵀ, dw = xᵀ g and db = Σ g, summed over all rows.
    """
    rows = x.data.reshape(-1, x.shape[-1])  # (..., fan_in) -> (rows, fan_in): one large product
    out = rows @ weight.data
    if bias is not None:
        out += bias.data

    def backward(grad):
        grad = grad.reshape(-1, grad.shape[-1])
        by_x = (grad @ weight.data.T).reshape(x.shape)
        by_weight = rows.T @ grad
        return (by_x, by_weight) if bias is None else (by_x, by_weight, unbroadcast(grad.sum(axis=0), bias.shape))

    parents = (x, weight) if bias is None else (x, weight, bias)
    return tracked(out.reshape(*x.shape[:-1], weight.shape[1]), parents, backward)


def relu(x):
    """``max(x, 0)``. Backward: the gradient passes where x > 0, and at 0 it is 0."""
    return tracked(np.maximum(x.data, 0), (x,), lambda grad: (grad * (x.data > 0),))


def gelu(x, approximate="tanh"):
    """``x Φ(x)`` with Φ the normal distribution function (Hendrycks and Gimpel 2016).

    "tanh" is the approximation that GPT-2 uses, ``x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))``; "none" is exact, with
    the error function, which NumPy lacks: it is called element by element, and slow. They differ by up to 5e-4.
    """
    if approximate == "tanh":
        return _gelu_tanh(x)
    if approximate != "none":
        raise ValueError(f"approximate must be 'tanh' or 'none', not {approximate!r}")
    phi = 0.5 + 0.5 * _erf(x.data * math.sqrt(0.5))

    def backward(grad):
        density = np.exp(-0.5 * x.data * x.data) * (1 / math.sqrt(2 * math.pi))
        return (grad * (phi + x.data * density),)

    return tracked(x.data * phi, (x,), backward)


def _gelu_tanh(x):
    slope, cubic = math.sqrt(2 / math.pi), 0.044715
    square = x.data * x.data
    # gate = (1 + tanh(u)) / 2 with u = slope x + slope cubic x³, one step after the other in the same array
    gate = square * (slope * cubic)
    gate += slope
    gate *= x.data
    gate = np.tanh(gate)
    gate += 1
    gate *= 0.5

    def backward(grad):
        # (x gate)' = gate + x gate' = gate + x gate · 2 (1 - gate) u' with u' = slope + 3 slope cubic x²
        by_x = square * (6 * slope * cubic)
        by_x += 2 * slope
        by_x *= 1 - gate
        by_x *= out
        by_x += gate
        by_x *= grad
        return (by_x,)

    out = x.data * gate
    return tracked(out, (x,), backward)


def _erf(array):
    flat = [math.erf(value) for value in array.ravel().tolist()]
    return np.array(flat, array.dtype).reshape(array.shape)


def softmax(x, axis=-1):
    """``exp(x) / Σ exp(x)`` along ``axis``: positive numbers that sum to 1.

    The maximum of each row is taken off first: the result is the same, and exp cannot overflow.
    Backward: dx = w (g - Σ g w), with w the result.
    """
    exps = np.exp(x.data - x.data.max(axis=axis, keepdims=True))
    weights = exps / exps.sum(axis=axis, keepdims=True)

    def backward(grad):
        return (weights * (grad - (grad * weights).sum(axis=axis, keepdims=True)),)

    return tracked(weights, (x,), backward)


def log_softmax(x, axis=-1):
    """``x - log Σ exp(x)`` along ``axis``. Backward: dx = g - softmax(x) Σ g."""
    shifted = x.data - x.data.max(axis=axis, keepdims=True)
    out = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))

    def backward(grad):
        return (grad - np.exp(out) * grad.sum(axis=axis, keepdims=True),)

    return tracked(out, (x,), backward)


def layer_norm(x, gain, bias, epsilon=1e-5):
    """``(x - μ) / √(σ² + ε) · gain + bias``, μ and σ² (divided by C, not C - 1) over the last axis (Ba et al. 2016).

    Backward, with n the normalised x and h = g · gain: dx = (h - mean(h) - n mean(h n)) / √(σ² + ε).
    """
    size = x.shape[-1]
    centred = x.data - np.add.reduce(x.data, axis=-1, keepdims=True) / size
    variance = np.einsum("...c,...c->...", centred, centred)[..., None] / size
    scale = 1 / np.sqrt(variance + epsilon)
    normed = centred * scale

    def backward(grad):
        by_normed = grad * gain.data
        mean = np.add.reduce(by_normed, axis=-1, keepdims=True) / size
        along = np.einsum("...c,...c->...", by_normed, normed)[..., None] / size
        rows = tuple(range(grad.ndim - 1))
        by_x = (by_normed - mean - normed * along) * scale
        by_gain, by_bias = (grad * normed).sum(axis=rows), grad.sum(axis=rows)
        return by_x, unbroadcast(by_gain, gain.shape), unbroadcast(by_bias, bias.shape)

    return tracked(normed * gain.data + bias.data, (x, gain, bias), backward)


def cross_entropy(logits, targets, ignore_index=-100):
    """Mean of ``-log softmax(logits)[target]`` over all targets that are not ``ignore_index``; nats per token.

    ``logits`` (..., V), ``targets`` (...) integers. Backward: (softmax - onehot) / n, n the number of kept targets.
    Raises IndexError for a target outside 0 ... V - 1, ValueError when all targets are ignored.
    """
    size = logits.shape[-1]
    rows = logits.data.reshape(-1, size)
    targets, kept = check_targets(targets, logits.shape[:-1], size, ignore_index)
    if kept is not None:
        rows, targets = rows[kept], targets[kept]
    shifted = rows - rows.max(axis=-1, keepdims=True)  # (n, V)
    exps = np.exp(shifted)
    totals = exps.sum(axis=-1, keepdims=True)
    every = np.arange(len(targets))
    loss = (np.log(totals[:, 0]) - shifted[every, targets]).mean()

    def backward(grad):
        by_rows = exps / totals
        by_rows[every, targets] -= 1
        by_rows *= grad / len(targets)
        if kept is not None:
            full = np.zeros((len(kept), size), by_rows.dtype)
            full[kept] = by_rows
            by_rows = full
        return (by_rows.reshape(logits.shape),)

    return tracked(loss, (logits,), backward)


def embedding(table, ids):
    """Row ``ids[...]`` of ``table`` (V, C): (...) -> (..., C).

    Backward: each row of the table gets the sum of the gradients of all places where its id stands.
    Raises IndexError for an id outside 0 ... V - 1, TypeError for ids that are not integers.
    """
    ids = check_ids(ids, table.shape[0])

    def backward(grad):
        # To pick row i is to multiply by a row that is 1 at i and else 0; so the gradient is a matrix product too.
        onehot = ids.reshape(-1, 1) == np.arange(len(table))  # (rows, V)
        return (onehot.T.astype(grad.dtype) @ grad.reshape(-1, table.shape[1]),)

    return tracked(table.data[ids], (table,), backward)


def dropout(x, p, rng, training=True):
    """Set each number to 0 with probability ``p`` and divide the others by 1 - p; nothing changes unless ``training``.

    ``rng`` is a NumPy Generator, in both tracks. Backward uses the same mask.
    """
    if not training or p == 0:
        return x
    keep = keep_mask(x.shape, p, rng).astype(x.dtype)
    return tracked(x.data * keep, (x,), lambda grad: (grad * keep,))


def causal_mask(size):
    """Who may look at whom: (T, T) booleans, True where key j ≤ query i. Rows are queries, columns are keys.

    >>> causal_mask(3)
    array([[ True, False, False],
           [ True,  True, False],
           [ True,  True,  True]])
    """
    return np.tril(np.ones((size, size), dtype=bool))


def attention(query, key, value, allow=None, scale=None, keep=None):
    """Mix the values: ``context = softmax(query keyᵀ · scale) value`` (Vaswani et al. 2017, section 3.2.1).

    Shapes: query (..., T, D), key (..., S, D), value (..., S, E) -> context (..., T, E), weights (..., T, S).
    ``allow`` (booleans, broadcast to (..., T, S)): True = this query may look at this key. A query that may look at
    nothing gets weights 0 and context 0. ``scale`` is 1/√D when None. ``keep``: a dropout mask for the weights.
    Returns (context, weights): the weights as a plain array, before dropout.

    Backward, with w the weights: dv = wᵀ g; dw = g vᵀ; dscores = w (dw - Σ dw w); dq = dscores k; dk = dscoresᵀ q.
    """
    allow = check_allow(allow)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.data @ key.data.swapaxes(-1, -2)  # (..., T, D) @ (..., D, S) -> (..., T, S)
    scores *= scale
    weights = softmax_allowed(scores, allow)
    keep = None if keep is None else keep.astype(weights.dtype)
    mixed = weights if keep is None else weights * keep
    context = mixed @ value.data  # (..., T, S) @ (..., S, E) -> (..., T, E)

    def backward(grad):
        by_value = mixed.swapaxes(-1, -2) @ grad
        by_weights = grad @ value.data.swapaxes(-1, -2)
        if keep is not None:
            by_weights *= keep
        by_weights -= np.einsum("...s,...s->...", by_weights, weights)[..., None]
        by_weights *= weights
        by_weights *= scale  # now the gradient of query keyᵀ
        return by_weights @ key.data, by_weights.swapaxes(-1, -2) @ query.data, by_value

    return tracked(context, (query, key, value), backward), weights


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
    each.
    """
    return [split_heads(linear(x, weight, bias), heads) for weight, bias in zip(weights, biases)]


def merge_heads(x):
    """(B, H, T, D) -> (B, T, C): the inverse of ``split_heads``."""
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)


def softmax_allowed(scores, allow):
    """Softmax over the last axis of an array, over the allowed cells only; a row with none becomes zeros."""
    if allow is not None:
        scores = np.where(allow, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    if allow is not None:
        # a row with nothing allowed: -inf minus the smallest number is still -inf
        top = np.maximum(top, np.finfo(scores.dtype).min)
    exps = np.exp(scores - top)
    total = exps.sum(axis=-1, keepdims=True)
    # the largest exp is 1, so only the sum of an empty row is raised
    return exps / (total if allow is None else np.maximum(total, 1))


def check_allow(allow):
    """A mask is boolean, True = may look; 0/1 numbers are refused, since adding them to the scores hides nothing."""
    if allow is None:
        return None
    allow = np.asarray(allow)
    if allow.dtype != bool:
        raise TypeError(f"allow must be boolean (True = may look), not {allow.dtype}")
    return allow
