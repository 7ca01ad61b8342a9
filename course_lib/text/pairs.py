"""Pairs of sequences for an encoder–decoder: padded to one length, shifted, and drawn in random batches.

Padding is the id 0 of both vocabularies, a token of its own that no text contains; so `ids != PADDING` is the mask of
real tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

PADDING = 0


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Rows of ids as one array (B, longest), short rows filled up with PADDING at the end.

    Errors: ValueError when there is no row, or one without any id.

    >>> pad([[5, 6, 7], [8]]).tolist()
    [[5, 6, 7], [8, 0, 0]]
    """
    lengths = [len(row) for row in rows]
    if not lengths or min(lengths) == 0:
        raise ValueError(f"padding needs rows with at least one id each, got rows of {lengths[:10]} ids")
    out = np.full((len(rows), max(lengths)), PADDING)
    for filled, row in zip(out, rows):
        filled[: len(row)] = row
    return out


def shift(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the decoder is given and what it is asked for: (B, T + 1) → inputs (B, T) and labels (B, T).

    The inputs leave out the last id and the labels the first, so at each place the label is the next id. Given the
    label itself, a decoder would learn to copy it.
    Errors: ValueError for rows of fewer than 2 ids.

    >>> [part.tolist() for part in shift(np.array([[1, 8, 9, 2], [1, 7, 2, 0]]))]
    [[[1, 8, 9], [1, 7, 2]], [[8, 9, 2], [7, 2, 0]]]
    """
    target = np.asarray(target)
    if target.ndim != 2 or target.shape[1] < 2:
        raise ValueError(f"targets have shape (B, T) with at least 2 ids, a begin and one more; got {target.shape}")
    return target[:, :-1], target[:, 1:]


class PairBatches:
    """Random batches without end: each is ((source, inputs), labels), arrays (B, S), (B, T), (B, T).

    `groups` are lists of examples; every group is drawn from equally often, however many examples it has, so that rare
    kinds are learnt too. `encode(examples)` gives their padded (source, target). The object's own Generator draws, and
    `state()` and `load_state()` continue a run where it stopped.
    Errors: ValueError when there is no group, or one without examples, or for a batch_size below 1.
    """

    def __init__(self, groups: Sequence[np.ndarray], encode: Callable, batch_size: int, seed: int = 0):
        sizes = [len(group) for group in groups]
        if not sizes or min(sizes) == 0:
            raise ValueError(f"every group needs at least one example, got groups of {sizes}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.encode, self.batch_size = encode, batch_size
        self._examples, self._sizes = np.concatenate(groups), np.array(sizes)
        self._starts = np.cumsum(sizes) - self._sizes
        self._rng = np.random.default_rng(seed)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        group = self._rng.integers(len(self._sizes), size=self.batch_size)
        chosen = self._starts[group] + self._rng.integers(self._sizes[group])
        source, target = self.encode(self._examples[chosen])
        inputs, labels = shift(target)
        return (source, inputs), labels

    def state(self) -> dict:
        """Where the random sequence stands: plain names and numbers, fit for JSON."""
        return self._rng.bit_generator.state

    def load_state(self, state: dict) -> None:
        """Go on from a stored `state()`."""
        self._rng.bit_generator.state = state
