"""Exercises of notebook 13: heads, scored and switched off."""

import functools

import numpy as np

from ..common.config import GPTConfig
from ..inference import interventions
from ..numpy_track import GPT
from . import compare, mending, watch, words
from .exercise import Mistake, arrays, exercise, question, varied


def _drawn_maps(rng):
    """Return attention weights (L, H, T, T) whose rows sum to 1, with a period below T."""
    cases = []
    for n, T in enumerate((2, 3, 7, 9)):
        exps = np.exp(rng.standard_normal((*rng.integers(1, 4, 2), T, T)))
        maps = exps / exps.sum(axis=-1, keepdims=True)
        cases.append((maps.astype("float32" if n % 2 else "float64"), int(rng.integers(1, T))))
    return cases


def _right_score(maps, back, first):
    cells = [maps[:, :, row, row - back] for row in range(first, maps.shape[-1])]
    return np.mean(cells, axis=0).astype(maps.dtype)


@exercise(
    "13.1",
    "The previous-token score",
    minutes=10,
    difficulty="medium",
    hints=(
        "Row 1 looks at column 0, row 2 at column 1, …: these cells lie on the diagonal below the main one.",
        "maps.diagonal(-1, axis1=2, axis2=3) takes it out of the last two axes: (L, H, T - 1).",
    ),
    next_thought="What score does a head get that looks equally at everything it may, with T tokens?",
    cases=lambda: [arrays(0, (2, 3, 4, 4)), arrays(1, (1, 2, 5, 5)), arrays(2, (2, 2, 3, 3), dtype="float32")],
    more=lambda rng: [(maps,) for maps, _ in _drawn_maps(rng)],
    right=lambda maps: _right_score(maps, 1, 1),
    mistakes=(
        Mistake(
            "that is how much a head looks at *itself*: one diagonal lower", "maps.diagonal(-1,", "maps.diagonal(0,"
        ),
        Mistake(
            "that diagonal lies above the main one: a row would look at the *next* token",
            "maps.diagonal(-1,",
            "maps.diagonal(1,",
        ),
        Mistake(
            "divided by T: only T - 1 rows have a token before them", "mean(axis=2)", "sum(axis=2) / maps.shape[-1]"
        ),
        Mistake("this is a sum: take the mean over the rows", "mean(axis=2)", "sum(axis=2)"),
        Mistake("one number for everything: each head has its own, (L, H)", "mean(axis=2)", "mean()"),
        Mistake(
            "the diagonal of the wrong axes: rows and columns are the last two, axis1=2 and axis2=3",
            "(-1, axis1=2, axis2=3).mean(axis=2)",
            "(-1).mean(axis=-1)",
        ),
    ),
)
def previous_token_score(maps):
    """Return the mean weight on the token just before, for each head: (L, H, T, T) -> (L, H)."""
    return maps.diagonal(-1, axis1=2, axis2=3).mean(axis=2)  # (L, H, T - 1) -> (L, H)


@exercise(
    "13.2",
    "The induction score",
    minutes=15,
    difficulty="harder",
    hints=(
        "At row q the same token was at q - period. Which position comes after that?",
        "queries = np.arange(period, T), and the columns are queries - period + 1.",
        "maps[:, :, queries, columns] takes one cell from each row: (L, H, number of rows).",
    ),
    next_thought="Why can a head in the *lowest* layer hardly have a high induction score?",
    cases=lambda: [
        (*arrays(0, (2, 3, 6, 6)), 3),
        (*arrays(1, (1, 2, 8, 8)), 5),
        (*arrays(2, (2, 2, 4, 4), dtype="float32"), 2),
        *varied(*arrays(3, (7, 1, 6, 6)), 2, by=[4]),
        (*arrays(4, (1, 1, 140, 140)), 60),
    ],
    more=_drawn_maps,
    right=lambda maps, period: _right_score(maps, period - 1, period),
    mistakes=(
        Mistake(
            "that is the same token itself: its *successor* is one position further",
            "queries - period + 1",
            "queries - period",
        ),
        Mistake(
            "one row too many: row period - 1 has no earlier occurrence, it looks at position 0 by chance",
            "np.arange(period, maps",
            "np.arange(period - 1, maps",
        ),
        Mistake(
            "that is the position before the same token: go one to the right, not to the left",
            "queries - period + 1",
            "queries - period - 1",
        ),
        Mistake(
            "the rows before `period` have no earlier occurrence: begin at row `period`",
            "np.arange(period, maps.shape[3])",
            "np.arange(maps.shape[3])",
        ),
        Mistake(
            "rows and columns are swapped: rows are queries, and they are further right in the text",
            "queries, queries - period + 1",
            "queries - period + 1, queries",
        ),
        Mistake("one number for everything: each head has its own, (L, H)", "mean(axis=2)", "mean()"),
        Mistake("this is a sum: take the mean over the rows", "mean(axis=2)", "sum(axis=2)"),
    ),
)
def induction_score(maps, period):
    """Return the mean weight on the successor of the same token, one period earlier: (L, H, T, T) -> (L, H)."""
    queries = np.arange(period, maps.shape[3])
    return maps[:, :, queries, queries - period + 1].mean(axis=2)  # (L, H, rows) -> (L, H)


def _right_off(W, head, H):
    kept = [np.zeros_like(part) if i == head else part for i, part in enumerate(np.split(W, H))]
    return np.concatenate(kept)


@exercise(
    "13.3",
    "Switch a head off",
    minutes=10,
    difficulty="medium",
    hints=(
        "context @ W multiplies column i of the context by *row* i of W.",
        "Which rows belong to the head? Those from head · D up to (head + 1) · D.",
        "W.copy() first: the model must be able to get its head back.",
    ),
    next_thought="The head is off, but its weights in the heatmap look as before. Why?",
    cases=lambda: [
        (*arrays(0, (6, 6)), 1, 3),
        (*arrays(1, (8, 8)), 0, 2),
        (*arrays(2, (6, 6), dtype="float32"), 1, 2),
        *varied(*arrays(3, (6, 6)), 1, 3, by=[2, 6]),
    ],
    more=lambda rng: [
        (rng.standard_normal((D * H, D * H)).astype(dtype), int(rng.integers(H)), H)
        for D, H in ((1, 3), (3, 1), (2, 4), (4, 2))
        for dtype in ("float64", "float32")
    ],
    right=_right_off,
    mistakes=(
        Mistake(
            "these are the columns: they belong to what comes *out*. A head comes in at its rows",
            "off[head * D",
            "off[:, head * D",
        ),
        Mistake("every H-th row: the rows of a head are adjacent", "off[head * D : (head + 1) * D]", "off[head::H]"),
        Mistake("that is one row: a head has D = C / H of them", "off[head * D : (head + 1) * D]", "off[head]"),
        Mistake("H rows: a head has D = C / H of them", "D = len(W) // H", "D = H"),
        Mistake("that is the next head: heads count from 0", "head * D : (head + 1)", "(head + 1) * D : (head + 2)"),
        Mistake(
            "the rows are gone: the shape must stay, with zeros in their place",
            "return off",
            "return np.delete(W, slice(head * D, (head + 1) * D), axis=0)",
        ),
    ),
)
def switch_off(W, head, H):
    """Return the output matrix without this head of H: (C, C) -> (C, C)."""
    D = len(W) // H
    off = W.copy()
    off[head * D : (head + 1) * D] = 0
    return off


where_heads_look = question(
    "13.4",
    "Where does it look?",
    minutes=4,
    difficulty="easy",
    hints=(
        "A previous-token head looks one position to the left, whatever is there.",
        "An induction head looks for the position whose *note* says “a B came before me”.",
    ),
    next_thought="What does the induction head bring back from there, and what will the model say next?",
    value=[4, 2],
    answer="[4, 2]: just before position 5, and at the C, which came after the first B.",
    mistakes=(
        Mistake(
            "that is the earlier B itself: the head reads what came *after* it",
            value=[None, 1],
        ),
        Mistake("positions count from 0", value=[5, 3]),
        Mistake("the previous token is one position to the left of 5", value=[5, None]),
        Mistake(
            "that is what came before the earlier B: the head reads what came *after* it",
            value=[None, 0],
        ),
        Mistake("the two are swapped: the previous-token head comes first", value=[2, 4]),
    ),
)


_LAYERS, _HEADS = 2, 4
_TAKES = "loss takes a list of pairs (layer, head)"


@functools.cache
def _trained():
    """Return (model, its losses): a small model with two layers, trained."""
    model = GPT(GPTConfig(17, layers=_LAYERS, heads=_HEADS, dtype="float64", init="scaled"), seed=1)
    return model, mending.losses(model)


@functools.cache
def _loss_without(off):
    x, y = mending.small_data()
    runs = zip(x[:6], y[:6])
    nats = []
    for row, target in runs:
        logits = interventions.run(_trained()[0], row, off=off).logits  # (T, V)
        exps = np.exp(logits - logits.max(axis=1, keepdims=True))
        nats += list(-np.log((exps / exps.sum(axis=1, keepdims=True))[np.arange(len(target)), target]))
    return float(np.mean(nats))


def _loss(off=()):
    """Return the loss of the trained model without these heads, pairs (layer, head)."""
    try:
        pairs = {(int(layer), int(head)) for layer, head in off}
    except TypeError:
        raise TypeError(f"{_TAKES}, not {off!r}") from None
    return _loss_without(tuple(sorted(pairs)))


def _made_up(off=()):
    """Return a loss of 3 layers of 2 heads, some of which are better off; two in one layer stand in for each other."""
    off = {(int(layer), int(head)) for layer, head in off}
    both = sum({(layer, 0), (layer, 1)} <= off for layer in range(3))
    return 2.0 + sum(0.3 * layer - 0.5 * head + 0.1 for layer, head in off) + 0.7 * both


def _turned_over(off=()):
    return 5.0 - _made_up(off)


def _right_costs(loss, layers, heads):
    return np.array([[loss([(layer, head)]) - loss([]) for head in range(heads)] for layer in range(layers)])


def _examine_costs(function):
    fallen, want = _trained()[1], _right_costs(_loss, _LAYERS, _HEADS)
    got = function(_loss, _LAYERS, _HEADS)
    if watch.untouched(got):
        return ...
    if got is None:
        return "it returned None", "the `return` is missing"
    if compare.difference(got, want) is None:
        return _other_costs(function, got, want)
    wrong = head_costs.wrong_functions()
    likely = next((message for message, f in wrong if compare.same(got, f(_loss, _LAYERS, _HEADS))), "")
    if not compare.is_array(got) or got.shape != want.shape or got.dtype != want.dtype:
        return compare.difference(got, want), likely
    layer, head = np.unravel_index(np.argmax(~compare.close(got, want)), want.shape)
    mine, right = words.two_numbers(got[layer, head], want[layer, head])
    return (
        f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: without head {head} of layer {layer} alone"
        f" it grows by {right}, not by {mine}",
        likely,
    )


def _other_costs(function, got, want):
    """Return what is wrong with another model, or at a second call, where all is well at the first."""
    if problem := compare.difference(function(_loss, _LAYERS, _HEADS), want):
        return f"called again with the same arguments, it gives something else: {problem}", watch.LEFT_OVER
    if problem := compare.difference(function(_made_up, 3, 2), _right_costs(_made_up, 3, 2)):
        return f"right for one model, but not for one of 3 layers of 2 heads, where some heads do harm: {problem}"
    if problem := compare.difference(function(_turned_over, 3, 2), _right_costs(_turned_over, 3, 2)):
        return f"right for one model, but not for another one of the same sizes: {problem}", watch.LEFT_OVER
    if compare.difference(got, want):
        return "a result changes when the function is called again", watch.ONE_ARRAY
    return None


def _costs_broken(loss, layers, heads):
    """Measure by how much the loss grows without each head: (L, H). Somewhere a head is not switched on again."""
    costs, off = np.zeros((layers, heads)), []
    for layer in range(layers):
        for head in range(heads):
            off.append((layer, head))
            costs[layer, head] = loss(off) - loss([])
    return costs


_OFF = "loss([(layer, head)])"


@exercise(
    "13.5",
    "Find the bug: heads that stay off",
    minutes=8,
    difficulty="medium",
    hints=(
        "Print `off` in the loop. What does it contain at the second head?",
        "One head at a time: at each head, all others must be on.",
        "off = [(layer, head)] makes a new list for each head.",
    ),
    next_thought="Two heads that can stand in for each other: what does this measurement say about each of them?",
    broken=_costs_broken,
    examine=_examine_costs,
    mistakes=(
        Mistake(
            "the heads before it are still off: make a new `off` for each head",
            _OFF,
            "loss([(i, j) for i, j in np.ndindex(layers, heads) if (i, j) <= (layer, head)])",
        ),
        Mistake("that is the loss without the head: subtract the loss with all heads, loss([])", " - loss([])", ""),
        Mistake(
            "the sign: the loss grows by the loss without the head, minus that with all",
            f"{_OFF} - loss([])",
            f"loss([]) - {_OFF}",
        ),
        Mistake(
            "only this head is left on: it alone should be off",
            _OFF,
            "loss([pair for pair in np.ndindex(layers, heads) if pair != (layer, head)])",
        ),
        Mistake("the whole layer is off: it is one head at a time", _OFF, "loss([(layer, i) for i in range(heads)])"),
        Mistake(
            "`loss` takes a *list* of pairs: loss([(layer, head)])",
            when=lambda got, want, case: any(words in str(got) for words in (_TAKES, "_loss()")),  # or two arguments
        ),
    ),
)
def head_costs(loss, layers, heads):
    """Measure by how much the loss grows without each head, all others on: (L, H)."""
    costs = np.zeros((layers, heads))
    for layer in range(layers):
        for head in range(heads):
            costs[layer, head] = loss([(layer, head)]) - loss([])
    return costs
