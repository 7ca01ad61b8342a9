"""Text to token ids and back: by characters, or by words."""

import re
from abc import ABC, abstractmethod

import numpy as np


class Tokenizer(ABC):
    """The base of both tokenizers: a fixed vocabulary, in which a token's position is its id.

    A subclass says how text is cut into tokens (``split``) and put together again (``join``). Raises ValueError for an
    empty vocabulary, or one that holds a token twice.
    """

    unit = "token"

    def __init__(self, vocabulary):
        self.vocabulary = tuple(vocabulary)
        if not self.vocabulary:
            raise ValueError("the vocabulary is empty: a tokenizer needs at least one token")
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        if len(self._ids) != len(self.vocabulary):
            raise ValueError(
                f"the vocabulary holds a token twice: {len(self.vocabulary)} tokens, {len(self._ids)} of them distinct"
                f" (for the vocabulary of a text: {type(self).__name__}.from_text(text))"
            )

    @classmethod
    def from_text(cls, text):
        """Return the tokenizer whose vocabulary is every token of ``text``, sorted by code point.

        Sorted, because the order of a Python set differs from one run of Python to the next, and every id with it.
        Raises ValueError for an empty text.
        """
        if not text:
            raise ValueError("the text is empty: there is no vocabulary to take from it")
        return cls(sorted(set(cls.split(text))))

    @staticmethod
    @abstractmethod
    def split(text):
        """Cut a text into a list of tokens."""

    @classmethod
    def pieces(cls, text):
        """Return ``text`` cut into tokens, as ``split`` does, but without refusing any spacing."""
        return cls.split(text)

    @staticmethod
    @abstractmethod
    def join(tokens):
        """Put tokens together into a text."""

    def __len__(self):
        return len(self.vocabulary)

    def __eq__(self, other):
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return (type(self), self.vocabulary) == (type(other), other.vocabulary)

    def __hash__(self):
        return hash((type(self), self.vocabulary))

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} tokens)"

    def encode(self, text):
        """Return the ids of a text, int64 of shape (N,). Raises ValueError that names unknown tokens and positions."""
        tokens = self.split(text)
        unknown = {}
        for position, token in enumerate(tokens):
            if token not in self._ids:
                unknown.setdefault(token, []).append(position)
        if unknown:
            shown = "; ".join(
                f"{self._name(token)} at {_positions(found)}" for token, found in list(unknown.items())[:10]
            )
            more = f"; and {len(unknown) - 10} more" if len(unknown) > 10 else ""
            raise ValueError(
                f"unknown {self.unit}s, not among the {len(self)} of the vocabulary: {shown}{more} "
                f"(positions count {self.unit}s from 0)"
            )
        return np.array([self._ids[token] for token in tokens], dtype=np.int64)

    def known(self, text):
        """Return (the tokens of ``text`` that are in the vocabulary, each other piece once), whatever its spacing.

        >>> CharTokenizer("elo").known("hello, hello")
        (['e', 'l', 'l', 'o', 'e', 'l', 'l', 'o'], ['h', ',', ' '])
        """
        pieces = self.pieces(text)
        return [p for p in pieces if p in self._ids], list(dict.fromkeys(p for p in pieces if p not in self._ids))

    def tokens(self, ids):
        """Return the token of each id (N,), as a list.

        Raises IndexError for an id that is negative or too large, with its position and the limit; ValueError for
        anything but one row of whole numbers.
        """
        array = one_row(ids)
        wrong = np.flatnonzero((array < 0) | (array >= len(self)))
        if wrong.size:
            raise IndexError(
                f"token id {array[wrong[0]]} at position {wrong[0]} is outside the vocabulary: "
                f"ids go from 0 to {len(self) - 1}"
            )
        return [self.vocabulary[i] for i in array.tolist()]

    def decode(self, ids):
        """Return the text of ids (N,): ``decode(encode(text)) == text``."""
        return self.join(self.tokens(ids))

    @staticmethod
    def _name(token):
        return repr(token)


class CharTokenizer(Tokenizer):
    """A tokenizer with one token per character.

    >>> tokenizer = CharTokenizer.from_text("hello world")
    >>> "".join(tokenizer.vocabulary)
    ' dehlorw'
    >>> tokenizer.encode("hello").tolist()
    [3, 2, 4, 4, 5]
    >>> tokenizer.decode([3, 2, 4, 4, 5])
    'hello'
    """

    unit = "character"

    @staticmethod
    def split(text):
        return list(text)

    @staticmethod
    def join(tokens):
        return "".join(tokens)

    @staticmethod
    def _name(token):
        return f"{token!r} (U+{ord(token):04X})"


class WordTokenizer(Tokenizer):
    r"""A tokenizer with one token per word, punctuation mark or newline; spaces are implied.

    Two tokens of a line are separated by one space, except before a punctuation mark. A text spaced differently would
    not survive encoding and decoding, so ``split`` raises ValueError and says where.

    >>> tokenizer = WordTokenizer.from_text("Ming bought apples, not pears.\n")
    >>> tokenizer.vocabulary
    ('\n', ',', '.', 'Ming', 'apples', 'bought', 'not', 'pears')
    >>> tokenizer.decode(tokenizer.encode("Ming bought pears, not apples.\n"))
    'Ming bought pears, not apples.\n'
    """

    unit = "word"

    @classmethod
    def pieces(cls, text):
        return re.findall(r"\n|\w+|[^\w\s]", text)

    @staticmethod
    def split(text):
        tokens = WordTokenizer.pieces(text)
        back = WordTokenizer.join(tokens)
        if back != text:
            i = next((i for i, (a, b) in enumerate(zip(text, back)) if a != b), min(len(text), len(back)))
            raise ValueError(
                f"this text would not come back from its words: it differs at character {i}, near "
                f"{text[max(0, i - 10) : i + 10]!r}. Words must be separated by exactly one space, with no space "
                "before a punctuation mark and none at the start or end of a line."
            )
        return tokens

    @staticmethod
    def join(tokens):
        pieces = []
        line_start = True
        for token in tokens:
            if not line_start and (token[0].isalnum() or token[0] == "_"):
                pieces.append(" ")
            pieces.append(token)
            line_start = token == "\n"
        return "".join(pieces)


def one_row(ids):
    """Return ids (N,) as an array of whole numbers. Raises ValueError for anything but one row of these."""
    array = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids))
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"ids must be one row of whole numbers, shape (N,), not {array.dtype} of shape {array.shape}")
    return array


def _positions(positions):
    shown = ", ".join(map(str, positions[:5]))
    return shown + (f", ... ({len(positions)} times)" if len(positions) > 5 else "")
