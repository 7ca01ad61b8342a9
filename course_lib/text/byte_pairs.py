"""Byte-pair merging: grow a vocabulary by joining, again and again, the two neighbours that occur together most often.

After Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016). GPT-2 starts
from the 256 bytes; here the start is the characters of the text, so that every token can be read.
"""

from collections import Counter
from itertools import pairwise


def count_pairs(tokens):
    """Count how often each pair of neighbours occurs in a list of tokens: a Counter.

    >>> count_pairs(list("hello"))
    Counter({('h', 'e'): 1, ('e', 'l'): 1, ('l', 'l'): 1, ('l', 'o'): 1})
    """
    return Counter(pairwise(tokens))


def most_common_pair(tokens):
    """Return the pair that occurs most often; of equally common ones, the first in code point order.

    Raises ValueError for fewer than two tokens.
    """
    pairs = count_pairs(tokens)
    if not pairs:
        raise ValueError(f"no pair to count: {len(tokens)} tokens, at least 2 are needed")
    return min(pairs, key=lambda pair: (-pairs[pair], pair))


def merge_pair(tokens, pair):
    """Join every occurrence of ``pair``, from left to right: a new list.

    >>> merge_pair(list("hello"), ("l", "l"))
    ['h', 'e', 'll', 'o']
    >>> merge_pair(list("aaa"), ("a", "a"))
    ['aa', 'a']
    """
    pair = tuple(pair)  # a pair saved as JSON comes back as a list
    merged = []
    i = 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            merged.append(pair[0] + pair[1])
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return merged


def learn_merges(text, n):
    """Return the first ``n`` merges of a text, in order; fewer if the text becomes a single token first.

    Raises ValueError for a negative ``n``.

    >>> learn_merges("hello hello hello", 2)
    [('e', 'l'), ('el', 'l')]
    """
    if n < 0:
        raise ValueError(f"the number of merges must be at least 0, not {n}")
    tokens, merges = list(text), []
    while len(merges) < n and len(tokens) > 1:
        pair = most_common_pair(tokens)
        merges.append(pair)
        tokens = merge_pair(tokens, pair)
    return merges


def apply_merges(text, merges):
    """Cut a text into tokens with merges learned earlier, in the order in which they were learned.

    >>> apply_merges("yellow", [("e", "l"), ("el", "l")])
    ['y', 'ell', 'o', 'w']
    """
    tokens = list(text)
    for pair in merges:
        tokens = merge_pair(tokens, pair)
    return tokens
