"""Text to token ids and back: by characters, or by words."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np


class Tokenizer(ABC):
    """What both tokenizers share: a fixed vocabulary; the id of a token is its place in it.

    A subclass says how text is cut into tokens (`split`) and put together again (`join`).
    """

    unit = "token"

    def __init__(self, vocabulary: Sequence[str]):
        self.vocabulary = tuple(vocabulary)
        if not self.vocabulary:
            raise ValueError("the vocabulary is empty: a tokenizer needs at least one token")
        self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        if len(self._ids) != len(self.vocabulary):
            raise ValueError(
                f"the vocabulary holds a token twice: {len(self.vocabulary)} tokens, {len(self._ids)} kinds"
            )

    @classmethod
    def from_text(cls, text: str) -> Tokenizer:
        """The tokenizer whose vocabulary is every token of `text`, sorted by code point.

        Sorted, because the order of a Python set changes from one start to the next, and with it every id.
        """
        if not text:
            raise ValueError("the text is empty: there is no vocabulary to take from it")
        return cls(sorted(set(cls.split(text))))

    @staticmethod
    @abstractmethod
    def split(text: str) -> list[str]:
        """The text, cut into tokens."""

    @staticmethod
    @abstractmethod
    def join(tokens: Iterable[str]) -> str:
        """The tokens, put together as text."""

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return (type(self), self.vocabulary) == (type(other), other.vocabulary)

    def __hash__(self) -> int:
        return hash((type(self), self.vocabulary))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens)"

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, int64 of shape (N,). Unknown tokens are an error that names each with its places."""
        tokens = self.split(text)
        unknown: dict[str, list[int]] = {}
        for place, token in enumerate(tokens):
            if token not in self._ids:
                unknown.setdefault(token, []).append(place)
        if unknown:
            shown = "; ".join(f"{self._name(token)} at {_places(found)}" for token, found in list(unknown.items())[:10])
            more = f"; and {len(unknown) - 10} more" if len(unknown) > 10 else ""
            raise ValueError(
                f"unknown {self.unit}s, not among the {len(self)} of the vocabulary: {shown}{more} "
                f"(places count {self.unit}s from 0)"
            )
        return np.array([self._ids[token] for token in tokens], dtype=np.int64)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The token of each id. An id that is negative or too large is an IndexError with its place and the limit."""
        array = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids))
        if array.size == 0:
            return []
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(
                f"ids must be whole numbers in one row, shape (N,); got {array.dtype} of shape {array.shape}"
            )
        wrong = np.flatnonzero((array < 0) | (array >= len(self)))
        if wrong.size:
            raise IndexError(
                f"token id {array[wrong[0]]} at place {wrong[0]} is outside the vocabulary: "
                f"ids go from 0 to {len(self) - 1}"
            )
        return [self.vocabulary[i] for i in array.tolist()]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids: `decode(encode(text)) == text`."""
        return self.join(self.tokens(ids))

    @staticmethod
    def _name(token: str) -> str:
        return repr(token)


class CharTokenizer(Tokenizer):
    """One token a character.

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
    def split(text: str) -> list[str]:
        return list(text)

    @staticmethod
    def join(tokens: Iterable[str]) -> str:
        return "".join(tokens)

    @staticmethod
    def _name(token: str) -> str:
        return f"{token!r} (U+{ord(token):04X})"


class WordTokenizer(Tokenizer):
    r"""One token a word, a punctuation mark or a newline; spaces are implied.

    Between two tokens of a line stands one space, except in front of a punctuation mark. A text that is spaced in
    another way would not come back from its ids, so `split` refuses it and says where.

    >>> tokenizer = WordTokenizer.from_text("Ming bought apples, not pears.\n")
    >>> tokenizer.vocabulary
    ('\n', ',', '.', 'Ming', 'apples', 'bought', 'not', 'pears')
    >>> tokenizer.decode(tokenizer.encode("Ming bought pears, not apples.\n"))
    'Ming bought pears, not apples.\n'
    """

    unit = "word"

    @staticmethod
    def split(text: str) -> list[str]:
        tokens = re.findall(r"\n|\w+|[^\w\s]", text)
        back = WordTokenizer.join(tokens)
        if back != text:
            place = next((i for i, (a, b) in enumerate(zip(text, back)) if a != b), min(len(text), len(back)))
            raise ValueError(
                f"this text would not come back from its words: it differs at character {place}, near "
                f"{text[max(0, place - 10) : place + 10]!r}. Words are parted by exactly one space, with no space "
                "before a punctuation mark, and none at the start or end of a line."
            )
        return tokens

    @staticmethod
    def join(tokens: Iterable[str]) -> str:
        pieces = []
        line_start = True
        for token in tokens:
            if not line_start and (token[0].isalnum() or token[0] == "_"):
                pieces.append(" ")
            pieces.append(token)
            line_start = token == "\n"
        return "".join(pieces)


def _places(places: list[int]) -> str:
    shown = ", ".join(map(str, places[:5]))
    return shown + (f", ... ({len(places)} times)" if len(places) > 5 else "")
