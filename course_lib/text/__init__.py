"""Text for both tracks: corpora by name, tokenizers, windows and batches. NumPy only."""

from .byte_pairs import apply_merges, count_pairs, learn_merges, merge_pair, most_common_pair
from .corpora import Corpus, CorpusUnavailable, data_folder, load_corpus, read_text
from .download import shakespeare_or_market
from .floor import loss_floor
from .market import market_entropy, market_entropy_by_position, market_text, positions_before
from .numbers import encode_digits, encode_numbers, number_to_words, split_numbers, words_to_number
from .pairs import PADDING, PairBatches, shift
from .tokenizers import CharTokenizer, WordTokenizer
from .windows import Batches, sequential_batches, split_by_position, windows

__all__ = [
    "PADDING",
    "Batches",
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
    "learn_merges",
    "load_corpus",
    "loss_floor",
    "market_entropy",
    "market_entropy_by_position",
    "market_text",
    "merge_pair",
    "most_common_pair",
    "number_to_words",
    "positions_before",
    "read_text",
    "sequential_batches",
    "shakespeare_or_market",
    "shift",
    "split_by_position",
    "split_numbers",
    "windows",
    "words_to_number",
]
