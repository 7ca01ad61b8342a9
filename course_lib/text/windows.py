"""From one long row of ids to training examples: split, windows, batches."""

import math

import numpy as np


def split_by_position(ids, fraction=0.9, context_length=1):
    """Cut the ids (N,) in two by position: the first ``fraction`` is for training, the rest for validation.

    The text is cut before the windows are, so no window reaches across the cut. Raises ValueError if ``fraction`` is
    not between 0 and 1, or if a part is too short for one window of ``context_length`` tokens and its target.

    >>> train_ids, validation_ids = split_by_position(np.arange(100), 0.9, context_length=8)
    >>> len(train_ids), validation_ids.tolist()
    (90, [90, 91, 92, 93, 94, 95, 96, 97, 98, 99])
    """
    ids = _row(ids)
    _check_context(context_length)
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be between 0 and 1, not {fraction}")
    cut = math.floor(round(fraction * len(ids), 6))  # rounded, because 0.29 * 100 is 28.999999999999996
    parts = {"train": ids[:cut], "val": ids[cut:]}
    for name, part in parts.items():
        if len(part) < context_length + 1:
            raise ValueError(
                f"the {name} part of this text is too short: {len(part)} tokens (of {len(ids)}, cut at {fraction}), "
                f"it needs ≥{context_length + 1} for one window of {context_length} and its target"
            )
    return parts["train"], parts["val"]


def windows(ids, context_length, stride=1):
    """Return all windows of ``context_length`` tokens, one every ``stride`` tokens, and their targets, one token later.

    ``x[i] = ids[i·stride : i·stride + T]``, ``y[i] = ids[i·stride + 1 : i·stride + T + 1]``, both of shape (n, T) with
    ``n = (N − T − 1) // stride + 1``; with stride 1 that is N − T, since the last window needs one more token as its
    target. x and y are read-only views of the ids: overlapping windows cost no memory. Raises ValueError for a
    ``stride`` or ``context_length`` below 1, and for fewer than T + 1 ids.

    >>> x, y = windows(np.arange(8), context_length=4)
    >>> x.shape, x[-1].tolist(), y[-1].tolist()
    ((4, 4), [3, 4, 5, 6], [4, 5, 6, 7])
    """
    ids = _row(ids)
    _check_context(context_length)
    if stride < 1:
        raise ValueError(f"stride must be at least 1, not {stride}")
    _check_length(ids, context_length)
    both = np.lib.stride_tricks.sliding_window_view(ids, context_length + 1)[::stride]  # (N,) -> (n, T + 1)
    return both[:, :-1], both[:, 1:]


def sequential_batches(x, y, batch_size, drop_last=False):
    """Return the windows in order, ``batch_size`` at a time: a list of (x, y), each of shape (B, T).

    The last batch may be smaller; ``drop_last`` drops it. Raises ValueError if x and y differ in length, for a
    ``batch_size`` below 1, and if dropping would leave nothing.

    >>> x, y = windows(np.arange(10), context_length=4)
    >>> [len(batch) for batch, _ in sequential_batches(x, y, 4)]
    [4, 2]
    >>> len(sequential_batches(x, y, 4, drop_last=True))
    1
    """
    _check_batch_size(batch_size)
    if len(x) != len(y):
        raise ValueError(f"x and y must hold equally many windows, not {len(x)} and {len(y)}")
    if drop_last and len(x) < batch_size:
        raise ValueError(f"{len(x)} windows do not fill one batch of {batch_size}, and drop_last drops the rest")
    end = len(x) - len(x) % batch_size if drop_last else len(x)
    return [(x[i : i + batch_size], y[i : i + batch_size]) for i in range(0, end, batch_size)]


class Batches:
    """Endless random batches: each is (x, y), ``batch_size`` windows of ``context_length`` tokens, shapes (B, T).

    The starts are drawn from the object's own Generator, so that nothing else (dropout, evaluation, sampling) changes
    them. With ``stride`` s only every s-th position is a start: s = sentence length keeps windows and sentences
    aligned. ``state_dict()`` and ``load_state_dict()`` let a run resume where it stopped. Raises ValueError as
    ``windows`` does, and for a ``batch_size`` below 1.

    >>> batches = Batches(np.arange(20), context_length=4, batch_size=2, seed=0)
    >>> x, y = next(batches)
    >>> x.shape, bool((y == x + 1).all())
    ((2, 4), True)
    """

    def __init__(self, ids, context_length, batch_size, seed=0, stride=1):
        _check_batch_size(batch_size)
        self.x, self.y = windows(ids, context_length, stride)
        self.context_length = context_length
        self.batch_size = batch_size
        self._rng = np.random.default_rng(seed)

    def __repr__(self):
        return f"Batches: {self.batch_size} of {len(self.x):,} windows at a time, {self.context_length} tokens each"

    def __iter__(self):
        return self

    def __next__(self):
        chosen = self._rng.integers(len(self.x), size=self.batch_size)  # the upper bound is exclusive
        return self.x[chosen], self.y[chosen]

    def state_dict(self):
        """Return the state of the Generator: plain names and numbers, fit for JSON."""
        return self._rng.bit_generator.state

    def load_state_dict(self, state):
        """Continue the random sequence from a stored ``state_dict()``."""
        self._rng.bit_generator.state = state


def _row(ids):
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"ids must be one row of shape (N,), not of shape {ids.shape}")
    if ids.size == 0:
        raise ValueError("the text is empty: 0 tokens give no window")
    if ids.dtype.kind not in "iu":
        raise ValueError(f"ids must be whole numbers, not {ids.dtype}")
    return ids.astype(np.int64, copy=False)


def _check_context(context_length):
    if context_length < 1:
        raise ValueError(f"context_length must be at least 1 token, not {context_length}")


def _check_length(ids, context_length):
    if len(ids) < context_length + 1:
        raise ValueError(
            f"{len(ids)} tokens are too few for one window of {context_length}: "
            f"with its target it needs at least {context_length + 1}"
        )


def _check_batch_size(batch_size):
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
