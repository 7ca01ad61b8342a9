"""Exercise of notebook 12: heads that are switched off, and not on again."""

import functools

import numpy as np

from .. import interventions
from ..config import GPTConfig
from ..numpy_track import GPT
from . import compare, watch
from .bugs import losses, small_data
from .exercise import Mistake, exercise

_LAYERS, _HEADS = 2, 4


_TAKES = "loss takes a list of pairs (layer, head)"


@functools.cache
def _trained():
    """(model, its losses) of a small model with two layers."""
    model = GPT(GPTConfig(17, layers=_LAYERS, heads=_HEADS, dtype="float64", initial="scaled"), seed=1)
    return model, losses(model)


@functools.cache
def _loss_without(off):
    x, y = small_data()
    runs = zip(x[:6], y[:6])
    nats = []
    for row, target in runs:
        logits = interventions.run(_trained()[0], row, off=off).logits  # (T, V)
        exps = np.exp(logits - logits.max(axis=1, keepdims=True))
        nats += list(-np.log((exps / exps.sum(axis=1, keepdims=True))[np.arange(len(target)), target]))
    return float(np.mean(nats))


def _loss(off=()):
    """The loss of the trained model without these heads, pairs (layer, head)."""
    try:
        pairs = {(int(layer), int(head)) for layer, head in off}
    except TypeError:
        raise TypeError(f"{_TAKES}, not {off!r}") from None
    return _loss_without(tuple(sorted(pairs)))


def _each(value):
    """A wrong or right answer: ``value(loss, pairs so far, pair, all pairs)`` for each head, (L, H)."""

    def costs(loss, layers, heads):
        pairs = list(np.ndindex(layers, heads))
        values = [value(loss, pairs[: i + 1], pair, pairs) for i, pair in enumerate(pairs)]
        return np.array(values).reshape(layers, heads)

    return costs


_right = _each(lambda loss, past, one, every: loss([one]) - loss([]))
_STILL = "the heads before it are still off: make a new `off` for each head"
_MISTAKES = (
    Mistake(_STILL, _each(lambda loss, past, one, every: loss(past) - loss([]))),
    Mistake(_STILL, _each(lambda loss, past, one, every: loss([p for p in past if p[0] == one[0]]) - loss([]))),
    Mistake(_STILL, _each(lambda loss, past, one, every: loss(past) - loss(past[:-1]))),
    Mistake(
        "that is the loss without the head: take off the loss with all heads, loss([])",
        _each(lambda loss, past, one, every: loss([one])),
    ),
    Mistake(
        "the sign: what the loss grows by is the loss without the head, minus that with all",
        _each(lambda loss, past, one, every: loss([]) - loss([one])),
    ),
    Mistake("a ratio came: the difference is asked for", _each(lambda loss, past, one, every: loss([one]) / loss([]))),
    Mistake(
        "only this head is left on: it alone should be off",
        _each(lambda loss, past, one, every: loss([p for p in every if p != one]) - loss([])),
    ),
    Mistake(
        "the whole layer is off: it is one head at a time",
        _each(lambda loss, past, one, every: loss([p for p in every if p[0] == one[0]]) - loss([])),
    ),
    Mistake("no head is off", _each(lambda loss, past, one, every: 0.0)),
)


def _examine(function):
    fallen, want = _trained()[1], _right(_loss, _LAYERS, _HEADS)
    got = function(_loss, _LAYERS, _HEADS)
    if watch.untouched(got):
        return ...
    if compare.difference(got, want) is None:
        return None
    likely = next((m.message for m in _MISTAKES if compare.same(got, m.wrong(_loss, _LAYERS, _HEADS))), "")
    if not isinstance(got, np.ndarray) or got.shape != want.shape or got.dtype != want.dtype:
        return compare.difference(got, want), likely
    layer, head = np.unravel_index(np.argmax(~compare.close(got, want)), want.shape)
    return (
        f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: without head {head} of layer {layer} alone"
        f" it grows by {want[layer, head]:.3f}, and {got[layer, head]:.3f} came",
        likely,
    )


def _broken(loss, layers, heads):
    """By how much the loss grows without each head: (L, H). Somewhere a head is not switched on again."""
    costs, off = np.zeros((layers, heads)), []
    for layer in range(layers):
        for head in range(heads):
            off.append((layer, head))
            costs[layer, head] = loss(off) - loss([])
    return costs


@exercise(
    "12.5",
    "Find the bug: heads that stay off",
    minutes=8,
    difficulty="middle",
    task="""
What is each head worth? `loss(off)` is the loss of a trained model without the heads in `off`, a list of pairs (layer,
head), as `noun_loss` above. The model is good, and the first number is right. But the numbers grow and grow: even
a head that hardly matters seems to be worth a lot. Mend it.
""",
    hints=(
        "Print `off` in the loop. What stands in it at the second head?",
        "One head at a time: at each head, all others must be on.",
        "off = [(layer, head)] makes a new list for each head.",
    ),
    next_thought="Two heads that can stand in for each other: what does this measurement say about each of them?",
    broken=_broken,
    examine=_examine,
    mistakes=(
        *_MISTAKES,
        Mistake(
            "`loss` takes a *list* of pairs: loss([(layer, head)])",
            when=lambda got, want, case: any(words in str(got) for words in (_TAKES, "_loss()")),  # or two arguments
        ),
    ),
)
def head_costs(loss, layers, heads):
    """By how much the loss grows without each head, all others on: (L, H)."""
    costs = np.zeros((layers, heads))
    for layer in range(layers):
        for head in range(heads):
            costs[layer, head] = loss([(layer, head)]) - loss([])
    return costs
