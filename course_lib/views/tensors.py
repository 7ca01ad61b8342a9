"""Weights and masks from either track as checked NumPy arrays; every error message names the numbers."""

from numbers import Number

import numpy as np

MOST_TOKENS = 512
_HINT = "expected (T, T), (heads, T, T), (layers, heads, T, T), or one (1, heads, T, T) per layer"


def as_array(values, name="values"):
    """Return a NumPy array from an array, a tensor of either track, in bfloat16 or on a GPU too, or lists of these.

    Raises ValueError, naming the place, for parts that are None or differ in shape.
    """
    if isinstance(values, (list, tuple)) and not all(isinstance(value, Number) for value in values):
        parts = [as_array(value, f"{name}[{n}]") for n, value in enumerate(values)]
        shapes = [part.shape for part in parts]
        if len(set(shapes)) > 1:
            raise ValueError(f"the parts of {name} have different shapes, {', '.join(map(str, shapes))}")
        return np.stack(parts)
    if values is None:
        raise ValueError(
            f"{name} is None: there are no numbers; a model of the transformers library gives its attention weights if "
            'it is loaded with attn_implementation="eager" and called with output_attentions=True'
        )
    for step in ("detach", "cpu"):
        values = getattr(values, step)() if hasattr(values, step) else values
    if hasattr(values, "numpy"):
        try:
            return np.asarray(values.numpy())
        except TypeError:  # NumPy has no bfloat16; every bfloat16 is a float32
            return np.asarray(values.float().numpy())
    return np.asarray(values)


def heads_of_one_sentence(values, name):
    """Return an array whose last four axes are (L, H, T, ...), without the batch axis of one sentence.

    Other libraries keep that axis: one array (1, H, T, T) per layer, or all in (L, 1, H, T, T) or (1, L, H, T, T).
    Raises ValueError for more than one sentence.
    """
    array = as_array(values, name)
    if array.ndim != 5:
        return array
    if array.shape[1] == 1:
        return array[:, 0]
    if array.shape[0] == 1 and not isinstance(values, (list, tuple)):
        return array[0]
    raise ValueError(
        f"{name} of shape {array.shape} hold several sentences; choose one sentence: {name}[:, 0] of (layers, batch, "
        f"heads, ...), {name}[0] of (batch, layers, heads, ...), or [layer[:1] for layer in {name}]"
    )


def checked_numbers(values, name, axes):
    """Return the values as an array of floats.

    Raises TypeError unless they are real numbers, ValueError unless there are some, along that many axes.
    """
    array = as_array(values, name)
    if array.dtype.kind not in "fiub" and array.size:
        raise TypeError(f"{name} of dtype {array.dtype}: expected real numbers")
    if array.ndim != axes or 0 in array.shape:
        raise ValueError(
            f"{name} of shape {array.shape}: expected {('one number', 'a row', 'a matrix')[axes]} with "
            f"{axes} {'axis' if axes == 1 else 'axes'} and at least one number"
        )
    return array.astype(float)


def checked_tokens(tokens, name):
    """Return the tokens as a list.

    Raises TypeError for a single string or a token that is not text, ValueError for no tokens or more than 512.
    """
    if isinstance(tokens, str):
        raise TypeError(
            f"{name} is one string, {tokens[:20]!r}: pass a list of tokens, {tokens.split()[:4]} or {list(tokens[:4])}"
        )
    tokens = list(tokens)
    if not 1 <= len(tokens) <= MOST_TOKENS:
        raise ValueError(
            f"{len(tokens)} {name}: the view shows 1 to {MOST_TOKENS}; pass only a part of the weights and tokens"
        )
    for n, token in enumerate(tokens):
        if not isinstance(token, str):
            raise TypeError(f"{name}[{n}] is {token!r}: tokens are text, so decode the ids first")
    return [str(token) for token in tokens]


def checked_weights(weights, queries, keys, allow, value_limits):
    """Return (weights (L, H, Q, K), limits, (are there values below, above the limits?)); float16 becomes float32.

    Forbidden cells become 0, so that masked scores, which are -inf there, can be shown too. Raises ValueError for
    weights that do not fit the tokens or the mask, that are not finite, or that leave 0 to 1 unless they are scores.
    """
    array = heads_of_one_sentence(weights, "weights")
    if array.dtype == object:
        raise ValueError(f"weights are a {type(weights).__name__}, not numbers: {_HINT}")
    if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"weights of dtype {array.dtype}: expected real numbers")
    if not 2 <= array.ndim <= 4:
        raise ValueError(f"weights have shape {array.shape}: {_HINT}")
    if array.shape[-2:] != (len(queries), len(keys)):
        raise ValueError(
            f"weights of shape {array.shape} have {array.shape[-2]} rows (queries) and {array.shape[-1]} columns "
            f"(keys), but there are {len(queries)} query tokens and {len(keys)} key tokens"
        )
    if 0 in array.shape:
        raise ValueError(f"weights of shape {array.shape}: there is nothing to show")
    small = (
        array.dtype.kind == "f" and array.dtype.itemsize <= 4
    )  # kept small: 12 x 12 heads of 512 tokens have 38 million weights
    array = array.astype(np.float32 if small else np.float64).reshape((1,) * (4 - array.ndim) + array.shape)
    allowed = checked_mask(allow, array.shape)
    allowed = np.ones(array.shape, dtype=bool) if allowed is None else allowed
    _refuse(
        array,
        np.isnan(array) | (allowed & ~np.isfinite(array)),
        "the view needs finite numbers" + ("" if allow is not None else "; for masked scores pass allow= as well"),
    )
    if value_limits is not None and tuple(value_limits) == (0, 1):
        tolerance = 1e-4
        _refuse(
            array,
            ~allowed & (np.abs(array) > tolerance),
            "but allow forbids this cell: is True = may attend in this mask, or does the model leak?",
        )
        _refuse(
            array,
            (array < -tolerance) | (array > 1 + tolerance),
            "outside 0 to 1: expected weights from before dropout; for scores pass value_limits=(low, high), or None",
        )
    array = np.where(allowed, array, 0.0)
    return array, *_limits(array[allowed], value_limits)


def span(values):
    """Return the (smallest, largest) of ``values``, one apart if they are equal; (0, 1) if there are none."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    return low, high if high > low else low + 1.0


def _limits(values, value_limits):
    low, high = span(values) if value_limits is None else (float(v) for v in value_limits)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"value_limits ({low:g}, {high:g}): expected two finite numbers, the smaller first")
    slack = 1e-4 * (high - low)
    return (low, high), (bool((values < low - slack).any()), bool((values > high + slack).any()))


def as_mask(allow):
    """Return the mask as an array; raise ValueError unless it is boolean."""
    mask = as_array(allow, "allow")
    if mask.dtype != bool:
        raise ValueError(f"allow has dtype {mask.dtype}: expected booleans, True where the query may attend")
    return mask


def checked_mask(allow, shape):
    """Return the mask broadcast to ``shape`` (L, H, Q, K), or None; raise ValueError unless it is boolean and fits."""
    if allow is None:
        return None
    mask = as_mask(allow)
    if (
        not 2 <= mask.ndim <= 4
        or mask.shape[-2:] != shape[-2:]
        or any(mine not in (1, wanted) for mine, wanted in zip(mask.shape[::-1], shape[::-1], strict=False))
    ):
        raise ValueError(
            f"allow has shape {mask.shape}, but the weights have (layers, heads, queries, keys) = {shape}: "
            f"expected {shape[-2:]}"
        )
    return np.broadcast_to(mask, shape)


def _refuse(array, bad, why):
    if bad.any():
        layer, head, row, column = (int(n) for n in np.argwhere(bad)[0])
        more = f" (and {bad.sum() - 1} more such cells)" if bad.sum() > 1 else ""
        raise ValueError(
            f"layer {layer}, head {head}, row {row}, column {column} holds "
            f"{array[layer, head, row, column]:g}{more}: {why}"
        )
