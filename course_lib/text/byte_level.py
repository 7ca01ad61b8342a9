"""Byte-level byte-pair encoding, the tokens of GPT-2 and of most models since (Radford et al. 2019, section 2.2).

Text is cut into words, a word into its UTF-8 bytes, and neighbours are merged in the order in which the merges were
learned. Each of the 256 bytes is a token, so no text is unknown.
"""

import functools
import re
import unicodedata
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np

from ..common.checks import check_whole
from .byte_pairs import merge_pair
from .tokenizers import one_row

# how published models cut text into words; \p{L} is any letter, \p{N} any number
GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_WORDS = LLAMA3_WORDS.replace("{1,3}", "")  # each digit alone
PATTERNS = (GPT2_WORDS, LLAMA3_WORDS, QWEN_WORDS)
CACHED_WORDS = 2**16


class _StandIns(dict):
    """A table for ``str.translate``: an ASCII character of the same kind for each character, ASCII for itself.

    Python's ``re`` knows no ``\\p{L}``, but among ASCII characters it is ``[A-Za-z]``.
    """

    def __missing__(self, code):
        category = unicodedata.category(chr(code))
        if code < 128:
            found = chr(code)
        elif chr(code) == "ſ":  # the long s is an s to whoever ignores case
            found = "S"
        elif category[0] == "Z" or chr(code) == "\x85":
            found = "\t"
        else:
            found = {"L": "x", "N": "0"}.get(category[0], "!")
        self[code] = found
        return found


_STAND_INS = _StandIns()


@functools.cache
def _ascii(pattern):
    """Compile a pattern of ``PATTERNS`` for text of stand-ins."""
    words = pattern.replace(r"\p{L}+", "[A-Za-z]+").replace(r"\p{L}", "A-Za-z").replace(r"\p{N}", r"\d")
    return re.compile(words, re.ASCII)


def split_words(text, pattern=GPT2_WORDS):
    """Cut a text into words, by default as GPT-2 does: a word keeps the space before it.

    Raises ValueError for a pattern that is not in ``PATTERNS``.

    >>> split_words("Hello world, it's 2024!")
    ['Hello', ' world', ',', ' it', "'s", ' 2024', '!']
    """
    if pattern not in PATTERNS:
        raise ValueError(f"only the patterns of GPT-2, Llama 3 and Qwen cut text here, not {pattern!r}")
    return [text[m.start() : m.end()] for m in _ascii(pattern).finditer(text.translate(_STAND_INS))]


def byte_characters():
    """Return byte -> character, the alphabet in which published vocabularies are written.

    A byte that is a visible character of Latin-1 stands for itself; the others are U+0100 and those after it.

    >>> table = byte_characters()
    >>> "".join(table[byte] for byte in " hé".encode())
    'ĠhÃ©'
    """
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}


_CHARACTERS = byte_characters()
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


def _spelled(word):
    """Return the bytes of a word as characters."""
    return "".join(map(_CHARACTERS.get, word.encode()))


def _content(token):
    """Return the bytes that a token stands for; one that is not spelled in byte characters stands for itself."""
    return bytes(map(_BYTES.get, token)) if _BYTES.keys() >= set(token) else token.encode()


def _check_characters(text):
    if half := re.search("[\ud800-\udfff]", text):
        raise ValueError(
            f"U+{ord(half[0]):04X} at position {half.start()} is half of a surrogate pair: it has no bytes in UTF-8"
        )


def _between(special):
    """Return a pattern that splits a text at each special token, and keeps these; the longest wins."""
    tokens = "|".join(re.escape(token) for token in sorted(special, key=len, reverse=True))
    return re.compile(f"({tokens})" if tokens else r"(?!)")


class BytePairTokenizer:
    """A tokenizer with one token per byte, and one per merge of two tokens.

    The library tokenizers calls it ``ByteLevelBPETokenizer``, transformers ``GPT2Tokenizer``. ``ids`` gives each token,
    spelled in ``byte_characters``, its id; ``merges`` are pairs of tokens, the earliest merged first; ``special`` gives
    ids to texts such as ``<|endoftext|>`` that are one token wherever they occur, and are never cut. ``pattern`` says
    how text is cut into words (``PATTERNS``), ``form`` brings it into a Unicode normal form before ("NFC" in Qwen), and
    with ``whole_words`` a word that is a token needs no merges (Llama 3: ``ignore_merges``). Letters and numbers are
    what Python's ``unicodedata`` takes for such: an older Python does not know the characters of a newer Unicode.

    Raises ValueError for a vocabulary that lacks one of the 256 bytes or gives an id twice, and for a merge whose
    tokens are not in the vocabulary.

    >>> tokenizer = BytePairTokenizer.train("hello world, hello transformer", 262)
    >>> tokenizer.merges
    [('e', 'l'), ('h', 'el'), ('l', 'o'), ('o', 'r'), ('hel', 'lo')]
    >>> tokenizer.encode("hello<|endoftext|>").tolist()
    [260, 261]
    >>> tokenizer.tokens([260, 0, 261])
    ['hello', '!', '<|endoftext|>']
    """

    unit = "byte pair"

    def __init__(self, ids, merges, special=None, pattern=GPT2_WORDS, form=None, whole_words=False):
        self.ids, self.special = dict(ids), dict(special or {})
        self.merges = [tuple(pair) for pair in merges]
        self.pattern, self.form, self.whole_words = pattern, form, whole_words
        split_words("", pattern)  # an unknown pattern is an error here, not at the first text
        if form not in (None, "NFC"):
            raise ValueError(f"form must be None or 'NFC', not {form!r}")
        if lost := [byte for byte, character in _CHARACTERS.items() if character not in self.ids]:
            raise ValueError(f"the vocabulary lacks {len(lost)} of the 256 bytes, among them 0x{lost[0]:02x}")
        for n, pair in enumerate(self.merges):
            for token in (*pair, "".join(pair)):
                if len(pair) != 2 or token not in self.ids:
                    raise ValueError(f"merge {n}, {' '.join(pair)!r}: {token!r} is not a token of the vocabulary")
        self._contents = {}
        for token, id in (self.ids | self.special).items():
            check_whole(f"the id of {token!r}", id, 0)
            if id in self._contents:
                raise ValueError(f"id {id} is given twice: to {token!r} and to {self._contents[id]!r}")
            self._contents[id] = token.encode() if token in self.special else _content(token)
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(self.merges)))}  # of two, the first counts
        self._between = _between(self.special)
        self._word_ids = functools.lru_cache(CACHED_WORDS)(self._merged)  # most words come again and again

    @classmethod
    def train(cls, text, vocab_size, special=("<|endoftext|>",)):
        """Return the tokenizer with the ``vocab_size`` tokens that a text asks for: bytes, merges, special tokens.

        Each merge joins the pair that occurs most often, within words; of equally common ones that with the lower ids,
        as the library tokenizers does. There are fewer tokens if no pair is left that occurs twice. Raises ValueError
        for a ``vocab_size`` with no room for the bytes and the special tokens.
        """
        check_whole("vocab_size", vocab_size, 256 + len(special))
        _check_characters(text)
        between = _between(special)
        counts = Counter(w for piece in between.split(text) if piece not in special for w in split_words(piece))
        words, times = [list(_spelled(word)) for word in counts], list(counts.values())
        ids, merges = {character: n for n, character in enumerate(sorted(_BYTES))}, []
        pairs, where = Counter(), defaultdict(set)  # how often, and in which words

        def count(n, sign):
            for pair in pairwise(words[n]):
                pairs[pair] += sign * times[n]
                where[pair].add(n)

        for n in range(len(words)):
            count(n, 1)
        while len(ids) + len(special) < vocab_size:
            most = max(pairs.values(), default=0)
            if most < 2:
                break
            best = min((p for p, n in pairs.items() if n == most), key=lambda p: (ids[p[0]], ids[p[1]]))
            merges.append(best)
            ids.setdefault("".join(best), len(ids))
            for n in list(where[best]):
                count(n, -1)
                words[n] = merge_pair(words[n], best)
                count(n, 1)
        return cls(ids, merges, {token: len(ids) + n for n, token in enumerate(special)})

    def _merged(self, word):
        """Return the ids of a word: of all pairs the one that was learned first is merged, again and again."""
        tokens = [_spelled(word)]
        if not (self.whole_words and tokens[0] in self.ids):
            tokens = list(tokens[0])
        while len(tokens) > 1:
            pair = min(pairwise(tokens), key=lambda pair: self._ranks.get(pair, len(self.merges)))
            if pair not in self._ranks:
                break
            tokens = merge_pair(tokens, pair)
        return [self.ids[token] for token in tokens]

    def encode(self, text):
        """Return the ids of a text, int64 of shape (N,). Raises ValueError for half of a surrogate pair."""
        _check_characters(text)
        ids = []
        for piece in self._between.split(text):
            if piece in self.special:
                ids.append(self.special[piece])
                continue
            for word in split_words(unicodedata.normalize(self.form, piece) if self.form else piece, self.pattern):
                ids += self._word_ids(word)
        return np.array(ids, np.int64)

    def _pieces(self, ids):
        """Return the bytes of each id, as a list."""
        found = one_row(ids).tolist()
        for position, id in enumerate(found):
            if id not in self._contents:
                raise IndexError(
                    f"token id {id} at position {position} is not one of the {len(self)} of the vocabulary, "
                    f"which go from {min(self._contents)} to {max(self._contents)}"
                )
        return [self._contents[id] for id in found]

    def decode(self, ids):
        """Return the text of ids (N,): ``decode(encode(text)) == text``, in the normal form if there is one.

        Bytes that are no character read as U+FFFD. Raises IndexError for an id that is not in the vocabulary.
        """
        return b"".join(self._pieces(ids)).decode("utf-8", "replace")

    def tokens(self, ids):
        """Return the text of each id (N,), as a list; U+FFFD stands for a piece of a character."""
        return [piece.decode("utf-8", "replace") for piece in self._pieces(ids)]

    def __len__(self):
        return len(self._contents)

    def _state(self):
        return self.ids, self.merges, self.special, self.pattern, self.form, self.whole_words

    def __eq__(self, other):
        return self._state() == other._state() if isinstance(other, BytePairTokenizer) else NotImplemented

    def __hash__(self):
        return hash((len(self.ids), tuple(self.merges), self.pattern))

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} tokens)"
