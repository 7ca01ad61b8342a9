"""Sketches of one idea each, as vector graphics from a config or from the course's own numbers.

It imports the drawing and the style of views, inference and what lies below.
"""

from .attention import draw_attention_matrices, draw_split_heads
from .blocks import draw_blocks
from .generation import draw_beam, draw_cache
from .inside import draw_arcs, draw_induction, draw_note_and_look
from .learning import draw_data_parallel, plot_valley
from .loops import draw_training_loop, draw_writing_loop
from .positions import draw_rotary, draw_window
from .steps import draw_attention_steps, draw_backward_steps
from .stream import draw_mlp, draw_norm_places
from .text import draw_lookup, draw_window_examples, plot_embedding_map
from .today import draw_grouped_queries, draw_norms, draw_swiglu

__all__ = [
    "draw_arcs",
    "draw_attention_matrices",
    "draw_attention_steps",
    "draw_backward_steps",
    "draw_beam",
    "draw_blocks",
    "draw_cache",
    "draw_data_parallel",
    "draw_grouped_queries",
    "draw_induction",
    "draw_lookup",
    "draw_mlp",
    "draw_norm_places",
    "draw_norms",
    "draw_note_and_look",
    "draw_rotary",
    "draw_split_heads",
    "draw_swiglu",
    "draw_window",
    "draw_training_loop",
    "draw_window_examples",
    "draw_writing_loop",
    "plot_embedding_map",
    "plot_valley",
]
