"""Uses of a trained model of either track: generate, search, switch heads off, load published files.

It imports from ``common``, and reaches a track by name; views, exercises and experiments import it.
"""

from .gpt2 import load_gpt2
from .llama import load_llama
from .sampling import generate, generate_ids, next_logits, next_probabilities
from .search import beam_search, greedy_ids
from .streaming import print_sample, stream
from .tokenizer_files import load_tokenizer

__all__ = [
    "beam_search",
    "generate",
    "generate_ids",
    "greedy_ids",
    "next_logits",
    "next_probabilities",
    "print_sample",
    "stream",
    "load_gpt2",
    "load_llama",
    "load_tokenizer",
]
