"""The scores behind the weights: queries and keys checked, and q · k → scaled and masked → softmax from them."""

import math
import warnings

import numpy as np

from ..tensors import as_array


def checked_projections(queries, keys, shape, scale):
    """(queries (L, H, Q, D), keys (L, H, K, D), scale), float32; ValueError names the shapes that do not fit."""
    if (queries is None) != (keys is None):
        raise ValueError(f"{'keys' if keys is None else 'queries'}= is missing: the scores need queries and keys")
    if queries is None:
        return None
    wanted_heads, made = shape[:2], []
    for name, values, places in (("queries", queries, shape[2]), ("keys", keys, shape[3])):
        array = as_array(values)
        if array.dtype.kind not in "fiu" or not 2 <= array.ndim <= 4:
            raise ValueError(
                f"{name} of shape {array.shape} and dtype {array.dtype}: expected numbers (layers, heads, T, D)"
            )
        array = array.astype(np.float32).reshape((1,) * (4 - array.ndim) + array.shape)
        if array.shape[:3] != (*wanted_heads, places):
            raise ValueError(
                f"{name} of shape {array.shape}, the weights have (layers, heads, queries, keys) = {shape}: "
                f"expected {(*wanted_heads, places)} and the head size"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} hold {int((~np.isfinite(array)).sum())} values that are not finite")
        made.append(np.ascontiguousarray(array))
    if made[0].shape[3] != made[1].shape[3]:
        raise ValueError(f"queries have head size {made[0].shape[3]}, keys {made[1].shape[3]}: expected the same")
    scale = 1 / math.sqrt(made[0].shape[3]) if scale is None else float(scale)
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale is {scale:g}: expected a positive number, as a rule 1/√D")
    return *made, scale


def score_limits(queries, keys, scale, allow, weights):
    """The smallest and largest q · k and scaled score of all heads, one layer at a time; warns if the weights differ.

    {"dot": [low, high], "scaled": [low, high]}; the scaled ones over the allowed cells.
    """
    limits = {"dot": [np.inf, -np.inf], "scaled": [np.inf, -np.inf]}
    worst = (0.0, None)
    for layer, (q, k) in enumerate(zip(queries, keys, strict=True)):
        dot = q @ k.swapaxes(-1, -2)  # (H, Q, D) @ (H, D, K) -> (H, Q, K)
        may = np.ones(dot.shape, dtype=bool) if allow is None else allow[layer]
        _widen(limits["dot"], dot)
        _widen(limits["scaled"], dot[may] * scale)
        scores = np.where(may, dot * scale, -np.inf)
        top = np.max(scores, axis=-1, keepdims=True, initial=np.finfo(np.float32).min)
        exps = np.exp(scores - top)
        off = np.abs(exps / np.maximum(exps.sum(-1, keepdims=True), 1e-30) - weights[layer])
        if off.max() > worst[0]:
            worst = float(off.max()), (layer, *(int(n) for n in np.unravel_index(off.argmax(), off.shape)))
    if worst[0] > 1e-3:
        place = "layer {}, head {}, query {}, key {}".format(*worst[1])
        warnings.warn(
            f"softmax of queries, keys, scale and allow gives other weights than these, by up to {worst[0]:.3g} "
            f"({place}): the stages shown do not lead to them",
            stacklevel=5,
        )
    return {name: [float(v) for v in pair] if pair[0] <= pair[1] else [0.0, 1.0] for name, pair in limits.items()}


def _widen(limits, values):
    if values.size:
        limits[:] = min(limits[0], values.min()), max(limits[1], values.max())
