r"""The course's own little language: what people buy at the market, and which of two things "they" are.

A line is made of 19 tokens:

    Ming bought apples, not bananas, because they were fresh. She had tried the apples.
    Ming bought apples, not bananas, because they were stale. She had tried the bananas.

A good quality speaks of the thing that was bought, a bad one of the thing that was not. So the last noun is certain,
but only for a reader who combines two far places: the quality, and the order of the two things. "She" or "He" is
certain too: it goes with the name. Everything else is a free choice, each word as likely as the next; since the
grammar is known, so is the entropy, the loss that no model can beat.
"""

from __future__ import annotations

import math
import random

import numpy as np

SHE = ("Ana", "Ming", "Ruth", "Zola")
HE = ("Ivan", "Kofi", "Omar", "Paul")
NAMES = SHE + HE
BUYING = ("bought", "chose", "picked", "took")
THINGS = ("apples", "bananas", "cherries", "grapes", "melons", "peaches", "pears", "plums")
GOOD = ("cheap", "fresh", "ripe", "sweet")
BAD = ("costly", "rotten", "sour", "stale")
TESTING = ("checked", "smelled", "tasted", "tried")

SENTENCE_LENGTH = 19  # tokens, the newline included
# The places that hold a choice, and the two that are settled by earlier ones.
PLACES = {
    "name": 0,
    "buying": 1,
    "bought": 2,
    "not bought": 5,
    "quality": 10,
    "pronoun": 12,
    "testing": 14,
    "meant": 16,
}

MARKET_SENTENCES = 6000  # half a megabyte
MARKET_SEED = 1


def sentence(name: str, buying: str, bought: str, other: str, quality: str, testing: str) -> str:
    r"""One line of the language, from its six free words.

    >>> sentence("Omar", "took", "pears", "plums", "sour", "tasted")
    'Omar took pears, not plums, because they were sour. He had tasted the plums.\n'
    """
    pronoun = "She" if name in SHE else "He"
    meant = bought if quality in GOOD else other
    return f"{name} {buying} {bought}, not {other}, because they were {quality}. {pronoun} had {testing} the {meant}.\n"


def market_text(sentences: int = MARKET_SENTENCES, seed: int = MARKET_SEED) -> str:
    r"""A text of that many lines; the same seed always gives the same text, on every machine.

    Python's own `random.random()` draws the words, because Python promises its sequence for all versions.
    Errors: ValueError for fewer than one sentence.

    >>> print(market_text(sentences=1, seed=0), end="")
    Omar took grapes, not bananas, because they were costly. He had smelled the bananas.
    """
    if sentences < 1:
        raise ValueError(f"a market text needs at least 1 sentence, got {sentences}")
    draw = random.Random(seed).random

    def choose(words):
        return words[int(draw() * len(words))]

    lines = []
    for _ in range(sentences):
        name, buying, bought = choose(NAMES), choose(BUYING), choose(THINGS)
        other = choose([thing for thing in THINGS if thing != bought])
        lines.append(sentence(name, buying, bought, other, choose(GOOD + BAD), choose(TESTING)))
    return "".join(lines)


def positions_before(place: str, context: int) -> np.ndarray:
    """The positions of a window, begun with a line, at which a model predicts the word of that place (see PLACES).

    >>> positions_before("meant", context=38).tolist()
    [15, 34]
    """
    if place not in PLACES:
        raise ValueError(f"no place {place!r} in a line of the market; the places are {', '.join(PLACES)}")
    targets = np.arange(1, context + 1) % SENTENCE_LENGTH  # position t predicts token t + 1
    return np.flatnonzero(targets == PLACES[place])


def market_entropy_by_position() -> np.ndarray:
    """The entropy of each of the 19 tokens of a line, given all that came before it; nats, shape (19,).

    A choice among n equally likely words has the entropy ln n, and a settled word has 0. This holds for a reader who
    knows where the line began; a window that starts inside a line cannot do better, only worse.

    >>> market_entropy_by_position().round(3).tolist()[:6]
    [2.079, 1.386, 2.079, 0.0, 0.0, 1.946]
    """
    choices = {
        "name": len(NAMES),
        "buying": len(BUYING),
        "bought": len(THINGS),
        "not bought": len(THINGS) - 1,  # never the thing that was bought
        "quality": len(GOOD + BAD),
        "testing": len(TESTING),
    }
    entropy = np.zeros(SENTENCE_LENGTH)
    for place, n in choices.items():
        entropy[PLACES[place]] = math.log(n)
    return entropy


def market_entropy(per: str = "word") -> float:
    """The entropy of the language in nats per word token, or per character: the loss that no model can beat.

    A line has ln(number of lines) nats, since all lines are equally likely. Shared out over its 19 tokens that is the
    floor for a model of words, over its mean number of characters the floor for a model of characters.

    >>> round(market_entropy(), 4), round(market_entropy(per="character"), 4)
    (0.5767, 0.131)
    """
    line = float(market_entropy_by_position().sum())
    if per == "word":
        return line / SENTENCE_LENGTH
    if per == "character":
        return line / _mean_line_length()
    raise ValueError(f"per must be 'word' or 'character', got {per!r}")


def _mean_line_length() -> float:
    """The mean number of characters of a line: its fixed words, and the mean length of each choice."""
    fixed = len(sentence("", "", "", "", "", "")) - len("He")  # without a name the pronoun is "He"
    names = sum(len(name) + len("She" if name in SHE else "He") for name in NAMES) / len(NAMES)
    choices = (BUYING, THINGS, THINGS, GOOD + BAD, TESTING, THINGS)  # three things: bought, not bought, meant
    return fixed + names + sum(sum(map(len, words)) / len(words) for words in choices)
