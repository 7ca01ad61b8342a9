"""Pairs of sequences for an encoder–decoder: padded to one length, shifted, and drawn in random batches.

Padding is id 0 of both vocabularies, a separate token that never occurs in text, so ``ids != PADDING`` is the mask of
real tokens.
"""

import numpy as np

from ..common.checks import IGNORED

PADDING = 0


def pad(rows):
    """Return lists of ids as one array (B, longest); short rows are padded with PADDING at the end.

    Raises ValueError if there are no rows, or one without ids.

    >>> pad([[5, 6, 7], [8]]).tolist()
    [[5, 6, 7], [8, 0, 0]]
    """
    lengths = [len(row) for row in rows]
    if not lengths or min(lengths) == 0:
        raise ValueError(f"padding needs rows with at least one id each, not rows of {lengths[:10]} ids")
    out = np.full((len(rows), max(lengths)), PADDING)
    for filled, row in zip(out, rows):
        filled[: len(row)] = row
    return out


def shift(target):
    """Return what the decoder is given and what it must predict: (B, T + 1) -> inputs (B, T) and labels (B, T).

    The inputs leave out the last id and the labels the first, so at each position the label is the next id. Given the
    label itself, a decoder would learn to copy it. Raises ValueError for rows of fewer than 2 ids.

    >>> [part.tolist() for part in shift(np.array([[1, 8, 9, 2], [1, 7, 2, 0]]))]
    [[[1, 8, 9], [1, 7, 2]], [[8, 9, 2], [7, 2, 0]]]
    """
    target = np.asarray(target)
    if target.ndim != 2 or target.shape[1] < 2:
        raise ValueError(
            f"targets must have shape (B, T) with at least 2 ids per row, begin and one more; not {target.shape}"
        )
    return target[:, :-1], target[:, 1:]


def ignore_padding(labels):
    """Return the labels with -100 in place of padding: no loss counts it, and training and evaluation count alike.

    >>> ignore_padding(np.array([[8, 9, 2], [7, 2, 0]])).tolist()
    [[8, 9, 2], [7, 2, -100]]
    """
    return np.where(np.asarray(labels) == PADDING, IGNORED, labels)


class PairBatches:
    """Endless random batches: each is ((source, inputs), labels), arrays of shapes (B, S), (B, T) and (B, T).

    Labels that do not count, the padding, are -100.

    ``groups`` are arrays of examples; every group is drawn equally often, whatever its size, so that rare kinds are
    learned too. ``encode(examples)`` gives their padded (source, target). The object draws from its own Generator;
    ``state_dict()`` and ``load_state_dict()`` let a run resume where it stopped.

    Raises ValueError if there are no groups or one without examples, or for a ``batch_size`` below 1.
    """

    def __init__(self, groups, encode, batch_size, seed=0):
        sizes = [len(group) for group in groups]
        if not sizes or min(sizes) == 0:
            raise ValueError(f"every group needs at least one example, not groups of {sizes}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        self.encode, self.batch_size = encode, batch_size
        self._examples, self._sizes = np.concatenate(groups), np.array(sizes)
        self._starts = np.cumsum(sizes) - self._sizes
        self._rng = np.random.default_rng(seed)

    def __repr__(self):
        return f"PairBatches: {self.batch_size} of {len(self._examples):,} pairs at a time"

    def __iter__(self):
        return self

    def __next__(self):
        group = self._rng.integers(len(self._sizes), size=self.batch_size)
        chosen = self._starts[group] + self._rng.integers(self._sizes[group])
        source, target = self.encode(self._examples[chosen])
        inputs, labels = shift(target)
        return (source, inputs), ignore_padding(labels)

    def state_dict(self):
        """Return the state of the Generator: plain names and numbers, fit for JSON."""
        return self._rng.bit_generator.state

    def load_state_dict(self, state):
        """Continue the random sequence from a stored ``state_dict()``."""
        self._rng.bit_generator.state = state
