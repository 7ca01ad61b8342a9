"""From one long row of ids to training examples: split, windows, batches."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np


def split_by_position(ids: np.ndarray, fraction: float = 0.9, context: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Cut the ids (N,) in two by position: the first `fraction` trains, the rest validates.

    The text is cut before windows are, so that no window reaches over the cut into the other part.
    Errors: ValueError when a part is too short for one window of `context` tokens and its target.

    >>> train_ids, validation_ids = split_by_position(np.arange(100), 0.9, context=8)
    >>> len(train_ids), validation_ids.tolist()
    (90, [90, 91, 92, 93, 94, 95, 96, 97, 98, 99])
    """
    ids = _row(ids)
    _check_context(context)
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie between 0 and 1, got {fraction}")
    cut = math.floor(round(fraction * len(ids), 6))  # rounded, because 0.29 * 100 is 28.999999999999996
    parts = {"train": ids[:cut], "val": ids[cut:]}
    for name, part in parts.items():
        if len(part) < context + 1:
            raise ValueError(
                f"the {name} part of this text is too short: {len(part)} tokens (of {len(ids)}, cut at {fraction}), "
                f"it needs ≥{context + 1} for one window of context {context} and its target"
            )
    return parts["train"], parts["val"]


def windows(ids: np.ndarray, context: int, stride: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """All windows of `context` tokens, every `stride` tokens, and the same windows moved on by one as targets.

    x[i] = ids[i·stride : i·stride + T], y[i] = ids[i·stride + 1 : i·stride + T + 1], both of shape (n, T) with
    n = (N − T − 1) // stride + 1; with stride 1 that is N − T, since the last window needs one more token as target.
    x and y are read-only views of the ids: overlapping windows cost no memory.
    Errors: ValueError when there are fewer than T + 1 ids.

    >>> x, y = windows(np.arange(8), context=4)
    >>> x.shape, x[-1].tolist(), y[-1].tolist()
    ((4, 4), [3, 4, 5, 6], [4, 5, 6, 7])
    """
    ids = _row(ids)
    _check_context(context)
    if stride < 1:
        raise ValueError(f"stride must be at least 1, got {stride}")
    _check_length(ids, context)
    both = np.lib.stride_tricks.sliding_window_view(ids, context + 1)[::stride]  # (N,) → (n, T + 1)
    return both[:, :-1], both[:, 1:]


def sequential_batches(
    x: np.ndarray, y: np.ndarray, batch_size: int, drop_last: bool = False
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Windows in order, `batch_size` at a time, as a list of (x, y); the last batch may be smaller, or is dropped.

    >>> x, y = windows(np.arange(10), context=4)
    >>> [len(batch) for batch, _ in sequential_batches(x, y, 4)]
    [4, 2]
    >>> len(sequential_batches(x, y, 4, drop_last=True))
    1
    """
    _check_batch_size(batch_size)
    if len(x) != len(y):
        raise ValueError(f"x and y must hold equally many windows, got {len(x)} and {len(y)}")
    if drop_last and len(x) < batch_size:
        raise ValueError(f"{len(x)} windows do not fill one batch of {batch_size}, and drop_last drops the rest")
    end = len(x) - len(x) % batch_size if drop_last else len(x)
    return [(x[i : i + batch_size], y[i : i + batch_size]) for i in range(0, end, batch_size)]


class Batches:
    """Random batches without end: each (x, y) holds `batch_size` windows of `context` tokens, shapes (B, T).

    The starts are drawn by the object's own Generator, so that nothing else (dropout, evaluation, sampling) changes
    them. With `stride` s only every s-th place is a start: s = sentence length keeps windows and sentences together.
    `state()` and `load_state()` continue a run where it stopped.

    >>> batches = Batches(np.arange(20), context=4, batch_size=2, seed=0)
    >>> x, y = next(batches)
    >>> x.shape, bool((y == x + 1).all())
    ((2, 4), True)
    """

    def __init__(self, ids: np.ndarray, context: int, batch_size: int, seed: int = 0, stride: int = 1):
        _check_batch_size(batch_size)
        self.x, self.y = windows(ids, context, stride)
        self.context = context
        self.batch_size = batch_size
        self._rng = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return self

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        chosen = self._rng.integers(len(self.x), size=self.batch_size)  # upper bound exclusive: every window can come
        return self.x[chosen], self.y[chosen]

    def state(self) -> dict:
        """Where the random sequence stands: plain names and numbers, fit for JSON."""
        return self._rng.bit_generator.state

    def load_state(self, state: dict) -> None:
        """Go on from a stored `state()`."""
        self._rng.bit_generator.state = state


def _row(ids: np.ndarray) -> np.ndarray:
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"ids must be one row, shape (N,), got shape {ids.shape}")
    if ids.size == 0:
        raise ValueError("the text is empty: 0 tokens give no window")
    if ids.dtype.kind not in "iu":
        raise ValueError(f"ids must be whole numbers, got {ids.dtype}")
    return ids.astype(np.int64, copy=False)


def _check_context(context: int) -> None:
    if context < 1:
        raise ValueError(f"context must be at least 1 token, got {context}")


def _check_length(ids: np.ndarray, context: int) -> None:
    if len(ids) < context + 1:
        raise ValueError(
            f"{len(ids)} tokens are too few for one window of context {context}: "
            f"with its target it needs at least {context + 1}"
        )


def _check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
