"""Sketches of one idea each, as vector graphics from a config or from the course's own numbers.

It imports the drawing and the style of views, inference and what lies below.
"""

from .blocks import draw_blocks
from .today import draw_grouped_queries, draw_norms, draw_rotary, draw_swiglu, draw_window

__all__ = [
    "draw_blocks",
    "draw_grouped_queries",
    "draw_norms",
    "draw_rotary",
    "draw_swiglu",
    "draw_window",
]
