"""What both tracks are built on: configs, initial weights, checks of input, the base of all layers. NumPy only.

It imports nothing else from the course; everything above may import it.
"""

from .config import FirstGPTConfig, GPTConfig, TransformerConfig
from .initializer import Initializer

__all__ = ["FirstGPTConfig", "GPTConfig", "Initializer", "TransformerConfig"]
