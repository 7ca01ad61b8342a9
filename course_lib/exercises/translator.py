"""A small translator to try mended functions in: how it trains, and what the padding of its source moves.

Such a function gives logits: ``function(model, source, inputs, padding)`` → a Tensor (B, T, V).
"""

import numpy as np

from ..config import TransformerConfig
from ..numpy_track import AdamW, Transformer
from ..numpy_track import functional as F
from ..text.numbers import DIGITS, WORDS, encode_numbers
from ..text.pairs import PADDING, shift

_SIZES = {"width": 16, "heads": 2, "layers": 1, "inner": 32, "maximum": 12}


def _small():
    return Transformer(TransformerConfig(len(DIGITS), len(WORDS), **_SIZES, dropout=0.0, dtype="float64"), seed=0)


def _batch():
    """(source (B, S), inputs (B, T), labels (B, T)) of numbers with one to four digits."""
    source, target = encode_numbers([7, 12, 40, 305, 860, 3407, 4, 19])
    return source, *shift(target)


def case(padding=PADDING):
    """(model, source, inputs, padding): a model and a batch in which this id fills up. It changes places with 0."""
    source, inputs, _ = _batch()
    exchange = {PADDING: padding, padding: PADDING}
    return _small(), *(np.vectorize(lambda i: exchange.get(i, i))(ids) for ids in (source, inputs)), padding


def at_words(logits, inputs, padding):
    """The numbers at real words, (places, V): what stands at padded places is nobody's business."""
    return logits.detach().numpy()[inputs != padding]


def losses(function, model, steps=60):
    """The losses of so many training steps with these logits."""
    source, inputs, labels = _batch()
    optimizer, values = AdamW(model.parameters(), 1e-2), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(function(model, source, inputs, PADDING), labels, ignore_index=PADDING)
        loss.backward()
        optimizer.step()
        values.append(float(loss.item()))
    return values


def padding_moves(function, model=None):
    """How far the logits move when every source gets two more places of padding behind it."""
    fresh, source, inputs, padding = case()
    longer = np.pad(source, ((0, 0), (0, 2)), constant_values=padding)
    one, other = (at_words(function(model or fresh, ids, inputs, padding), inputs, padding) for ids in (source, longer))
    return float(np.abs(one - other).max())


def gradients(function):
    """{name: gradient} of all parameters, for a random gradient of the logits at real words."""
    model, source, inputs, padding = case()
    out = function(model, source, inputs, padding)
    out.backward(np.random.default_rng(0).standard_normal(out.shape) * (inputs != padding)[..., None])
    return {name: p.grad for name, p in model.named_parameters().items()}
