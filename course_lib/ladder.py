"""The loss ladder: the same text, the same number of tokens, one change a rung, and what each change buys.

Each rung is trained alike; its figure is the loss over the whole validation part (windows side by side, every position
counted). The rungs up to the causal mask are here.
"""

import importlib
from dataclasses import dataclass

from .config import GPTConfig
from .text import Batches, CharTokenizer, split_by_position, windows
from .training import WarmupCosine, evaluate, train


@dataclass(frozen=True)
class Rung:
    """One model of the ladder: its ``name``, and what it ``changes`` against the rung below (of GPTConfig)."""

    name: str
    changes: dict | None  # None: the bigram table, which has no configuration
    cheats: bool = False  # it reads the answer, so its loss does not belong on the scale


_POSITIONS = {"layers": 0, "wiring": "plain", "activation": "none", "initial": "scaled"}
_ATTENTION = {**_POSITIONS, "layers": 1, "heads": 1}

RUNGS = {
    "bigram": Rung("bigram", None),
    "positions": Rung("+ positions", _POSITIONS),
    "attention": Rung("+ attention, seeing everything", {**_ATTENTION, "causal": False}, cheats=True),
    "causal": Rung("+ causal mask", _ATTENTION),
}


@dataclass(frozen=True)
class Ladder:
    """What all rungs share: the text and the recipe. 2,000 steps of 16 windows of 32 are about a million tokens."""

    text: str
    context: int = 32
    width: int = 64
    batch_size: int = 16
    steps: int = 2000
    rate: float = 3e-3
    seed: int = 0

    def climb(self, key, track="numpy", **options):
        """Train one rung; returns (model, history, validation loss in nats per token). ``options`` go to ``train``."""
        models = importlib.import_module(f"course_lib.{track}_track.models")
        optim = importlib.import_module(f"course_lib.{track}_track.optim")
        tokenizer = CharTokenizer.from_text(self.text)
        train_ids, validation_ids = split_by_position(tokenizer.encode(self.text), 0.9, self.context)
        changes = RUNGS[key].changes
        if changes is None:
            model = models.Bigram(len(tokenizer), self.seed)
        else:
            model = models.GPT(GPTConfig(len(tokenizer), self.context, self.width, **changes), self.seed)
        # the table of the bigram has no neighbours to disturb: it takes, and needs, a larger rate
        rate = self.rate * (10 if changes is None else 1)
        optimizer = optim.AdamW(model.parameters(), rate)
        schedule = WarmupCosine(peak=rate, warmup=self.steps // 20, total=self.steps, final=rate / 10)
        batches = Batches(train_ids, self.context, self.batch_size, self.seed)
        history = train(model, optimizer, batches, self.steps, schedule=schedule, clip=1.0, **options)
        return model, history, evaluate(model, *windows(validation_ids, self.context, stride=self.context))
