"""Numbers into words, from data to accuracy: the named settings, the training, and the measurements.

recipe = NUMBERS_RECIPE
training, held_out = split_numbers()
model = recipe.model("numpy", seed=0)
history = recipe.train("numpy", model, training, seed=0)
exact_matches(model, held_out[5])
"""

from dataclasses import dataclass, field

import numpy as np

from .. import get_track
from ..common.config import TransformerConfig
from ..inference.search import greedy_ids
from ..text.numbers import BEGIN, DIGITS, END, WORDS, digits_of_words, encode_digits, encode_numbers, number_to_words
from ..text.pairs import PADDING, PairBatches, shift
from ..training import WarmupCosine, train

LONGEST = 10  # tokens of an answer: nine words and the end
BATCH_SIZE = 256  # numbers decoded at once


@dataclass(frozen=True)
class NumbersRecipe:
    """The settings of a run: model, steps, optimiser. A track and a seed make it one particular run."""

    model_settings: dict = field(hash=False)  # of TransformerConfig, without the vocabulary sizes
    steps: int
    batch_size: int
    lr: float  # the highest learning rate, after the warm-up
    min_lr: float
    warmup_steps: int
    betas: tuple = (0.9, 0.98)
    weight_decay: float = 0.0
    clip: float = 1.0

    def model(self, track, seed=0):
        """Return a new Transformer of the track, "numpy" or "torch"; equal seeds give equal weights in both."""
        config = TransformerConfig(len(DIGITS), len(WORDS), **self.model_settings)
        return get_track(track).Transformer(config, seed)

    def train(self, track, model, training, seed=0, steps=None, **options):
        """Train on ``training``, a list of arrays of numbers, and return the History.

        ``steps`` ends early on the same schedule; ``options`` go to ``course_lib.training.train``.
        """
        track = get_track(track)
        taught = track.TeacherForcing(model, PADDING)
        optimizer = track.AdamW(taught.parameters(), self.lr, self.betas, weight_decay=self.weight_decay)
        batches = PairBatches(training, encode_numbers, self.batch_size, seed)
        schedule = WarmupCosine(self.lr, self.warmup_steps, self.steps, self.min_lr)
        steps = self.steps if steps is None else steps
        return train(taught, optimizer, batches, steps, schedule=schedule, clip=self.clip, **options)


def say_numbers(model, numbers):
    """Return what the model writes for each number, decoded greedily: a list of texts."""
    numbers, said = list(numbers), []
    for start in range(0, len(numbers), BATCH_SIZE):
        source = encode_digits(numbers[start : start + BATCH_SIZE])
        for ids in greedy_ids(model, source, BEGIN, END, LONGEST, source != PADDING):
            said.append(WORDS.decode(ids))
    return said


def exact_matches(model, numbers):
    """Return the fraction of numbers of which every word is right, decoded greedily.

    Raises ValueError if there are no numbers.
    """
    numbers = list(numbers)
    if not numbers:
        raise ValueError("no numbers: at least 1 is needed")
    said = say_numbers(model, numbers)
    return float(np.mean([words == number_to_words(number) for words, number in zip(said, numbers)]))


def cross_alignment(model, numbers):
    """Return how well cross-attention points from each word to the digits it comes from.

    It is the fraction of words, over all numbers, whose largest weight is on one of their own digits
    (``digits_of_words``): (of each head (L, H), of the mean over the heads of each layer (L,)). The decoder is given
    the right words.
    """
    numbers = list(numbers)
    source, target = encode_numbers(numbers)
    inputs, _ = shift(target)
    right = np.zeros((*inputs.shape, source.shape[1]), bool)  # (B, T, S): is this digit one of this word's?
    for row, number in zip(right, numbers):
        for position, digits in enumerate(digits_of_words(number)):
            row[position, list(digits)] = True
    with model.evaluating():
        model(source, inputs, source != PADDING, inputs != PADDING)
    weights = np.stack([np.asarray(layer.cross.weights) for layer in model.decoder.layers])  # (L, B, H, T, S)
    return _hits(weights, right), _hits(weights.mean(axis=2, keepdims=True), right)[:, 0]


def _hits(weights, right):
    """Return the fraction of words whose largest weight hits: (L, B, H, T, S) and (B, T, S) -> (L, H)."""
    words = right.any(axis=-1)  # (B, T)
    largest = weights.argmax(axis=-1)[..., None]  # (L, B, H, T, 1)
    hit = np.take_along_axis(np.broadcast_to(right[:, None], weights.shape), largest, axis=-1)[..., 0]  # (L, B, H, T)
    return (hit & words[:, None]).sum(axis=(1, 3)) / words.sum()


# Post-norm needs the warm-up. Token tables that start small leave the positions visible beside the tokens, which are
# multiplied by √C: with "uniform" tables the same run gets almost no number of five digits right.
NUMBERS_RECIPE = NumbersRecipe(
    model_settings={"width": 64, "heads": 4, "layers": 2, "d_ff": 256, "dropout": 0.0, "context_length": 16},
    steps=800,
    batch_size=64,
    lr=2e-3,
    min_lr=2e-5,
    warmup_steps=100,
)
