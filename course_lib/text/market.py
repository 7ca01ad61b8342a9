r"""The course's own little language: what people buy at the market, and which of two things "they" are.

A line has 19 tokens:

    Ming bought apples, not bananas, because they were fresh. She had tried the apples.
    Ming bought apples, not bananas, because they were stale. She had tried the bananas.

A good quality describes the thing that was bought, a bad one the thing that was not. So the last noun is certain, but
only for a reader who combines two distant clues: the quality, and the order of the two things. "She" or "He" is certain
too: it follows from the name. Everything else is a free choice among equally likely words. Since the grammar is known,
so is the entropy, the loss that no model can beat.
"""

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
# The positions of the free choices, and of the two words that earlier ones determine ("pronoun", "meant").
POSITIONS = {
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


def sentence(name, buying, bought, other, quality, testing):
    r"""Return one line of the language, from its six free words.

    >>> sentence("Omar", "took", "pears", "plums", "sour", "tasted")
    'Omar took pears, not plums, because they were sour. He had tasted the plums.\n'
    """
    pronoun = "She" if name in SHE else "He"
    meant = bought if quality in GOOD else other
    return f"{name} {buying} {bought}, not {other}, because they were {quality}. {pronoun} had {testing} the {meant}.\n"


def market_text(sentences=MARKET_SENTENCES, seed=MARKET_SEED):
    r"""Return a text of that many lines; the same seed gives the same text on every machine.

    The words are drawn by Python's own ``random.random()``, whose sequence Python guarantees across versions. Raises
    ValueError for fewer than one sentence.

    >>> print(market_text(sentences=1, seed=0), end="")
    Omar took grapes, not bananas, because they were costly. He had smelled the bananas.
    """
    if sentences < 1:
        raise ValueError(f"a market text needs at least 1 sentence, not {sentences}")
    draw = random.Random(seed).random

    def choose(words):
        return words[int(draw() * len(words))]

    lines = []
    for _ in range(sentences):
        name, buying, bought = choose(NAMES), choose(BUYING), choose(THINGS)
        other = choose([thing for thing in THINGS if thing != bought])
        lines.append(sentence(name, buying, bought, other, choose(GOOD + BAD), choose(TESTING)))
    return "".join(lines)


def market_entropy_by_position():
    """Return the entropy of each of the 19 tokens of a line, given all tokens before it; nats, shape (19,).

    A choice among n equally likely words has the entropy ln n; a word that is certain has 0. This holds for a reader
    who knows where the line began; in a window that starts inside a line, nothing does better.

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
    for name, n in choices.items():
        entropy[POSITIONS[name]] = math.log(n)
    return entropy


def market_entropy():
    """Return the entropy of the language in nats per word token: the loss that no model of words can beat.

    All lines are equally likely, so a line has ln(number of lines) nats, spread over its 19 tokens.

    >>> round(market_entropy(), 4)
    0.5767
    """
    return float(market_entropy_by_position().sum()) / SENTENCE_LENGTH
