"""Exercises of notebook 01: characters to ids, and pairs that grow together."""

import numpy as np

from ..text import byte_pairs
from .exercise import Mistake, exercise

_VOCABULARY = tuple("\n dehlorw")


def _right_ids(text, vocabulary):
    for place, character in enumerate(text):
        if character not in vocabulary:
            return ValueError(repr(character)[1:-1], str(place))
    return np.array([vocabulary.index(character) for character in text])


def _known(text, vocabulary):
    return "".join(character for character in text if character in vocabulary)


@exercise(
    "01.1",
    "Encode, with a clear error",
    minutes=12,
    difficulty="middle",
    task="""
Turn a text into ids: the id of a character is its place in `vocabulary`, a tuple of characters. A character that is not
there must raise a ValueError whose message names the character and its place in the text (counted from 0).
""",
    hints=(
        "A dictionary from each character to its place finds the ids quickly: enumerate(vocabulary) gives both.",
        "Go through the text with enumerate, too: then you know the place when a character is unknown.",
        "raise ValueError(f'unknown character {character!r} at place {place}'). At the end np.array of the ids.",
    ),
    next_thought="What would be worse than an error here: dropping the character, or giving it id 0?",
    cases=lambda: [
        ("hello", _VOCABULARY),
        ("cab\nab", ("c", "\n", "b", " ", "a")),
        ("hold?", _VOCABULARY),
        ("7 or 8", _VOCABULARY),
    ],
    right=_right_ids,
    forbids=("encode", "from_text"),
    mistakes=(
        Mistake(
            "these are places among the letters of the text: look in `vocabulary`, in its own order",
            lambda text, vocabulary: np.array([sorted(set(text)).index(c) for c in text]),
        ),
        Mistake(
            "the vocabulary was sorted again: the id is the place in the order that is given",
            lambda text, vocabulary: np.array([sorted(vocabulary).index(c) for c in text]),
        ),
        Mistake(
            "code points, and not places in the vocabulary", lambda text, vocabulary: np.array([ord(c) for c in text])
        ),
        Mistake(
            "unknown characters are dropped silently: what is decoded would be another text",
            lambda text, vocabulary: _right_ids(_known(text, vocabulary), vocabulary),
        ),
        Mistake(
            "an unknown character became id 0, which is a real character",
            lambda text, vocabulary: np.array([vocabulary.index(c) if c in vocabulary else 0 for c in text]),
        ),
        Mistake(
            "the KeyError of a dictionary has another type and no place: look first, and raise a ValueError",
            when=lambda got, want, case: isinstance(got, KeyError),
        ),
        Mistake(
            "that error comes from `index`: it says neither which character nor where. Raise your own",
            when=lambda got, want, case: isinstance(got, ValueError) and "not in" in str(got),
        ),
        Mistake(
            "places count from 0",
            when=lambda got, want, case: isinstance(got, ValueError) and str(int(want.args[1]) + 1) in str(got),
        ),
    ),
)
def encode(text, vocabulary):
    """The id of each character, its place in the vocabulary: integers (N,). ValueError for an unknown character."""
    ids = {character: i for i, character in enumerate(vocabulary)}
    for place, character in enumerate(text):
        if character not in ids:
            raise ValueError(f"unknown character {character!r} at place {place}")
    return np.array([ids[character] for character in text])


def _merge(tokens, pair, step, also=None):
    """The pair joined, with ``step`` tokens passed over after each time; ``also``: another pair that counts."""
    merged, i = [], 0
    while i < len(tokens):
        found = tuple(tokens[i : i + 2]) in (pair, also)
        merged.append("".join(tokens[i : i + 2]) if found else tokens[i])
        i += step if found else 1
    return merged


def _first_only(tokens, pair):
    for i in range(len(tokens) - 1):
        if tuple(tokens[i : i + 2]) == pair:
            return [*tokens[:i], "".join(pair), *tokens[i + 2 :]]
    return list(tokens)


def _by_letters(tokens, pair):
    """All places where the letters of the pair follow each other, whatever the tokens are."""
    letters = "".join(tokens)
    pieces = letters.split("".join(pair))
    return [token for i, piece in enumerate(pieces) for token in (["".join(pair)] if i else []) + list(piece)]


@exercise(
    "01.3",
    "One merge of a pair",
    minutes=12,
    difficulty="middle",
    task="""
One step of byte-pair encoding: wherever the two tokens of `pair` stand side by side, join them into one token. Go from
left to right; a token that has been joined is not used again. `tokens` is a list of strings, `pair` a tuple of two.
""",
    hints=(
        "Use a place i and a while loop: after a pair go on two places, else one.",
        "tuple(tokens[i : i + 2]) == pair also works at the end, where one token is left.",
        "merged.append(pair[0] + pair[1]) and i += 2; otherwise merged.append(tokens[i]) and i += 1.",
    ),
    next_thought="What are the tokens of “aaaa” after one merge of (a, a)? And after the next merge, of (aa, aa)?",
    cases=lambda: [
        (list("hello"), ("l", "l")),
        (list("banana"), ("a", "n")),
        (list("aaab"), ("a", "a")),
        (["th", "e", " ", "t", "h", "e", "th", "e"], ("th", "e")),
        (list("abc"), ("b", "a")),
    ],
    right=byte_pairs.merge_pair,
    forbids=("merge_pair", "apply_merges"),
    mistakes=(
        Mistake(
            "the second token of the pair is used again: after a pair go on two places",
            lambda tokens, pair: _merge(tokens, pair, 1),
        ),
        Mistake(
            "one token too many is passed over after a pair: go on two places, not three",
            lambda tokens, pair: _merge(tokens, pair, 3),
        ),
        Mistake("only the first pair was joined: do it everywhere", _first_only),
        Mistake("letters are compared: a token may have several letters, and the pair is two tokens", _by_letters),
        Mistake(
            "the pair was dropped: put the joined token in its place",
            lambda tokens, pair: [t for t in _merge(tokens, pair, 2) if t != "".join(pair)],
        ),
        Mistake(
            "the pair counts in this order only: (b, a) is not (a, b)",
            lambda tokens, pair: _merge(tokens, pair, 2, pair[::-1]),
        ),
    ),
)
def merge_pair(tokens, pair):
    """The tokens with every occurrence of the pair joined, from left to right: a list of strings."""
    merged, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            merged.append(pair[0] + pair[1])
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return merged
