"""One training loop, one evaluation and one checkpoint format for both tracks."""

from .checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from .evaluation import evaluate
from .history import History
from .schedule import WarmupCosine
from .trainer import train

__all__ = ["Checkpoint", "History", "WarmupCosine", "evaluate", "load_checkpoint", "save_checkpoint", "train"]
