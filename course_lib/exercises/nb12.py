"""Exercises of notebook 12: sampling and the cache."""

import math

import numpy as np

from ..inference.sampling import next_probabilities
from ..numpy_track import Tensor
from ..numpy_track import attention as library_attention
from ..numpy_track import functional as F
from .exercise import ATTENTION, SOFTMAX, Mistake, arrays, drawn, exercise, question, varied


def _right_top_k(logits, k):
    kept = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:k]  # slow and obvious
    return np.array([x if i in kept else -np.inf for i, x in enumerate(logits)], logits.dtype)


def _drawn_logits(rng):
    """Return logits, many of them equal or nearly so, large and small, and how many to keep, from 1 to more than V."""
    cases = []
    for dtype, step in (("float64", 1e-9), ("float32", 1e-6)):
        for V, scale in ((1, 1), (5, 1e-6), (65, 1), (65, 1e3), (200, 1)):
            logits = rng.integers(-3, 3, V) * scale
            cases.append((logits.astype(dtype), int(rng.integers(1, V + 3))))
        cases.append((rng.integers(-3, 3, 1500).astype(dtype), 1499))
        cases.append(((2 + step * rng.permutation(9)).astype(dtype), int(rng.integers(2, 8))))
    return cases


@exercise(
    "12.1",
    "The top-k filter",
    minutes=12,
    difficulty="medium",
    hints=(
        "You need the indices of the k largest: np.argsort sorts indices by value, smallest first.",
        "np.argsort(-logits, kind='stable') has the largest first, and of equal ones the earlier.",
        "Start from np.full_like(logits, -np.inf) and fill in the k indices.",
    ),
    next_thought="What is top-k with k = 1? And what does top-k do when the model is sure, and when it is not?",
    cases=lambda: [
        (np.array([1.0, 4.0, 2.0, 3.0]), 2),
        (*arrays(0, (6,)), 1),
        (np.array([2.0, 5.0, 5.0, 5.0, 1.0]), 2),
        (np.array([3.0, 1.0, 2.0]), 3),
        (np.array([3.0, 1.0, 2.0]), 10),
        (*arrays(1, (5,), dtype="float32"), 3),
        *varied(*arrays(2, (4,)), 2, by=[3]),
    ],
    more=_drawn_logits,
    right=_right_top_k,
    forbids=("next_probabilities", "topk"),
    mistakes=(
        Mistake("the k smallest were kept", "argsort(-logits", "argsort(logits"),
        Mistake("the others are 0, to which softmax still gives a share: use -∞", "-np.inf", "0"),
        Mistake("the logits moved: each must stay at its index", "return filtered", "return logits[kept]"),
        Mistake(
            "equal logits at the limit are all kept, so more than k stay",
            "filtered[kept] = logits[kept]",
            "return np.where(logits >= logits[kept[-1]], logits, filtered)",
        ),
        Mistake(
            "of equal logits the later was kept: the earlier stays. A stable sort of -logits does it",
            'np.argsort(-logits, kind="stable")',
            'np.argsort(logits, kind="stable")[::-1]',
        ),
        Mistake(
            "`k` may be larger than V: use min(k, V)",
            when=lambda got, want, case: isinstance(got, Exception) and case[1] > len(case[0]),
        ),
    ),
)
def top_k_filter(logits, k):
    """Return the k largest logits at their indices, -∞ elsewhere: (V,) -> (V,)."""
    kept = np.argsort(-logits, kind="stable")[:k]  # indices of the k largest
    filtered = np.full_like(logits, -np.inf)
    filtered[kept] = logits[kept]
    return filtered


@exercise(
    "12.2",
    "Temperature",
    minutes=10,
    difficulty="medium",
    hints=(
        "Two cases: temperature 0 has no division. np.argmax finds the largest, and of equal ones the first.",
        "Otherwise subtract the largest logit, *then* divide by the temperature, then softmax.",
    ),
    next_thought="What do the probabilities become when the temperature grows without limit?",
    cases=lambda: [
        (*arrays(0, (5,)), 1.0),
        (*arrays(1, (5,)), 0.5),
        (np.array([1.0, 3.0, 2.0]), 2.0),
        (np.array([1.0, 3.0, 3.0, 2.0]), 0),
        (np.array([1.0, 3.0, 2.0]), 1e-6),
        (np.array([-3.0, -1.0, -2.0]), 1e-6),
    ],
    more=lambda rng: [
        (*drawn(rng, "v", turn, scale=4), temperature)
        for turn in range(4)
        for temperature in (0, 1e-6, float(rng.uniform(0.1, 3)))
    ],
    right=lambda logits, temperature: next_probabilities(logits, temperature).astype(logits.dtype),
    forbids=("next_probabilities", *SOFTMAX),
    mistakes=(
        Mistake("the temperature was not used", " / temperature", ""),
        Mistake("the logits are multiplied by the temperature: divide", "/ temperature", "* temperature"),
        Mistake("not yet divided by the sum", "return exps / exps.sum()", "return exps"),
        Mistake(
            "temperature 0 needs a case of its own: there is nothing to divide by",
            when=lambda got, want, case: case[1] == 0 and (isinstance(got, ZeroDivisionError) or np.isnan(got).any()),
        ),
        Mistake(
            "of equal logits only the first gets the 1",
            when=lambda got, want, case: case[1] == 0 and np.array_equal(got > 0, case[0] == case[0].max()),
        ),
        Mistake(
            "`exp` overflows at a tiny temperature: subtract the largest logit before dividing",
            "logits - logits.max()",
            "logits",
        ),
    ),
)
def probabilities_at(logits, temperature):
    """Return the probabilities of the next token: logits (V,) -> (V,), which sum to 1."""
    if temperature == 0:
        return (np.arange(len(logits)) == logits.argmax()).astype(logits.dtype)
    exps = np.exp((logits - logits.max()) / temperature)
    return exps / exps.sum()


def _drawn_probabilities(rng):
    """Return probabilities in whole 64ths, of which many are equal, and limits p on and between these."""
    return [
        ((rng.multinomial(64, np.full(V, 1 / V)) / 64).astype(dtype), float(rng.integers(1, 129) / 128))
        for V in (1, 3, 20, 65, 65)
        for dtype in ("float64", "float32")
    ]


def _right_top_p(probabilities, p):
    order = sorted(range(len(probabilities)), key=lambda i: (-probabilities[i], i))  # slow and obvious
    kept, total = np.zeros_like(probabilities), 0.0
    for i in order:
        if total < p:
            kept[i] = probabilities[i]
        total += probabilities[i]
    return kept / kept.sum()


@exercise(
    "12.3",
    "Top-p",
    minutes=15,
    difficulty="harder",
    hints=(
        "order = np.argsort(-probabilities, kind='stable') has the likeliest first.",
        "np.cumsum(probabilities[order]) is what the tokens up to each have together. Without the token itself it is"
        " what the likelier ones have: as long as that is below p, the token stays.",
        "Start from zeros, fill in the indices order[before < p], then divide by the sum.",
    ),
    next_thought="How many tokens does top-p keep when the model is sure, and how many when it is not? And top-k?",
    cases=lambda: [
        (np.array([0.1, 0.5, 0.15, 0.25]), 0.7),
        (np.array([0.25, 0.125, 0.5, 0.125]), 0.5),
        (np.array([0.125, 0.5, 0.125, 0.25]), 0.8),
        (np.array([0.25, 0.25, 0.5]), 1.0),
        *varied(np.array([0.2, 0.7, 0.1]), 0.1, by=[0.8]),
    ],
    more=_drawn_probabilities,
    right=_right_top_p,
    forbids=("next_probabilities",),
    mistakes=(
        Mistake(
            "the token that crosses the limit was dropped: it stays, so that at least p is kept",
            " - probabilities[order]",
            "",
        ),
        Mistake(
            "one token too many: when the likelier ones have reached p, nothing more is kept",
            "before < p",
            "before <= p",
        ),
        Mistake(
            "equal ones at the limit are all kept: of equally likely ones only the earlier stay",
            "kept[indices] = probabilities[indices]",
            "kept = np.where(probabilities >= probabilities[indices[-1]], probabilities, 0)",
        ),
        Mistake("what is left does not sum to 1: divide by its sum", "return kept / kept.sum()", "return kept"),
        Mistake(
            "the *least* likely were kept: sort by -probabilities", "argsort(-probabilities", "argsort(probabilities"
        ),
        Mistake(
            "the tokens have moved: each must stay at its index",
            "return kept / kept.sum()",
            "return np.sort(kept / kept.sum())[::-1]",
        ),
        Mistake(
            "the tokens have moved: what was found in sorted order must go back to its index",
            "return kept / kept.sum()",
            "return np.sort(kept / kept.sum())[::-1][order]",
        ),
        Mistake(
            "of equally likely tokens the earlier stays: a stable sort does it",
            'np.argsort(-probabilities, kind="stable")',
            'np.argsort(probabilities, kind="stable")[::-1]',
        ),
    ),
)
def top_p(probabilities, p):
    """Return the likeliest tokens that together have at least p, 0 elsewhere: (V,) -> (V,), sum 1."""
    order = np.argsort(-probabilities, kind="stable")  # indices, the likeliest first
    before = np.cumsum(probabilities[order]) - probabilities[order]  # what the likelier ones have already
    kept = np.zeros_like(probabilities)
    indices = order[before < p]
    kept[indices] = probabilities[indices]
    return kept / kept.sum()


def _right_step(query, key, value, keys, values):
    keys, values = np.vstack([keys, key]), np.vstack([values, value])
    context, _ = library_attention(Tensor(query[None]), Tensor(keys), Tensor(values))
    return context.data[0], keys, values


@exercise(
    "12.4",
    "One step with a cache",
    minutes=15,
    difficulty="medium",
    hints=(
        "First the cache: np.vstack([keys, key]) puts the new row after the others. The same for the values.",
        "The new position may look at itself, so its own key is among those that are compared.",
        "weights = softmax(keys @ query / √D), one number for each of the S + 1 positions; context = weights @ values.",
    ),
    next_thought="Why are the old queries not kept? And why would this be wrong without the causal mask?",
    cases=lambda: [
        arrays(0, (4,), (4,), (4,), (3, 4), (3, 4)),
        arrays(1, (3,), (3,), (3,), (1, 3), (1, 3)),
        arrays(2, (2,), (2,), (2,), (0, 2), (0, 2)),
        arrays(3, (2,), (2,), (2,), (4, 2), (4, 2), dtype="float32"),
        tuple(x * 100 for x in arrays(4, (3,), (3,), (3,), (2, 3), (2, 3))),
        # all scores far below 0, and the largest of them last, then first
        (np.array([3e3]), np.array([-1.0]), np.array([3.0]), np.array([[-3.0], [-2.0]]), np.array([[1.0], [2.0]])),
        (np.array([3e3]), np.array([-3.0]), np.array([3.0]), np.array([[-1.0], [-2.0]]), np.array([[1.0], [2.0]])),
    ],
    more=lambda rng: [
        (query, key, value, keys[1:], values[1:])  # sometimes none is left
        for n in range(6)
        for query, key, value, keys, values in [drawn(rng, "d d d sd sd", n, (1, 10)[n % 2])]
    ],
    right=_right_step,
    forbids=(*ATTENTION, *SOFTMAX, "KeyValueCache"),
    mistakes=(
        Mistake(
            "the new position does not look at itself: append its key and value first",
            "    exps =",
            "    scores[-1] = -np.inf\n    exps =",
        ),
        Mistake(
            "the new rows come first: the cache is in the order of the text",
            "[keys, key]), np.vstack([values, value])",
            "[key, keys]), np.vstack([value, values])",
        ),
        Mistake(
            "the new row is missing from the cache that is returned",
            "@ values, keys, values",
            "@ values, keys[:-1], values[:-1]",
        ),
        Mistake("the scale is missing: divide the scores by √D", " / math.sqrt(len(query))", ""),
        Mistake("the key is not a query: compare `query` with the keys", "keys @ query", "keys @ key"),
        Mistake("`exp` overflows: subtract the largest score first", "scores - scores.max()", "scores"),
    ),
)
def cache_step(query, key, value, keys, values):
    """Return the context of a new position, and the cache with it: (D,), (S + 1, D), (S + 1, D)."""
    keys, values = np.vstack([keys, key]), np.vstack([values, value])  # (S, D) -> (S + 1, D)
    scores = keys @ query / math.sqrt(len(query))  # (S + 1,)
    exps = np.exp(scores - scores.max())
    return exps / exps.sum() @ values, keys, values


_NUMBERS = 2 * 12 * 1024 * 768


cache_size = question(
    "12.5",
    "How large is a cache?",
    minutes=5,
    difficulty="easy",
    hints=(
        "Each layer keeps a key and a value for each position. All heads together have C numbers for each.",
        "A float32 has four bytes.",
    ),
    next_thought="GPT-2 has 124 million weights. How many texts at once make the cache larger than these?",
    value=[_NUMBERS, 75.5],
    digits=1,
    answer="[18874368, 75.5]: 2 · 12 · 1024 · 768 numbers of four bytes.",
    mistakes=(
        Mistake("keys *and* values: two for each position", value=[_NUMBERS / 2, round(_NUMBERS / 2 * 4e-6, 1)]),
        Mistake(
            "that is one layer: each of the twelve has its own", value=[_NUMBERS / 12, round(_NUMBERS / 12 * 4e-6, 1)]
        ),
        Mistake(
            "the heads share the width: all of them together have 768 numbers",
            value=[_NUMBERS * 12, round(_NUMBERS * 12 * 4e-6, 1)],
        ),
        Mistake("a float32 has four bytes, not eight", value=[None, 151.0]),
        Mistake("a float32 has four bytes, not two", value=[None, 37.7]),
        Mistake("each number has four bytes", value=[None, 18.9]),
        Mistake("here a megabyte is a million bytes, not 1024²", value=[None, 72.0]),
        Mistake("the two are swapped: the numbers come first", value=[75.5, _NUMBERS]),
    ),
)


def _equal(got, mask):
    return got.dtype == bool and np.array_equal(got, mask)


_SEES = "np.arange(old + new)[None, :] <= old + np.arange(new)[:, None]"
_CACHE, _TRIANGLE = "np.ones((new, old), bool)", "np.tri(new, dtype=bool)"


@exercise(
    "12.6",
    "The mask of several new tokens",
    minutes=8,
    difficulty="medium",
    hints=(
        "Write it down for old = 2 and new = 2: the first new token sees three keys, the second all four.",
        "Query i is at position old + i of the text, key j at position j.",
        "The mask is the last `new` rows of the causal mask for old + new positions.",
    ),
    next_thought="With one new token the mask has one row. What is in it, and does such a step need a mask?",
    cases=lambda: [(2, 2), (0, 3), (3, 1), (1, 4), (0, 1), (600, 20)],
    more=lambda rng: [(int(old), int(new)) for old, new in rng.integers((0, 1), (30, 20), (5, 2))],
    right=lambda old, new: F.causal_mask(old + new)[old:],
    mistakes=(
        Mistake(
            "the new tokens come after the old ones: query i is at position old + i, and sees all old keys",
            "<= old + np.arange(new)",
            "<= np.arange(new)",
        ),
        Mistake(
            "the keys of the cache have no columns: there are old + new of them",
            _SEES,
            _TRIANGLE,
        ),
        Mistake(
            "the old tokens ask no more: only the new ones have a row",
            _SEES,
            "np.tri(old + new, dtype=bool)",
        ),
        Mistake(
            "new tokens see the future: each is before those that follow it", _SEES, "np.ones((new, old + new), bool)"
        ),
        Mistake("a new token does not see itself: its own key counts, too", "<= old", "< old"),
        Mistake("the first new token sees the second: off by one", "<= old", "<= 1 + old"),
        Mistake("rows and columns are swapped: rows are queries", _SEES, f"({_SEES}).T"),
        Mistake("True and False are swapped: True means “may look”", "<= old", "> old"),
        Mistake(
            "the other triangle: a new token sees what comes before it, and not what comes after",
            _SEES,
            f"np.hstack([{_CACHE}, {_TRIANGLE}.T])",
            when=lambda got, want, case: any(_equal(got, np.triu(np.ones(want.shape, bool), k)) for k in (0, case[0])),
        ),
        Mistake(
            "the cache is hidden: new tokens see all old keys, in the first `old` columns",
            _SEES,
            f"np.hstack([~{_CACHE}, {_TRIANGLE}])",
        ),
        Mistake(
            "besides the cache a new token sees all new ones up to itself",
            _SEES,
            f"np.hstack([{_CACHE}, np.eye(new, dtype=bool)])",
            when=lambda got, want, case: _equal(got, np.indices(want.shape)[1] < case[0]),
        ),
        Mistake(
            "the columns are in the order of the text: the keys of the cache first, then the new ones",
            _SEES,
            f"np.hstack([{_TRIANGLE}, {_CACHE}])",
        ),
        Mistake(
            "the diagonal begins `old` columns to the right, not `new`: the first new token sees the cache and itself",
            "<= old",
            "<= new",
        ),
        Mistake("0 and 1 are numbers: the mask is boolean, as comparisons are", _SEES, f"({_SEES}) * 1"),
    ),
)
def new_rows(old, new):
    """Return True where new query i sees key j of the cache or of the new: booleans (new, old + new)."""
    return np.arange(old + new)[None, :] <= old + np.arange(new)[:, None]
