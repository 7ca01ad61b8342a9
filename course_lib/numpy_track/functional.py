"""The functions that a GPT is made of, each with a backward derived by hand.

Names, order and defaults are torch.nn.functional's, but for ``axis`` (PyTorch: dim) and where a docstring says so.
Every function works on the last axis, so (T, C), (B, T, C) and (B, H, T, D) all fit. Letters: B batch, T time,
C channels, H heads, D head size, V vocabulary.
"""

import math
from functools import partial

import numpy as np

from ..common.checks import check_ids, check_linear, check_mask, check_normalized_shape, check_targets
from ..common.dropout import draw_dropout_mask
from .tensor import tracked, unbroadcast


def linear(x, weight, bias=None):
    """Return ``x @ weight + bias`` on the last axis: (..., fan_in) -> (..., fan_out).

    ``weight`` is (fan_in, fan_out), the transpose of PyTorch's; raises ValueError if it does not fit.
    Backward: dx = g wᵀ, dw = xᵀ g and db = Σ g, summed over all rows.
    """
    check_linear(x.shape, weight.shape)
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
    """Return ``max(x, 0)``. Backward: the gradient passes where x > 0; at 0 it is 0."""
    return tracked(np.maximum(x.data, 0), (x,), lambda grad: (grad * (x.data > 0),))


def gelu(x, approximate="none"):
    """Return ``x Φ(x)``, Φ the distribution function of the standard normal (Hendrycks and Gimpel 2016).

    "tanh" is the approximation that GPT-2 uses, ``x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))``; "none" is exact, with
    the error function, which NumPy lacks: called element by element, it is slow. They differ by up to 5e-4.
    Raises ValueError for any other ``approximate``.
    """
    if approximate == "tanh":
        return _gelu_tanh(x)
    if approximate != "none":
        raise ValueError(f"approximate must be 'tanh' or 'none', not {approximate!r}")
    phi = 0.5 + 0.5 * np.vectorize(math.erf, [x.dtype])(x.data * math.sqrt(0.5))

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


# the choices of a config's ``activation``; "gelu" is PyTorch's gelu(approximate="tanh")
ACTIVATIONS = {"relu": relu, "gelu": partial(gelu, approximate="tanh")}


def silu(x):
    """Return ``x σ(x)``, σ(x) = 1 / (1 + exp(-x)), also called swish. Backward: dx = g (σ + x σ (1 - σ))."""
    gate = 0.5 * (1 + np.tanh(0.5 * x.data))  # σ: exp(-x) could overflow, tanh cannot
    return tracked(x.data * gate, (x,), lambda grad: (grad * gate * (1 + x.data * (1 - gate)),))


def softmax(x, dim=-1):
    """Return ``exp(x) / Σ exp(x)`` along the axis ``dim``: positive numbers that sum to 1.

    The maximum of each row is subtracted first: the result is the same, and exp cannot overflow.
    Backward: dx = w (g - Σ g w), with w the result.
    """
    exps = np.exp(x.data - x.data.max(axis=dim, keepdims=True))
    weights = exps / exps.sum(axis=dim, keepdims=True)

    def backward(grad):
        return (weights * (grad - (grad * weights).sum(axis=dim, keepdims=True)),)

    return tracked(weights, (x,), backward)


def log_softmax(x, dim=-1):
    """Return ``x - log Σ exp(x)`` along the axis ``dim``. Backward: dx = g - softmax(x) Σ g."""
    shifted = x.data - x.data.max(axis=dim, keepdims=True)
    out = shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))

    def backward(grad):
        return (grad - np.exp(out) * grad.sum(axis=dim, keepdims=True),)

    return tracked(out, (x,), backward)


def layer_norm(x, normalized_shape, weight, bias, eps=1e-5):
    """Normalise the last axis: ``(x - μ) / √(σ² + ε) · weight + bias``, σ² divided by C, not C - 1 (Ba et al. 2016).

    ``normalized_shape`` is (C,), the size of that axis, as in PyTorch. Raises ValueError for any other.
    Backward, with n the normalised x and h = g · weight: dx = (h - mean(h) - n mean(h n)) / √(σ² + ε).
    """
    check_normalized_shape(normalized_shape, x.shape)
    size = x.shape[-1]
    centred = x.data - np.add.reduce(x.data, axis=-1, keepdims=True) / size
    variance = np.einsum("...c,...c->...", centred, centred)[..., None] / size
    scale = 1 / np.sqrt(variance + eps)
    normed = centred * scale

    def backward(grad):
        by_normed = grad * weight.data
        mean = np.add.reduce(by_normed, axis=-1, keepdims=True) / size
        along = np.einsum("...c,...c->...", by_normed, normed)[..., None] / size
        rows = tuple(range(grad.ndim - 1))
        by_x = (by_normed - mean - normed * along) * scale
        by_weight, by_bias = (grad * normed).sum(axis=rows), grad.sum(axis=rows)
        return by_x, unbroadcast(by_weight, weight.shape), unbroadcast(by_bias, bias.shape)

    return tracked(normed * weight.data + bias.data, (x, weight, bias), backward)


def rms_norm(x, normalized_shape, weight, eps):
    """Divide by the root of the mean square: ``x / √(mean(x²) + ε) · weight`` (Zhang and Sennrich 2019).

    LayerNorm without mean and bias. ``normalized_shape`` is (C,), the size of the last axis, as in PyTorch. Raises
    ValueError for any other.
    Backward, with n = x s, s = (mean(x²) + ε)^(-1/2), and h = g · weight: s falls as x grows, ds/dx = -s³ x / C, so
    dx = h s + (Σ h x) ds/dx = (h - n mean(h n)) s; that is LayerNorm's without the mean of h. dweight = Σ g n.
    """
    check_normalized_shape(normalized_shape, x.shape)
    size = x.shape[-1]
    scale = 1 / np.sqrt(np.einsum("...c,...c->...", x.data, x.data)[..., None] / size + eps)
    normed = x.data * scale

    def backward(grad):
        by_normed = grad * weight.data
        along = np.einsum("...c,...c->...", by_normed, normed)[..., None] / size
        by_weight = (grad * normed).sum(axis=tuple(range(grad.ndim - 1)))
        return (by_normed - normed * along) * scale, unbroadcast(by_weight, weight.shape)

    return tracked(normed * weight.data, (x, weight), backward)


def cross_entropy(logits, targets, ignore_index=-100):
    """Return the mean of ``-log softmax(logits)[target]`` over all targets but ``ignore_index``, in nats per token.

    ``logits`` (..., V), ``targets`` (...) integers: the classes are on the last axis (PyTorch: on axis 1).
    Backward: (softmax - onehot) / n, n the number of targets that count. Raises IndexError for a target outside
    0 ... V - 1, ValueError if all targets are ignored or the shapes do not fit.
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


def embedding(ids, weight):
    """Look up row ``ids[...]`` of a table ``weight`` (V, C): (...) -> (..., C).

    Backward: each row of the table gets the sum of the gradients of all positions where its id occurs.
    Raises IndexError for an id outside 0 ... V - 1, TypeError for ids that are not integers.
    """
    ids = check_ids(ids, weight.shape[0])

    def backward(grad):
        # To pick row i is to multiply by a row that is 1 at i and 0 elsewhere, so the gradient is a matrix product.
        onehot = ids.reshape(-1, 1) == np.arange(len(weight))  # (rows, V)
        return (onehot.T.astype(grad.dtype) @ grad.reshape(-1, weight.shape[1]),)

    return tracked(weight.data[ids], (weight,), backward)


def dropout(x, p=0.5, training=True, rng=None):
    """Set each element to 0 with probability ``p`` and divide the others by 1 - p; change nothing unless ``training``.

    ``rng`` is a NumPy Generator, in both tracks. Backward uses the same mask.
    """
    if not training or p == 0:
        return x
    mask = draw_dropout_mask(x.shape, p, rng).astype(x.dtype)
    return tracked(x.data * mask, (x,), lambda grad: (grad * mask,))


def causal_mask(size):
    """Return what each position may attend to: (T, T) booleans, True where key j ≤ query i; rows are queries.

    >>> causal_mask(3)
    array([[ True, False, False],
           [ True,  True, False],
           [ True,  True,  True]])
    """
    return np.tril(np.ones((size, size), dtype=bool))


def window_mask(size, window):
    """Return the causal mask with a limited view: (T, T) booleans, True where 0 ≤ query i - key j < ``window``.

    >>> window_mask(4, 2)[3]
    array([False, False,  True,  True])
    """
    return np.triu(causal_mask(size), 1 - window)


def rotary(x, cos, sin):
    """Turn channel i and channel i + D/2 of each row together by an angle: (..., T, D) -> (..., T, D).

    ``cos`` and ``sin`` (T, D/2), arrays, are those of each position and pair: see ``rotary_angles``. The pairs are the
    two halves of a head, as in published Llama files; Su et al. 2021 pair neighbours, which needs other weights.
    Backward: turn the gradient back. A rotation matrix has its transpose as inverse, the turn by minus the angle.
    """
    cos, sin = cos.astype(x.dtype), sin.astype(x.dtype)
    half = x.shape[-1] // 2

    def turned(data, sin):
        a, b = data[..., :half], data[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    return tracked(turned(x.data, sin), (x,), lambda grad: (turned(grad, -sin),))


def causal_conv1d(x, weight, before=None):
    """Return ``Σ_k weight[c, 0, k] · x[t - (K - 1) + k, c]``, channel by channel: (B, T, C) -> (B, T, C).

    ``weight`` is (C, 1, K), as that of torch.nn.Conv1d with ``groups=C``; its last column belongs to the position
    itself. ``before`` (B, K - 1, C), an array, is what came before x; None: zeros. Here T is the axis before the last.
    Backward: an input has moved the output of its own position and of the K - 1 after it, so
    dx[t] = Σ_k weight[k] g[t + (K - 1) - k], and dweight[k] = Σ_t g[t] x[t - (K - 1) + k].
    """
    (B, T, C), K = x.shape, weight.shape[-1]
    nothing = np.zeros((B, K - 1, C), x.dtype)
    padded = np.concatenate([nothing if before is None else before, x.data], axis=1)  # (B, K - 1 + T, C)
    out = sum(weight.data[:, 0, k] * padded[:, k : k + T] for k in range(K))

    def backward(grad):
        late = np.concatenate([grad, nothing], axis=1)
        by_x = sum(weight.data[:, 0, k] * late[:, K - 1 - k : K - 1 - k + T] for k in range(K))
        by_weight = [np.einsum("btc,btc->c", grad, padded[:, k : k + T]) for k in range(K)]
        return by_x, np.stack(by_weight, axis=-1)[:, None]

    return tracked(out, (x, weight), backward)


def repeat_interleave(x, repeats, dim):
    """Repeat each index of the axis ``dim``, in place: (..., G, ...) -> (..., G · repeats, ...), 0 0 1 1 ...

    Backward: what an index gave is used ``repeats`` times, so its gradient is the sum over its copies.
    """
    dim = dim % x.ndim
    copies = (*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :])

    def backward(grad):
        return (grad.reshape(copies).sum(axis=dim + 1),)

    return tracked(np.repeat(x.data, repeats, axis=dim), (x,), backward)


def attention(query, key, value, allow=None, scale=None, dropout_mask=None):
    """Mix the values: ``context = softmax(query keyᵀ · scale) value`` (Vaswani et al. 2017, section 3.2.1).

    Shapes: query (..., T, D), key (..., S, D), value (..., S, E) -> context (..., T, E), weights (..., T, S).
    ``allow`` (booleans; (T, S), or an axis for each of the scores'): True = this query may attend to this key, like a
    boolean attn_mask of PyTorch's scaled_dot_product_attention. A query that may attend to nothing gets weights 0 and
    context 0.
    ``scale`` is 1/√D when None. ``dropout_mask`` multiplies the weights.
    Returns (context, weights): the weights as a plain array, before dropout.

    Backward, with w the weights: dv = wᵀ g; dw = g vᵀ; dscores = w (dw - Σ dw w); dq = dscores k; dk = dscoresᵀ q.
    """
    allow = check_allow(allow, query, key)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.data @ key.data.swapaxes(-1, -2)  # (..., T, D) @ (..., D, S) -> (..., T, S)
    scores *= scale
    weights = softmax_allowed(scores, allow)
    dropout_mask = None if dropout_mask is None else dropout_mask.astype(weights.dtype)
    mixed = weights if dropout_mask is None else weights * dropout_mask
    context = mixed @ value.data  # (..., T, S) @ (..., S, E) -> (..., T, E)

    def backward(grad):
        by_value = mixed.swapaxes(-1, -2) @ grad
        by_weights = grad @ value.data.swapaxes(-1, -2)
        if dropout_mask is not None:
            by_weights *= dropout_mask
        by_weights -= np.einsum("...s,...s->...", by_weights, weights)[..., None]
        by_weights *= weights
        by_weights *= scale  # now the gradient of query keyᵀ
        return by_weights @ key.data, by_weights.swapaxes(-1, -2) @ query.data, by_value

    return tracked(context, (query, key, value), backward), weights


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

    ``biases``: one for each weight, or all None.
    """
    return [split_heads(linear(x, weight, bias), heads) for weight, bias in zip(weights, biases)]


def merge_heads(x):
    """Join the heads again, the inverse of ``split_heads``: (B, H, T, D) -> (B, T, C)."""
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)


def softmax_allowed(scores, allow):
    """Return the softmax over the allowed cells of each row of an array; a row with none becomes zeros."""
    if allow is not None:
        scores = np.where(allow, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    if allow is not None:
        # a row with nothing allowed: -inf minus the lowest number is still -inf
        top = np.maximum(top, np.finfo(scores.dtype).min)
    exps = np.exp(scores - top)
    total = exps.sum(axis=-1, keepdims=True)
    # the largest exp is 1, so only the sum of an empty row is raised
    return exps / (total if allow is None else np.maximum(total, 1))


def check_allow(allow, query=None, key=None, name="allow"):
    """Return the mask; raise TypeError for 0/1 numbers, as adding those to the scores would hide nothing.

    Raises ValueError unless it fits the scores of ``query`` and ``key``: see ``common.checks.check_mask``.
    """
    if allow is None:
        return None
    allow = np.asarray(allow)
    if allow.dtype != bool:
        raise TypeError(f"{name} must be boolean (True = may attend), not {allow.dtype}")
    if query is not None:
        check_mask(allow.shape, (*query.shape[:-1], key.shape[-2]))
    return allow
