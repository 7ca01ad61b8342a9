"""Checks of arguments, shared by both tracks: NumPy arrays in, clear errors out."""

import math
import numbers

import numpy as np

IGNORED = -100  # a target that does not count: the default ignore_index of cross_entropy


def check_ids(ids, size):
    """Return ``ids`` as an integer array, each in 0 ... size - 1 (NumPy would take -1 for the last one).

    Raises TypeError unless the ids are integers, IndexError with the first id out of range and the limit.
    """
    if getattr(ids, "requires_grad", False):
        raise TypeError("ids must be integers, not a trained tensor: embedding takes (ids, weight), in this order")
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, not {ids.dtype}")
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        bad = int(ids[(ids < 0) | (ids >= size)].flat[0])
        raise IndexError(f"id {bad} is outside the vocabulary of {size}: ids run from 0 to {size - 1}")
    return ids


def check_targets(targets, shape, size, ignore_index):
    """Return ``(targets, kept)``: the targets as one row of integers, and which of them count (None when all do).

    Targets have the ``shape`` of the logits without V, or are one row of that many. Raises ValueError if they do not
    fit or none counts, IndexError for a target outside 0 ... size - 1.
    """
    targets, shape, rows = np.asarray(targets), tuple(shape), math.prod(shape)
    if targets.size != rows:
        raise ValueError(f"{rows} rows of logits, but {targets.size} targets: V is the last axis (PyTorch: axis 1)")
    if targets.ndim > 1 and targets.shape != shape:
        raise ValueError(f"targets have shape {targets.shape}, but the logits are for {shape}: transposed?")
    targets = targets.reshape(-1)
    kept = targets != ignore_index
    if kept.all():
        if rows == 0:
            raise ValueError("no targets: the mean over nothing has no value")
        return check_ids(targets, size), None
    if not kept.any():
        raise ValueError(f"all {rows} targets are {ignore_index} (ignored): the mean over nothing has no value")
    check_ids(targets[kept], size)
    return targets, kept


def check_batch(ids, context_length):
    """Return ``ids`` as an array (B, T); raise ValueError unless 1 ≤ T ≤ ``context_length``."""
    ids = np.asarray(ids)
    if ids.ndim != 2:
        raise ValueError(
            f"a model takes a batch of windows, shape (B, T); this is {ids.shape}: add an axis with ids[None]"
        )
    if not 1 <= ids.shape[1] <= context_length:
        raise ValueError(
            f"a window of {ids.shape[1]} tokens: the model takes 1 to {context_length} (its context length)"
        )
    return ids


def check_normalized_shape(normalized_shape, shape):
    """Raise ValueError unless ``normalized_shape`` is C or (C,), with C the size of the last axis of ``shape``."""
    if normalized_shape not in (shape[-1], (shape[-1],), [shape[-1]]):
        raise ValueError(
            f"normalized_shape is {normalized_shape}: only the last axis is normalised, here of size {shape[-1]}"
            f" (shape {tuple(shape)})"
        )


def check_mask(allow, scores):
    """Raise ValueError unless a mask of shape ``allow`` is (T, S) or fits ``scores`` (..., T, S) axis by axis.

    Fewer axes would be ambiguous: (B, T, S) beside scores (B, H, T, S) would be one mask for each head.
    """
    axes = len(allow) in (2, len(scores))
    if not axes or allow[-1] != scores[-1] or any(a not in (1, s) for a, s in zip(allow[::-1], scores[::-1])):
        raise ValueError(
            f"allow has shape {tuple(allow)}, but the scores {tuple(scores)}: a mask is (T, S), or has an axis for each"
            " of the scores', of the same size or 1 (one mask for each sample is (B, 1, T, S))"
        )


def check_linear(shape, weight_shape):
    """Raise ValueError unless ``x`` of this ``shape`` (..., fan_in) can be multiplied by a weight (fan_in, fan_out)."""
    if len(weight_shape) != 2 or shape[-1] != weight_shape[0]:
        raise ValueError(
            f"x of shape {tuple(shape)} does not fit a weight of shape {tuple(weight_shape)}: a weight is"
            " (fan_in, fan_out), the transpose of PyTorch's"
        )


def check_whole(name, value, least):
    """Raise ValueError unless ``value`` is a whole number, at least ``least``."""
    if not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, not {value}")


def check_choice(name, value, choices):
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}; not {value!r}")


def check_rope_scaling(scaling):
    """Raise ValueError unless ``scaling`` is (factor, low, high, original), with all above 0 and low below high."""
    if len(scaling) != 4 or not min(scaling) > 0 or not scaling[1] < scaling[2]:
        raise ValueError(f"rope_scaling must be (factor, low, high, original), all above 0, low < high, not {scaling}")


def mismatches(arrays, shapes):
    """Return a sentence for each of ``arrays`` that is missing, unknown, or not of its shape in ``shapes``, a dict."""
    wrong = [f"{name} is missing" for name in shapes if name not in arrays]
    wrong += [f"{name} is unknown" for name in arrays if name not in shapes]
    return wrong + [
        f"{name} has shape {np.shape(arrays[name])}, not {shape}"
        + (" (PyTorch's nn.Linear keeps the transpose)" if np.shape(arrays[name])[::-1] == shape else "")
        for name, shape in shapes.items()
        if name in arrays and np.shape(arrays[name]) != shape
    ]
