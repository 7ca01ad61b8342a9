"""A translation task with exactly one right answer: whole numbers from 0 to 999,999 into English words.

    3407 -> three thousand four hundred seven

American style, without "and" and without hyphens. The source is written in digits, the target in words.
"""

import numpy as np

from .pairs import pad
from .tokenizers import CharTokenizer, WordTokenizer

LARGEST = 999_999
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()

# "<padding>", "<begin>" and "<end>" occur in no text: no tokenizer would cut a text into them.
DIGITS = CharTokenizer(["<padding>", *"0123456789"])
WORDS = WordTokenizer(["<padding>", "<begin>", "<end>", *ONES, *TENS, "hundred", "thousand"])
BEGIN, END = WORDS.vocabulary.index("<begin>"), WORDS.vocabulary.index("<end>")


def number_to_words(number):
    """Return a number in words. Raises ValueError outside 0 to 999,999, TypeError for anything but a whole number.

    >>> number_to_words(3407)
    'three thousand four hundred seven'
    """
    return " ".join(word for word, _ in _words_and_digits(number))


def digits_of_words(number):
    """Return for each word the positions of the digits it comes from, counted from the left: the true alignment.

    >>> list(zip(number_to_words(3415).split(), digits_of_words(3415)))
    [('three', (0,)), ('thousand', (0,)), ('four', (1,)), ('hundred', (1,)), ('fifteen', (2, 3))]
    """
    return [digits for _, digits in _words_and_digits(number)]


def _words_and_digits(number):
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"a whole number is needed, not {number!r}")
    if not 0 <= number <= LARGEST:
        raise ValueError(f"numbers must be from 0 to {LARGEST:,}, not {number:,}")
    number = int(number)
    last = len(str(number)) - 1  # the position of the ones
    if number == 0:
        return [("zero", (0,))]
    thousands, rest = divmod(number, 1000)
    found = _below_thousand(thousands, last - 3)
    if thousands:
        found.append(("thousand", tuple(range(last - 2))))
    return found + _below_thousand(rest, last)


def _below_thousand(number, last):
    """Return the words of 0 to 999, none for 0; ``last`` is the position of the ones among all digits."""
    hundreds, rest = divmod(number, 100)
    found = [(ONES[hundreds], (last - 2,)), ("hundred", (last - 2,))] if hundreds else []
    if rest >= 20:
        found.append((TENS[rest // 10 - 2], (last - 1,)))
        rest %= 10
    if rest:
        found.append((ONES[rest], (last,) if rest < 10 else (last - 1, last)))
    return found


def encode_digits(numbers):
    """Return numbers as padded source ids (B, S), one id per digit.

    >>> encode_digits([3407, 12]).tolist()
    [[4, 5, 1, 8], [2, 3, 0, 0]]
    """
    return pad([DIGITS.encode(str(int(number))) for number in numbers])


def encode_numbers(numbers):
    """Return numbers as padded (source (B, S), target (B, T)); each target is begin, the words, end.

    >>> source, target = encode_numbers([20, 7])
    >>> WORDS.tokens(target[0]), WORDS.tokens(target[1])
    (['<begin>', 'twenty', '<end>'], ['<begin>', 'seven', '<end>'])
    """
    numbers = list(numbers)
    words = [WORDS.encode(number_to_words(number)) for number in numbers]
    return encode_digits(numbers), pad([[BEGIN, *row, END] for row in words])


def split_numbers(held_out=(2, 18, 180, 200, 200, 200), seed=0):
    """Return all numbers of 1 to 6 digits as (training, held out): two lists of six arrays, one per length.

    Of the numbers with i + 1 digits, ``held_out[i]`` are drawn by a separate Generator and kept out of training. 0 is
    always used for training: its word occurs in no other number. Raises ValueError unless there are six counts that
    leave numbers of each length to train on.

    >>> training, held_out = split_numbers()
    >>> [len(numbers) for numbers in training]
    [8, 72, 720, 8800, 89800, 899800]
    """
    if len(held_out) != len(str(LARGEST)):
        raise ValueError(f"held_out must have one count for each of the lengths 1 to 6, not {len(held_out)} counts")
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
