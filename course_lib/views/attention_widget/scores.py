"""The scores behind the weights: queries and keys are checked, and must lead to the weights by way of the softmax."""

import math
import warnings

import numpy as np

from ..tensors import heads_of_one_sentence


def checked_projections(queries, keys, shape, scale):
    """Return (queries (L, H, Q, D), keys (L, H, K, D), scale) in float32, or None if neither is given.

    Raises ValueError, naming the shapes, for queries or keys that do not fit ``shape`` (L, H, Q, K), and for a scale
    that is not positive.
    """
    if (queries is None) != (keys is None):
        raise ValueError(f"{'keys' if keys is None else 'queries'}= is missing: the scores need both queries and keys")
    if queries is None:
        return None
    made = []
    for name, values, length in (("queries", queries, shape[2]), ("keys", keys, shape[3])):
        array = heads_of_one_sentence(values, name)
        if array.dtype.kind not in "fiu" or not 2 <= array.ndim <= 4:
            raise ValueError(
                f"{name} of shape {array.shape} and dtype {array.dtype}: expected numbers (layers, heads, T, D)"
            )
        array = array.astype(np.float32).reshape((1,) * (4 - array.ndim) + array.shape)
        if array.shape[:3] != (*shape[:2], length):
            raise ValueError(
                f"{name} of shape {array.shape}, but the weights have (layers, heads, queries, keys) = {shape}: "
                f"expected {(*shape[:2], length)} and the head size"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contain {int((~np.isfinite(array)).sum())} values that are not finite")
        made.append(np.ascontiguousarray(array))
    if made[0].shape[3] != made[1].shape[3]:
        raise ValueError(f"queries have head size {made[0].shape[3]}, keys {made[1].shape[3]}: expected the same")
    scale = 1 / math.sqrt(made[0].shape[3]) if scale is None else float(scale)
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale is {scale:g}: expected a positive number, normally 1/√D")
    return *made, scale


def score_limits(queries, keys, scale, allow, weights):
    """Return the range of q · k and of the scaled scores in all heads: {"dot": [low, high], "scaled": [low, high]}.

    The scaled scores are those of the allowed cells. Warns if their softmax is not ``weights``. One layer at a time, to
    save memory.
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
        cell = "layer {}, head {}, query {}, key {}".format(*worst[1])
        warnings.warn(
            f"the softmax of queries, keys, scale and allow differs from these weights by up to {worst[0]:.3g} "
            f"({cell}): the stages shown do not lead to them",
            stacklevel=4,
        )
    return {name: [float(v) for v in pair] if pair[0] <= pair[1] else [0.0, 1.0] for name, pair in limits.items()}


def _widen(limits, values):
    if values.size:
        limits[:] = min(limits[0], values.min()), max(limits[1], values.max())
