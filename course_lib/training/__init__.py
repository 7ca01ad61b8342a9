"""One training loop, one evaluation and one checkpoint format for both tracks.

It imports ``common`` and ``text``, and finds a track by its name; inference, idiomatic and all above may import it.
"""

from .checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from .evaluation import evaluate
from .history import History, stopped
from .schedule import WarmupCosine
from .trainer import train

__all__ = [
    "Checkpoint",
    "History",
    "WarmupCosine",
    "evaluate",
    "load_checkpoint",
    "save_checkpoint",
    "stopped",
    "train",
]
