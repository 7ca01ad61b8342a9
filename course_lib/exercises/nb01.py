"""Exercises of notebook 01: tokens, pairs and windows."""

import re

import numpy as np

from ..text import byte_pairs
from ..text.windows import windows
from .exercise import Mistake, exercise, question, varied

_VOCABULARY = tuple("\n dehlorw")


def _drawn_texts(rng):
    """Return texts in a shuffled vocabulary, every other one with two unknown characters, after 20 known ones."""
    cases = []
    for n in range(6):
        vocabulary = tuple(rng.permutation(list("abcABC \n")).tolist())
        text = "".join(rng.choice(vocabulary, int(rng.integers(20, 40)))) + "?" * (n % 2)
        cases.append((text + "".join(rng.choice(vocabulary, 5)) + "#" * (n % 2), vocabulary))
    return cases


def _right_ids(text, vocabulary):
    for position, character in enumerate(text):
        if character not in vocabulary:
            return ValueError(repr(character)[1:-1], str(position))
    return np.array([vocabulary.index(character) for character in text])


_RAISE = 'raise ValueError(f"unknown character {character!r} at position {position}")'


@exercise(
    "01.1",
    "Encode, with a clear error",
    minutes=12,
    difficulty="medium",
    hints=(
        "A dictionary from each character to its index finds the ids quickly: enumerate(vocabulary) gives both.",
        "Go through the text with enumerate, too: then you know the position of an unknown character.",
        "raise ValueError(f'unknown character {character!r} at position {position}'). Return np.array of the ids.",
    ),
    next_thought="What would be worse than an error here: dropping the character, or giving it id 0?",
    cases=lambda: [
        *varied("hello", _VOCABULARY, by=[_VOCABULARY[::-1]]),
        ("cab\nab", ("c", "\n", "b", " ", "a")),
        ("hold?", _VOCABULARY),
        ("7 or 8", _VOCABULARY),
        (" Hold\n", ("d", "\n", "H", " ", "l", "o", "h")),
    ],
    more=_drawn_texts,
    right=_right_ids,
    forbids=("encode", "from_text"),
    mistakes=(
        Mistake(
            "these are positions among the letters of the text: look in `vocabulary`, in its own order",
            "enumerate(vocabulary)",
            "enumerate(sorted(set(text)))",
        ),
        Mistake(
            "the vocabulary was sorted again: an id is a position in the order given",
            "enumerate(vocabulary)",
            "enumerate(sorted(vocabulary))",
        ),
        Mistake(
            "unknown characters are dropped silently: decoding would give another text",
            _RAISE,
            'text = text.replace(character, "")',
        ),
        Mistake("an unknown character became id 0, which is a real character", _RAISE, "ids[character] = 0"),
        Mistake(
            "the KeyError of a dictionary has the wrong type and no position: look first, and raise a ValueError",
            when=lambda got, want, case: isinstance(got, KeyError),
        ),
        Mistake(
            "that error comes from `index`: it says neither which character nor where. Raise your own",
            when=lambda got, want, case: re.search(r"not in (list|tuple)$|^substring not found", str(got)),
        ),
    ),
)
def encode(text, vocabulary):
    """Return the id of each character, its index in the vocabulary: integers (N,). Raises ValueError if unknown."""
    ids = {character: i for i, character in enumerate(vocabulary)}
    for position, character in enumerate(text):
        if character not in ids:
            raise ValueError(f"unknown character {character!r} at position {position}")
    return np.array([ids[character] for character in text])


@exercise(
    "01.2",
    "Windows by hand",
    minutes=10,
    difficulty="easy",
    hints=(
        "Window i of x is ids[i : i + T]. Where does window i of y begin?",
        "y needs one more token than x, so the last window starts at N - T - 1: range(N - T).",
        "np.array of a list of slices makes a matrix of them.",
    ),
    next_thought="How often does each token occur in x? Which ones occur less often than the others?",
    cases=lambda: [
        *varied(np.arange(8), 4, by=[2]),
        (np.array([3, 1, 4, 1, 5, 9, 2, 6]), 3),
        (np.array([2, 7, 1]), 1),
        (np.arange(5), 4),
    ],
    more=lambda rng: [(rng.integers(0, 9, N), int(rng.integers(1, N))) for N in (2, 6, 9, 12)],
    right=lambda ids, T: tuple(map(np.array, windows(ids, T))),
    forbids=("windows", "sliding_window_view", "Batches"),
    mistakes=(
        Mistake(
            "the last window is missing: there are N - T, so the loop is range(N - T)",
            "range(len(ids) - T)",
            "range(len(ids) - T - 1)",
        ),
        Mistake("one window too many: the last y runs out of tokens", "range(len(ids) - T)", "range(len(ids) - T + 1)"),
        Mistake("`y` is not shifted: it must be x one position later", "ids[i + 1 : i + T + 1]", "ids[i : i + T]"),
        Mistake("`x` and `y` are swapped", "return x, y", "return y, x"),
        Mistake(
            "`y` begins a whole window later: it is shifted by one, not by T",
            "ids[i + 1 : i + T + 1]",
            "ids[i + T : i + 2 * T]",
        ),
        Mistake(
            "the windows lie side by side: here one starts at every position",
            "range(len(ids) - T)",
            "range(0, len(ids) - T, T)",
        ),
    ),
)
def my_windows(ids, T):
    """Return all windows of T tokens and their targets: ids (N,) -> x and y, a pair of arrays (N - T, T)."""
    starts = range(len(ids) - T)
    x = np.array([ids[i : i + T] for i in starts])
    y = np.array([ids[i + 1 : i + T + 1] for i in starts])
    return x, y


@exercise(
    "01.3",
    "One merge of a pair",
    minutes=12,
    difficulty="medium",
    hints=(
        "Use an index i and a while loop: after a pair advance by two, otherwise by one.",
        "tuple(tokens[i : i + 2]) == pair also works at the end, where one token is left.",
        "merged.append(pair[0] + pair[1]) and i += 2; otherwise merged.append(tokens[i]) and i += 1.",
    ),
    next_thought="What are the tokens of “aaaa” after one merge of (a, a)? And after the next merge, of (aa, aa)?",
    cases=lambda: [
        (list("hello"), ("l", "l")),
        *varied(list("banana"), ("a", "n"), by=[("n", "a")]),
        (list("aaab"), ("a", "a")),
        (["th", "e", " ", "t", "h", "e", "th", "e"], ("th", "e")),
        (list("abc"), ("b", "a")),
        (list("balloon"), ("l", "l")),
        (list("bananan"), ("a", "n")),
        (["t", "he", "t"], ("th", "e")),
        (["ba", "b"], ("a", "b")),
        ([], ("a", "b")),
    ],
    more=lambda rng: [
        (rng.choice(["a", "b", "ab", "c"], n).tolist(), tuple(rng.choice(["a", "b", "ab"], 2).tolist()))
        for n in (1, 2, 8, 30, 30)
    ],
    right=byte_pairs.merge_pair,
    forbids=("merge_pair", "apply_merges"),
    mistakes=(
        Mistake("the second token of the pair is used again: after a pair, advance by two", "i += 2", "i += 1"),
        Mistake("one token too many is skipped after a pair: advance by two, not three", "i += 2", "i += 3"),
        Mistake("only the first pair was joined: do it everywhere", "i += 2", "return merged + tokens[i + 2 :]"),
        Mistake("the pair was dropped: put the joined token in its place", "merged.append(pair[0] + pair[1])", "pass"),
        Mistake(
            "a list is never equal to a tuple: compare tuple(...) with `pair`",
            "tuple(tokens[i : i + 2])",
            "tokens[i:i+2]",
        ),
        Mistake(
            "the pair counts in this order only: (b, a) is not (a, b)",
            "== pair:\n            merged.append(pair[0] + pair[1])",
            "in (pair, pair[::-1]):\n            merged.append(tokens[i] + tokens[i + 1])",
        ),
    ),
)
def merge_pair(tokens, pair):
    """Return the tokens with every occurrence of the pair joined, from left to right: a list of strings."""
    merged, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            merged.append(pair[0] + pair[1])
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return merged


windows_counted = question(
    "01.4",
    "How many windows?",
    minutes=4,
    difficulty="easy",
    hints=(
        "A window needs T + 1 tokens: its last target is one position further.",
        "With stride 1 the last start is N - T - 1, so there are N - T. With stride T they are at 0, T, 2T, …",
    ),
    next_thought="How many of the 1,000 tokens are never a target with stride 32?",
    value=[968, 31],
    answer="[968, 31]: 1000 - 32 = 968, and (1000 - 32 - 1) // 32 + 1 = 31. The last 7 tokens do not fill a window.",
    mistakes=(
        Mistake(
            "a window needs one more token for its last target: N - T, not N - T + 1",
            value=[969, None],
        ),
        Mistake(
            "the last window was lost: starts count from 0, so there are N - T",
            value=[967, None],
        ),
        Mistake("the windows overlap: with stride 1 nearly every token is a start", value=[31, 31]),
        Mistake("count the first start, too: 0, 32, … 960 are 31 numbers", value=[None, 30]),
        Mistake("the two are swapped: stride 1 comes first", value=[31, 968]),
        Mistake(
            "with stride 32 the starts are 0, 32, … 960: a window at 992 is not full",
            value=[None, 32],
        ),
    ),
)
