"""Sketches of one idea each, as vector graphics from a config or from the course's own numbers.

It imports the drawing and the style of views, inference and what lies below.
"""

from .attention import draw_attention_matrices, draw_split_heads
from .blocks import draw_blocks
from .stream import draw_norm_places
from .text import draw_lookup, draw_window_examples, plot_embedding_map
from .today import draw_grouped_queries, draw_norms, draw_rotary, draw_swiglu, draw_window

__all__ = [
    "draw_attention_matrices",
    "draw_blocks",
    "draw_grouped_queries",
    "draw_lookup",
    "draw_norm_places",
    "draw_norms",
    "draw_rotary",
    "draw_split_heads",
    "draw_swiglu",
    "draw_window",
    "draw_window_examples",
    "plot_embedding_map",
]
