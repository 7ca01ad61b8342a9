"""Numbers into words, from data to accuracy: the named settings, the training, and what is measured afterwards.

recipe = NUMBERS_RECIPE
training, held_out = split_numbers()
model = recipe.model("numpy", seed=0)
history = recipe.train("numpy", model, training, seed=0)
exact_matches(model, held_out[5])
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .config import TransformerConfig
from .decoding import greedy_ids
from .text.numbers import BEGIN, DIGITS, END, WORDS, digits_of_words, encode_digits, encode_numbers, number_to_words
from .text.pairs import PADDING, PairBatches, shift
from .training import WarmupCosine, train

LONGEST = 10  # tokens to write: nine words and the end


@dataclass(frozen=True)
class NumbersRecipe:
    """What a run is made of: model, steps, optimiser. A track and a seed make it one run."""

    model_settings: dict = field(hash=False)  # of TransformerConfig, without the sizes of the vocabularies
    steps: int
    batch_size: int
    rate: float  # the highest learning rate, after the warm-up
    final_rate: float
    warmup: int
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    clip: float = 1.0

    def model(self, track: str, seed: int = 0):
        """A fresh Transformer of the track, "numpy" or "torch"; equal seeds give equal weights in both."""
        config = TransformerConfig(len(DIGITS), len(WORDS), **self.model_settings)
        return _track(track, "encoder_decoder").Transformer(config, seed)

    def train(self, track: str, model, training: Sequence[np.ndarray], seed: int = 0, steps=None, **options):
        """Train on these groups of numbers and return the History; `steps` ends early on the same schedule."""
        taught = _track(track, "encoder_decoder").TeacherForcing(model, PADDING)
        optimizer = _track(track, "optim").AdamW(
            taught.parameters(), self.rate, self.betas, weight_decay=self.weight_decay
        )
        batches = PairBatches(training, encode_numbers, self.batch_size, seed)
        schedule = WarmupCosine(self.rate, self.warmup, self.steps, self.final_rate)
        steps = self.steps if steps is None else steps
        return train(taught, optimizer, batches, steps, schedule=schedule, clip=self.clip, **options)


def _track(track, file):
    return importlib.import_module(f"course_lib.{track}_track.{file}")


def say_numbers(model, numbers: Iterable[int], batch_size: int = 256) -> list[str]:
    """What the model writes for each number, greedily: a list of texts.

    Errors: ValueError for a batch_size below 1.
    """
    numbers, said = list(numbers), []
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    for start in range(0, len(numbers), batch_size):
        source = encode_digits(numbers[start : start + batch_size])
        for ids in greedy_ids(model, source, BEGIN, END, LONGEST, source != PADDING):
            said.append(WORDS.decode(ids))
    return said


def exact_matches(model, numbers: Iterable[int]) -> float:
    """The share of numbers of which every word is right, written greedily. Errors: ValueError for no number."""
    numbers = list(numbers)
    if not numbers:
        raise ValueError("no numbers: the share of nothing has no value")
    said = say_numbers(model, numbers)
    return float(np.mean([words == number_to_words(number) for words, number in zip(said, numbers)]))


def cross_alignment(model, numbers: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """How well cross-attention points from each word to the digits that it comes from.

    The share of words whose largest weight is on one of its own digits (`digits_of_words`), over all words of all
    numbers: (each head (L, H), mean over the heads of each layer (L,)). The decoder is given the right words.
    """
    numbers = list(numbers)
    source, target = encode_numbers(numbers)
    inputs, _ = shift(target)
    right = np.zeros((*inputs.shape, source.shape[1]), bool)  # (B, T, S): is this digit one of this word's?
    for row, number in zip(right, numbers):
        for place, digits in enumerate(digits_of_words(number)):
            row[place, list(digits)] = True
    words = right.any(axis=-1)  # (B, T)
    with model.evaluating():
        model(source, inputs, source != PADDING, inputs != PADDING)
    weights = np.stack([np.asarray(layer.cross.weights) for layer in model.decoder.layers])  # (L, B, H, T, S)
    return _hits(weights, right[:, None], words), _hits(weights.mean(axis=2, keepdims=True), right[:, None], words)[
        :, 0
    ]


def _hits(weights, right, words):
    looked = weights.argmax(axis=-1)[..., None]  # (L, B, H, T, 1)
    right = np.broadcast_to(right, weights.shape)
    hit = np.take_along_axis(right, looked, axis=-1)[..., 0]  # (L, B, H, T)
    return (hit & words[:, None]).sum(axis=(1, 3)) / words.sum()


# Post-norm needs the warm-up. Tables that start small ("small") leave the positions visible beside the tokens, which
# are multiplied by √C: with "uniform" tables the same run gets next to no number of five digits right.
NUMBERS_RECIPE = NumbersRecipe(
    model_settings={"width": 64, "heads": 4, "layers": 2, "inner": 256, "dropout": 0.0, "maximum": 16},
    steps=800,
    batch_size=64,
    rate=2e-3,
    final_rate=2e-5,
    warmup=100,
)
