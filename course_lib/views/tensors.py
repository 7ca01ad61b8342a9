"""Weights and masks from either track as checked NumPy arrays; every complaint names the numbers."""

import numpy as np

MOST_TOKENS = 512
_HINT = "expected (T, T), (heads, T, T) or (layers, heads, T, T)"


def as_array(values):
    """A NumPy array from an array, a list, or a tensor of either track (also with gradient, bfloat16, on a GPU)."""
    for step in ("detach", "cpu"):
        values = getattr(values, step)() if hasattr(values, step) else values
    if hasattr(values, "numpy"):
        try:
            return np.asarray(values.numpy())
        except TypeError:  # NumPy has no bfloat16; every bfloat16 is a float32
            return np.asarray(values.float().numpy())
    return np.asarray(values)


def checked_numbers(values, name, axes):
    """The values as floats with so many axes; TypeError for other than real numbers, ValueError for the shape."""
    if isinstance(values, (list, tuple)):
        values = [as_array(value) if hasattr(value, "detach") else value for value in values]
    array = as_array(values)
    if array.dtype.kind not in "fiub" and array.size:
        raise TypeError(f"{name} of dtype {array.dtype}: expected real numbers")
    if array.ndim != axes or 0 in array.shape:
        raise ValueError(
            f"{name} of shape {array.shape}: expected {('one number', 'a row', 'a matrix')[axes]} with "
            f"{axes} {'axis' if axes == 1 else 'axes'} and at least one number"
        )
    return array.astype(float)


def checked_tokens(tokens, name):
    """The tokens as a list; TypeError for one string or what is not text, ValueError for none or more than 512."""
    if isinstance(tokens, str):
        raise TypeError(
            f"{name} is one string, {tokens[:20]!r}: give a list of tokens, {tokens.split()[:4]} or {list(tokens[:4])}"
        )
    tokens = list(tokens)
    if not 1 <= len(tokens) <= MOST_TOKENS:
        raise ValueError(
            f"{len(tokens)} {name}: the view shows from 1 to {MOST_TOKENS}; cut weights and tokens to a part"
        )
    for place, token in enumerate(tokens):
        if not isinstance(token, str):
            raise TypeError(f"{name}[{place}] is {token!r}; tokens are text, decode the ids first")
    return [str(token) for token in tokens]


def checked_weights(weights, queries, keys, allow, value_limits):
    """(weights (L, H, Q, K) float32, or float64 where they came so, limits, (values below, values above the limits)).

    Cells that are not allowed become 0, so that masked scores, which hold -inf there, can be shown too.
    """
    array = as_array(weights)
    if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"weights of dtype {array.dtype}: expected real numbers")
    if array.ndim == 5:
        raise ValueError(
            f"weights have shape {array.shape}, five axes, the first seems to be a batch of {len(array)}: "
            f"choose one sentence, weights[0]; {_HINT}"
        )
    if not 2 <= array.ndim <= 4:
        raise ValueError(f"weights have shape {array.shape}: {_HINT}")
    if array.shape[-2:] != (len(queries), len(keys)):
        raise ValueError(
            f"weights of shape {array.shape} have {array.shape[-2]} rows (queries) and {array.shape[-1]} columns "
            f"(keys), but there are {len(queries)} query tokens and {len(keys)} key tokens"
        )
    if 0 in array.shape:
        raise ValueError(f"weights of shape {array.shape} hold nothing to show")
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4  # as it is: 12 x 12 heads of 512 are 38 million
    array = array.astype(np.float32 if small else np.float64).reshape((1,) * (4 - array.ndim) + array.shape)
    allowed = checked_mask(allow, array.shape)
    allowed = np.ones(array.shape, dtype=bool) if allowed is None else allowed
    _refuse(
        array,
        np.isnan(array) | (allowed & ~np.isfinite(array)),
        "the view needs finite numbers" + ("" if allow is not None else "; for masked scores give allow= as well"),
    )
    if value_limits is not None and tuple(value_limits) == (0, 1):
        tolerance = 1e-4
        _refuse(
            array,
            ~allowed & (np.abs(array) > tolerance),
            "but allow says that it may not look there: is True = may look in this mask, or does the model leak?",
        )
        _refuse(
            array,
            (array < -tolerance) | (array > 1 + tolerance),
            "outside 0 to 1: weights are shown as they are before "
            "dropout; for scores give value_limits=(low, high), or None",
        )
    array = np.where(allowed, array, 0.0)
    return array, *_limits(array[allowed], value_limits)


def _limits(values, value_limits):
    if value_limits is None:
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        high = high if high > low else low + 1.0
    else:
        low, high = (float(v) for v in value_limits)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"value_limits ({low:g}, {high:g}): expected two finite numbers, the smaller first")
    slack = 1e-4 * (high - low)
    return (low, high), (bool((values < low - slack).any()), bool((values > high + slack).any()))


def checked_mask(allow, shape):
    """The mask as booleans of this (L, H, Q, K) shape, or None; ValueError unless it is boolean and fits."""
    if allow is None:
        return None
    mask = as_array(allow)
    if mask.dtype != bool:
        raise ValueError(f"allow has dtype {mask.dtype}: expected booleans, True where the query may look")
    if (
        not 2 <= mask.ndim <= 4
        or mask.shape[-2:] != shape[-2:]
        or any(mine not in (1, wanted) for mine, wanted in zip(mask.shape[::-1], shape[::-1], strict=False))
    ):
        raise ValueError(
            f"allow has shape {mask.shape}, the weights (layers, heads, queries, keys) = {shape}: expected {shape[-2:]}"
        )
    return np.broadcast_to(mask, shape)


def _refuse(array, bad, why):
    if bad.any():
        layer, head, row, column = (int(n) for n in np.argwhere(bad)[0])
        more = f" ({bad.sum() - 1} more cells like it)" if bad.sum() > 1 else ""
        raise ValueError(
            f"layer {layer}, head {head}, row {row}, column {column} holds "
            f"{array[layer, head, row, column]:g}{more}: {why}"
        )
