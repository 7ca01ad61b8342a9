"""Named settings of a model and its training, so that notebooks, checkpoints and tests mean the same run.

recipe = MARKET_RECIPE
data = recipe.data()
model = recipe.model("numpy", data, seed=0)
history = recipe.train("numpy", model, data, seed=0)
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field

import numpy as np

from .config import GPTConfig
from .text import Batches, CharTokenizer, WordTokenizer, load_corpus, split_by_position, windows
from .training import WarmupCosine, train
from .training.evaluation import check_windows

TOKENIZERS = {"characters": CharTokenizer, "words": WordTokenizer}


@dataclass(frozen=True)
class RecipeData:
    """A text made ready: its tokenizer, the ids of the training part, the windows of the whole validation part."""

    tokenizer: CharTokenizer | WordTokenizer
    train_ids: np.ndarray  # (N,)
    x: np.ndarray  # (n, T) windows of the validation part that do not overlap
    y: np.ndarray  # (n, T)


@dataclass(frozen=True)
class Recipe:
    """What a run is made of: text, model, steps, optimiser. A track and a seed make it one run."""

    corpus: str
    unit: str  # "characters" or "words"
    model_settings: dict = field(hash=False)  # of GPTConfig, without the size of the vocabulary
    steps: int
    batch_size: int
    rate: float  # the highest learning rate, after the warm-up
    final_rate: float
    warmup: int = 100
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.1  # on matrices and tables only
    clip: float = 1.0
    fraction: float = 0.9  # of the text that trains
    optimizer: str = "AdamW"  # or "Muon": the matrices of the blocks by Muon, the rest by AdamW

    def data(self, text: str | None = None) -> RecipeData:
        """The recipe's text (or another one), cut by position."""
        text = load_corpus(self.corpus).text if text is None else text
        tokenizer = TOKENIZERS[self.unit].from_text(text)
        context = self.model_settings["context"]
        train_ids, validation_ids = split_by_position(tokenizer.encode(text), self.fraction, context)
        return RecipeData(tokenizer, train_ids, *windows(validation_ids, context, stride=context))

    def model(self, track: str, data: RecipeData, seed: int = 0):
        """A fresh GPT of the track, "numpy" or "torch"; equal seeds give equal weights in both."""
        models = importlib.import_module(f"course_lib.{track}_track.models")
        return models.GPT(GPTConfig(len(data.tokenizer), **self.model_settings), seed)

    def train(self, track: str, model, data: RecipeData, seed: int = 0, steps: int | None = None, **options):
        """Train the model and return the History; `steps` ends early on the same schedule, `options` go to `train`."""
        optimizer = self.new_optimizer(importlib.import_module(f"course_lib.{track}_track"), model)
        batches = Batches(data.train_ids, model.context, self.batch_size, seed)
        schedule = WarmupCosine(self.rate, self.warmup, self.steps, self.final_rate)
        steps = self.steps if steps is None else steps
        return train(model, optimizer, batches, steps, schedule=schedule, clip=self.clip, **options)

    def new_optimizer(self, track, model):
        """The recipe's optimiser for a model of ``track``, the package of one track. ValueError for an unknown one."""
        settings = {"betas": self.betas, "weight_decay": self.weight_decay}
        if self.optimizer == "Muon":
            blocks = (p for block in model.blocks for p in block.parameters())
            return track.Muon(model.parameters(), self.rate, [p for p in blocks if p.ndim == 2], **settings)
        if self.optimizer == "AdamW":
            return track.AdamW(model.parameters(), self.rate, **settings)
        raise ValueError(f"optimizer must be 'AdamW' or 'Muon', not {self.optimizer!r}")


def token_losses(model, x: np.ndarray, y: np.ndarray, batch_size: int = 64) -> np.ndarray:
    """The loss of every single token of the windows x, y (n, T), in nats: float64 of shape (n, T).

    Raises ValueError when x and y differ in shape, or for a batch_size below 1.
    """
    x, y = check_windows(x, y, batch_size)
    losses = np.empty(y.shape)
    with model.evaluating():
        for start in range(0, len(x), batch_size):
            piece = slice(start, start + batch_size)
            logits = model(x[piece])[0].detach().numpy().astype(np.float64)  # (B, T, V)
            logits -= logits.max(axis=-1, keepdims=True)
            logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
            losses[piece] = -np.take_along_axis(logits, y[piece][..., None], axis=-1)[..., 0]
    return losses


def loss_by_position(model, x: np.ndarray, y: np.ndarray, batch_size: int = 64) -> np.ndarray:
    """Mean loss of each position of the windows x, y (n, T), as nats of shape (T,); the mean of it is the loss."""
    return token_losses(model, x, y, batch_size).mean(axis=0)


# Two layers of attention and no MLP learn which of two things is meant. The loss of that one word stays at ln 8 (any
# thing), slides as the model finds out which things stand in the text, and then falls to nearly nothing within some 50
# steps, when a head of the second layer begins to look at the right thing. Rounding decides when: the same seed dropped
# at step 525 in one track and 950 in the other, so the steps leave room. β₂ = 0.95 makes it earlier than 0.99; with an
# MLP the drop comes too, but the MLP makes the choice, and no head shows it.
MARKET_RECIPE = Recipe(
    corpus="market",
    unit="words",
    model_settings={"context": 38, "width": 48, "heads": 2, "layers": 2, "activation": "none"},
    steps=2000,
    batch_size=48,
    rate=5e-3,
    final_rate=1e-4,
    betas=(0.9, 0.95),
)

# The poet of notebook 00: characters of tinyshakespeare, small enough to ship (under 2 MB).
SHAKESPEARE_RECIPE = Recipe(
    corpus="tinyshakespeare",
    unit="characters",
    model_settings={
        "context": 64,
        "width": 96,
        "heads": 4,
        "layers": 4,
        "activation": "gelu",
        "residual_scaled": True,
    },
    steps=5000,
    batch_size=32,
    rate=3e-3,
    final_rate=1e-4,
    warmup=200,
)

# The small GPT, the size at which a public recipe exists that everybody can compare with: 4 layers, 4 heads, width 128,
# windows of 64, 12 at a time, 2,000 steps.
SMALL_RECIPE = Recipe(
    corpus="tinyshakespeare",
    unit="characters",
    model_settings={
        "context": 64,
        "width": 128,
        "heads": 4,
        "layers": 4,
        "activation": "gelu",
        "tied": True,
        "residual_scaled": True,
    },
    steps=2000,
    batch_size=12,
    rate=6e-3,
    final_rate=0.0,
    betas=(0.9, 0.95),
    optimizer="Muon",
)

# What the changes bought, (what, validation loss in nats per character), each line against the one above; whole runs of
# seed 0. The last line is the course's own, the better of its two tracks, which are some thousandths apart (rounding);
# for the others PyTorch's LayerNorm, GELU, attention and loss stood in place of the course's, for speed.
SMALL_CHANGES = (
    ("the public recipe: peak rate 1e-3, cosine down to a tenth of it, betas 0.9 and 0.99", 1.885),
    ("peak rate 6e-3", 1.773),
    ("cosine down to 0, and betas 0.9 and 0.95", 1.763),
    ("Muon for the matrices of the blocks", 1.588),
)
# What was tried on the way, with AdamW, and bought nothing, each against the third line above.
SMALL_TRIED = (
    ("peak rate 1e-2", 1.783),
    ("starting weights of the matrices half as large", 1.789),
    ("a head of its own, not tied", 1.781),
)
