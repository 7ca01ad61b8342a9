"""The functions that a GPT is made of, from tensors, matrix products and elementwise operations.

There is no backward here: PyTorch derives it. Compare the twin in ``course_lib/numpy_track``.
Names, order and defaults are torch.nn.functional's, but for ``axis`` (PyTorch: dim) and where a docstring says so.
Every function works on the last axis. Letters: B batch, T time, C channels, H heads, D head size, V vocabulary.
"""

import math
from functools import partial

import numpy as np
import torch

from ..common.checks import check_ids, check_linear, check_mask, check_normalized_shape, check_targets
from ..common.dropout import draw_dropout_mask


def linear(x, weight, bias=None):
    """Return ``x @ weight + bias`` on the last axis: (..., fan_in) -> (..., fan_out).

    ``weight`` is (fan_in, fan_out), the transpose of PyTorch's; raises ValueError if it does not fit.
    """
    check_linear(x.shape, weight.shape)
    if bias is None:
        return x @ weight
    # one product for all rows; addmm adds the bias on the way
    rows = torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight)  # (..., fan_in) -> (rows, fan_out)
    return rows.reshape(*x.shape[:-1], weight.shape[-1])


def relu(x):
    """Return ``max(x, 0)``; the gradient at 0 is 0."""
    return torch.relu(x)


def gelu(x, approximate="none"):
    """Return ``x Φ(x)``, Φ the distribution function of the standard normal (Hendrycks and Gimpel 2016).

    "tanh" is the approximation that GPT-2 uses, ``x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))``; "none" is exact, with
    the error function. They differ by up to 5e-4. Raises ValueError for any other ``approximate``.
    """
    if approximate == "tanh":
        slope, cubic = math.sqrt(2 / math.pi), 0.044715
        # 1/2 (1 + tanh(u)) = sigmoid(2u): the same function with fewer steps
        return x * torch.sigmoid(x * (2 * slope + 2 * slope * cubic * (x * x)))
    if approximate != "none":
        raise ValueError(f"approximate must be 'tanh' or 'none', not {approximate!r}")
    return x * (0.5 + 0.5 * torch.erf(x * math.sqrt(0.5)))


# the choices of a config's ``activation``; "gelu" is PyTorch's gelu(approximate="tanh")
ACTIVATIONS = {"relu": relu, "gelu": partial(gelu, approximate="tanh")}


def silu(x):
    """Return ``x σ(x)``, σ(x) = 1 / (1 + exp(-x)), also called swish."""
    return x * torch.sigmoid(x)


def softmax(x, dim=-1):
    """Return ``exp(x) / Σ exp(x)`` along the axis ``dim``: positive numbers that sum to 1.

    The maximum of each row is subtracted first: the result is the same, and exp cannot overflow.
    """
    exps = torch.exp(x - x.detach().amax(dim, keepdim=True))
    return exps / exps.sum(dim, keepdim=True)


def log_softmax(x, dim=-1):
    """Return ``x - log Σ exp(x)`` along the axis ``dim``."""
    shifted = x - x.detach().amax(dim, keepdim=True)
    return shifted - torch.logsumexp(shifted, dim, keepdim=True)


def layer_norm(x, normalized_shape, weight, bias, eps=1e-5):
    """Normalise the last axis: ``(x - μ) / √(σ² + ε) · weight + bias``, σ² divided by C, not C - 1 (Ba et al. 2016).

    ``normalized_shape`` is (C,), the size of that axis, as in PyTorch. Raises ValueError for any other.
    """
    check_normalized_shape(normalized_shape, x.shape)
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred * torch.rsqrt(variance + eps) * weight + bias


def rms_norm(x, normalized_shape, weight, eps):
    """Divide by the root of the mean square: ``x / √(mean(x²) + ε) · weight`` (Zhang and Sennrich 2019).

    LayerNorm without mean and bias. ``normalized_shape`` is (C,), the size of the last axis, as in PyTorch. Raises
    ValueError for any other.
    """
    check_normalized_shape(normalized_shape, x.shape)
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def cross_entropy(logits, targets, ignore_index=-100):
    """Return the mean of ``-log softmax(logits)[target]`` over all targets but ``ignore_index``, in nats per token.

    ``logits`` (..., V), ``targets`` (...) integers: the classes are on the last axis (PyTorch: on axis 1).
    Raises IndexError for a target outside 0 ... V - 1, ValueError if all targets are ignored or the shapes do not fit.
    """
    size = logits.shape[-1]
    rows = logits.reshape(-1, size)
    targets, kept = check_targets(targets, logits.shape[:-1], size, ignore_index)
    if kept is not None:
        rows, targets = rows[torch.from_numpy(kept)], targets[kept]
    picked = rows.gather(1, _indices(targets)[:, None])  # (n, 1)
    return (torch.logsumexp(rows, -1, keepdim=True) - picked).mean()


def embedding(ids, weight):
    """Look up row ``ids[...]`` of a table ``weight`` (V, C): (...) -> (..., C).

    Raises IndexError for an id outside 0 ... V - 1, TypeError for ids that are not integers.
    """
    ids = check_ids(ids, weight.shape[0])
    return weight.index_select(0, _indices(ids)).reshape(*ids.shape, weight.shape[1])


def dropout(x, p=0.5, training=True, rng=None):
    """Set each element to 0 with probability ``p`` and divide the others by 1 - p; change nothing unless ``training``.

    ``rng`` is a NumPy Generator, in both tracks.
    """
    if not training or p == 0:
        return x
    return x * torch.from_numpy(draw_dropout_mask(x.shape, p, rng)).to(x.dtype)


def causal_mask(size):
    """Return what each position may attend to: (T, T) booleans, True where key j ≤ query i; rows are queries.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    return torch.tril(torch.ones(size, size, dtype=torch.bool))


def window_mask(size, window):
    """Return the causal mask with a limited view: (T, T) booleans, True where 0 ≤ query i - key j < ``window``.

    >>> window_mask(4, 2)[3]
    tensor([False, False,  True,  True])
    """
    return torch.triu(causal_mask(size), 1 - window)


def rotary(x, cos, sin):
    """Turn channel i and channel i + D/2 of each row together by an angle: (..., T, D) -> (..., T, D).

    ``cos`` and ``sin`` (T, D/2), arrays, are those of each position and pair: see ``rotary_angles``. The pairs are the
    two halves of a head, as in published Llama files; Su et al. 2021 pair neighbours, which needs other weights.
    """
    cos, sin = (torch.tensor(a, dtype=x.dtype) for a in (cos, sin))
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def causal_conv1d(x, weight, before=None):
    """Return ``Σ_k weight[c, 0, k] · x[t - (K - 1) + k, c]``, channel by channel: (B, T, C) -> (B, T, C).

    ``weight`` is (C, 1, K), as that of torch.nn.Conv1d with ``groups=C``; its last column belongs to the position
    itself. ``before`` (B, K - 1, C), an array, is what came before x; None: zeros. Here T is the axis before the last.
    """
    (B, T, C), K = x.shape, weight.shape[-1]
    before = x.new_zeros((B, K - 1, C)) if before is None else torch.tensor(before)
    padded = torch.cat([before, x], 1)  # (B, K - 1 + T, C)
    return sum(weight[:, 0, k] * padded[:, k : k + T] for k in range(K))


def repeat_interleave(x, repeats, dim):
    """Repeat each index of the axis ``dim``, in place: (..., G, ...) -> (..., G · repeats, ...), 0 0 1 1 ..."""
    return torch.repeat_interleave(x, repeats, dim)


def attention(query, key, value, allow=None, scale=None, dropout_mask=None):
    """Mix the values: ``context = softmax(query keyᵀ · scale) value`` (Vaswani et al. 2017, section 3.2.1).

    Shapes: query (..., T, D), key (..., S, D), value (..., S, E) -> context (..., T, E), weights (..., T, S).
    ``allow`` (booleans; (T, S), or an axis for each of the scores'): True = this query may attend to this key, like a
    boolean attn_mask of PyTorch's scaled_dot_product_attention. A query that may attend to nothing gets weights 0 and
    context 0.
    ``scale`` is 1/√D when None. ``dropout_mask`` multiplies the weights.
    Returns (context, weights): the weights without a graph, before dropout.
    """
    allow = check_allow(allow, query, key)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.swapaxes(-1, -2)  # (..., T, D) @ (..., D, S) -> (..., T, S)
    weights = softmax_allowed(scores, allow)
    mixed = weights if dropout_mask is None else weights * torch.from_numpy(dropout_mask).to(weights.dtype)
    return mixed @ value, weights.detach()  # (..., T, S) @ (..., S, E) -> (..., T, E)


def split_heads(x, heads):
    """Cut each position's C channels into H heads of size D = C / H: (B, T, C) -> (B, H, T, D).

    Raises ValueError unless H divides C. A bare ``reshape(B, H, T, D)`` would mix positions.
    """
    B, T, C = x.shape
    if C % heads:
        raise ValueError(f"width {C} is not divisible by {heads} heads")
    return x.reshape(B, T, heads, C // heads).swapaxes(1, 2)


def linear_heads(x, weights, biases, heads):
    """Apply several layers to ``x`` and cut into heads: (B, T, C) -> a (B, H, T, D) for each of ``weights`` (C, C').

    ``biases``: one for each weight, or all None. One large product takes less time than several small ones.
    """
    B, T, _ = x.shape
    bias = None if biases[0] is None else torch.cat(biases)
    together = linear(x, torch.cat(weights, 1), bias)  # (B, T, C) -> (B, T, number of weights · C')
    pieces = together.reshape(B, T, len(weights), heads, weights[0].shape[1] // heads)  # (B, T, weight, H, D)
    return pieces.permute(2, 0, 3, 1, 4).contiguous().unbind(0)  # of each weight (B, H, T, D)


def merge_heads(x):
    """Join the heads again, the inverse of ``split_heads``: (B, H, T, D) -> (B, T, C)."""
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)


def softmax_allowed(scores, allow):
    """Return the softmax over the allowed cells of each row; a row with none becomes zeros."""
    if allow is None:
        return torch.softmax(scores, -1)  # as ``softmax`` above, in one step
    hidden = ~allow
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
    # a row with nothing allowed is 0 / 0
    return weights if allow.any(-1).all() else weights.masked_fill(hidden, 0)


def _indices(array):
    """Return integers as one row for PyTorch; a copy, since windows are read-only views of the text."""
    return torch.from_numpy(np.array(array, np.int64).reshape(-1))


def check_allow(allow, query=None, key=None, name="allow"):
    """Return the mask; raise TypeError for 0/1 numbers, as adding those to the scores would hide nothing.

    Raises ValueError unless it fits the scores of ``query`` and ``key``: see ``common.checks.check_mask``.
    """
    if allow is None:
        return None
    allow = torch.as_tensor(allow)
    if allow.dtype != torch.bool:
        raise TypeError(f"{name} must be boolean (True = may attend), not {allow.dtype}")
    if query is not None:
        check_mask(allow.shape, (*query.shape[:-1], key.shape[-2]))
    return allow
