"""Checks of ids, targets and probabilities, shared by both tracks: NumPy arrays in, clear errors out."""

import math

import numpy as np


def check_ids(ids, size):
    """``ids`` as an integer array, every one in 0 ... size - 1 (NumPy would let -1 mean the last one).

    Raises TypeError for ids that are not integers, IndexError that names the first id outside and the limit.
    """
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, not {ids.dtype}")
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        bad = int(ids[(ids < 0) | (ids >= size)].flat[0])
        raise IndexError(f"id {bad} is outside the vocabulary of {size}: ids run from 0 to {size - 1}")
    return ids


def check_targets(targets, shape, size, ignore_index):
    """``(targets, kept)``: the targets as one row of integers, and which of them count (None when all do).

    They have the ``shape`` of the logits without V, or are one row of as many. Raises ValueError where they do not fit
    or none counts, IndexError for one outside 0 ... size - 1.
    """
    targets, shape, rows = np.asarray(targets), tuple(shape), math.prod(shape)
    if targets.size != rows:
        raise ValueError(f"{rows} rows of logits, but {targets.size} targets")
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


def check_batch(ids, context):
    """``ids`` as an array (B, T) with 1 ≤ T ≤ ``context``; ValueError names both numbers."""
    ids = np.asarray(ids)
    if ids.ndim != 2:
        raise ValueError(
            f"a model takes a batch of windows, shape (B, T); this is {ids.shape}: add an axis with ids[None]"
        )
    if not 1 <= ids.shape[1] <= context:
        raise ValueError(f"a window of {ids.shape[1]} tokens: the model takes 1 to {context} (its context)")
    return ids


def keep_mask(shape, p, rng):
    """A dropout mask: 0 with probability ``p``, else 1 / (1 - p), drawn by the NumPy Generator ``rng``.

    >>> keep_mask((2, 4), 0.5, np.random.default_rng(0))
    array([[2., 0., 0., 0.],
           [2., 2., 2., 2.]])
    """
    if not 0 <= p <= 1:
        raise ValueError(f"the dropout probability must be between 0 and 1, not {p}")
    return np.zeros(shape) if p == 1 else (rng.random(shape) >= p) / (1 - p)


def check_padding_mask(allow, shape, name):
    """A mask of real tokens, booleans of the ``shape`` (B, T) of the ids, True = may be looked at; None stays None.

    Raises TypeError for numbers instead of booleans, ValueError that names both shapes.
    """
    if allow is None:
        return None
    allow = np.asarray(allow)
    if allow.dtype != bool:
        raise TypeError(f"{name} must be boolean (True = may look), not {allow.dtype}")
    if allow.shape != tuple(shape):
        raise ValueError(f"{name} has shape {allow.shape}, but the ids {tuple(shape)}")
    return allow
