"""Text for both tracks: corpora by name, tokenizers, windows and batches. NumPy only."""

from .byte_pairs import apply_merges, count_pairs, learn_merges, merge_pair, most_common_pair
from .corpora import Corpus, CorpusUnavailable, data_folder, load_corpus, read_text
from .download import shakespeare_or_market
from .floor import loss_floor
from .market import market_entropy, market_entropy_by_position, market_text, positions_before
from .tokenizers import CharTokenizer, WordTokenizer
from .windows import Batches, sequential_batches, split_by_position, windows

__all__ = [
    "Batches",
    "CharTokenizer",
    "Corpus",
    "CorpusUnavailable",
    "WordTokenizer",
    "apply_merges",
    "count_pairs",
    "data_folder",
    "learn_merges",
    "load_corpus",
    "loss_floor",
    "market_entropy",
    "market_entropy_by_position",
    "market_text",
    "merge_pair",
    "most_common_pair",
    "positions_before",
    "read_text",
    "sequential_batches",
    "shakespeare_or_market",
    "split_by_position",
    "windows",
]
