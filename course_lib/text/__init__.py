"""Text for both tracks: corpora by name, tokenizers, windows and batches. NumPy only.

It imports ``common`` alone; every floor above the tracks may import it.
"""

from .byte_level import BytePairTokenizer, split_words
from .byte_pairs import apply_merges, count_pairs, learn_merges, merge_pair, most_common_pair
from .corpora import load_corpus, shakespeare_or_market
from .corpus import Corpus, CorpusUnavailable, data_folder, read_text, shipped_folder
from .floor import loss_floor
from .market import market_entropy, market_entropy_by_position, market_text
from .numbers import encode_digits, encode_numbers, number_to_words, split_numbers
from .pairs import PADDING, PairBatches, ignore_padding, shift
from .tokenizers import CharTokenizer, WordTokenizer
from .windows import Batches, sequential_batches, split_by_position, windows

__all__ = [
    "PADDING",
    "Batches",
    "BytePairTokenizer",
    "CharTokenizer",
    "Corpus",
    "CorpusUnavailable",
    "PairBatches",
    "WordTokenizer",
    "apply_merges",
    "count_pairs",
    "data_folder",
    "encode_digits",
    "encode_numbers",
    "ignore_padding",
    "learn_merges",
    "load_corpus",
    "loss_floor",
    "market_entropy",
    "market_entropy_by_position",
    "market_text",
    "merge_pair",
    "most_common_pair",
    "number_to_words",
    "read_text",
    "sequential_batches",
    "shakespeare_or_market",
    "shift",
    "shipped_folder",
    "split_by_position",
    "split_numbers",
    "split_words",
    "windows",
]
