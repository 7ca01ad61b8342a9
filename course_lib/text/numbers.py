"""A translation with exactly one right answer: whole numbers from 0 to 999,999 in English words.

    3407 → three thousand four hundred seven

American style, without "and" and without hyphens. The source is written in digits, the target in words.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .pairs import PADDING, pad
from .tokenizers import CharTokenizer, WordTokenizer

LARGEST = 999_999
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()

# Tokens that no text contains, because no tokenizer would cut a text into them.
DIGITS = CharTokenizer(["<padding>", *"0123456789"])
WORDS = WordTokenizer(["<padding>", "<begin>", "<end>", *ONES, *TENS, "hundred", "thousand"])
BEGIN, END = WORDS.vocabulary.index("<begin>"), WORDS.vocabulary.index("<end>")


def number_to_words(number: int) -> str:
    """The number in words. Errors: ValueError outside 0 ... 999,999, TypeError for what is no whole number.

    >>> number_to_words(3407)
    'three thousand four hundred seven'
    """
    return " ".join(word for word, _ in _words_and_digits(number))


def digits_of_words(number: int) -> list[tuple[int, ...]]:
    """For each word the places of the digits that it comes from, counted from the left: the true alignment.

    >>> list(zip(number_to_words(3415).split(), digits_of_words(3415)))
    [('three', (0,)), ('thousand', (0,)), ('four', (1,)), ('hundred', (1,)), ('fifteen', (2, 3))]
    """
    return [digits for _, digits in _words_and_digits(number)]


def _words_and_digits(number):
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"a whole number, please, not {number!r}")
    if not 0 <= number <= LARGEST:
        raise ValueError(f"numbers go from 0 to {LARGEST:,}, not {number:,}")
    number = int(number)
    last = len(str(number)) - 1  # the place of the ones
    if number == 0:
        return [("zero", (0,))]
    thousands, rest = divmod(number, 1000)
    found = _below_thousand(thousands, last - 3)
    if thousands:
        found.append(("thousand", tuple(range(last - 2))))
    return found + _below_thousand(rest, last)


def _below_thousand(number, last):
    """Words of 0 ... 999, none for 0; ``last`` is the place of the ones among the digits of the whole number."""
    hundreds, rest = divmod(number, 100)
    found = [(ONES[hundreds], (last - 2,)), ("hundred", (last - 2,))] if hundreds else []
    if rest >= 20:
        found.append((TENS[rest // 10 - 2], (last - 1,)))
        rest %= 10
    if rest:
        found.append((ONES[rest], (last,) if rest < 10 else (last - 1, last)))
    return found


def words_to_number(words: str) -> int:
    """The inverse: the number that these words say.

    Errors: ValueError for words that say no number, or say one in another way than `number_to_words`.

    >>> words_to_number("three thousand four hundred seven")
    3407
    """
    total = group = 0
    for word in words.split():
        if word == "thousand":
            total, group = 1000 * group, 0
        elif word == "hundred":
            group *= 100
        elif word in ONES:
            group += ONES.index(word)
        elif word in TENS:
            group += 10 * (TENS.index(word) + 2)
        else:
            raise ValueError(f"{word!r} is no word of a number")
    number = total + group
    if not words or number > LARGEST or number_to_words(number) != words:
        raise ValueError(f"{words!r} is not how a number is written")
    return number


def encode_digits(numbers: Iterable[int]) -> np.ndarray:
    """Numbers as padded source ids (B, S), one id a digit.

    >>> encode_digits([3407, 12]).tolist()
    [[4, 5, 1, 8], [2, 3, 0, 0]]
    """
    return pad([DIGITS.encode(str(int(number))) for number in numbers])


def encode_numbers(numbers: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as padded (source (B, S), target (B, T)); each target is begin, its words, end.

    >>> source, target = encode_numbers([20, 7])
    >>> WORDS.tokens(target[0]), WORDS.tokens(target[1])
    (['<begin>', 'twenty', '<end>'], ['<begin>', 'seven', '<end>'])
    """
    numbers = list(numbers)
    words = [WORDS.encode(number_to_words(number)) for number in numbers]
    return encode_digits(numbers), pad([[BEGIN, *row, END] for row in words])


def decode_words(ids: Iterable[int]) -> str:
    """The words of target ids up to the end; begin, end and padding are left out."""
    words = []
    for id_ in ids:
        if id_ == END:
            break
        if id_ not in (PADDING, BEGIN):
            words.append(int(id_))
    return WORDS.decode(words)


def split_numbers(
    held_out: tuple[int, ...] = (2, 18, 180, 200, 200, 200), seed: int = 0
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """All numbers with 1, 2, ... 6 digits as (training, held out), each a list of six arrays, one for each length.

    `held_out[i]` numbers of i + 1 digits are kept out of the training, drawn by a Generator of their own. 0 always
    trains: its word is found in no other number.
    Errors: ValueError when a length has no numbers left to train on, or there are not six lengths.

    >>> training, held_out = split_numbers()
    >>> [len(numbers) for numbers in training]
    [8, 72, 720, 8800, 89800, 899800]
    """
    if len(held_out) != len(str(LARGEST)):
        raise ValueError(f"held_out has one count for each of the lengths 1 to 6, got {len(held_out)} counts")
    rng = np.random.default_rng(seed)
    training, kept_out = [], []
    for digits, count in enumerate(held_out, start=1):
        numbers = rng.permutation(np.arange(10 ** (digits - 1), 10**digits))
        if not 0 <= count < len(numbers):
            raise ValueError(f"{count} of the {len(numbers)} numbers of {digits} digits cannot be held out")
        kept_out.append(np.sort(numbers[:count]))
        rest = np.sort(numbers[count:])
        training.append(np.concatenate(([0], rest)) if digits == 1 else rest)
    return training, kept_out
