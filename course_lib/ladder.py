"""The loss ladder: the same text, the same number of tokens, one change a rung, and what each change buys.

    python -m course_lib.ladder                       all rungs; writes the picture and the figures (minutes)
    python -m course_lib.ladder --track torch --rungs bigram,causal      some of them; writes nothing

Each rung is trained alike; its figure is the loss over the whole validation part (windows side by side, every position
counted).
"""

import argparse
import importlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

from .config import GPTConfig
from .text import Batches, CharTokenizer, load_corpus, split_by_position, windows
from .training import WarmupCosine, evaluate, train

PICTURES = Path(__file__).resolve().parents[1] / "notebooks" / "pictures"


@dataclass(frozen=True)
class Rung:
    """One model of the ladder: its ``name``, and what it ``changes`` against the bare GPT (of GPTConfig)."""

    name: str
    changes: dict | None  # None: the bigram table, which has no configuration
    cheats: bool = False  # it reads the answer, so its loss does not belong on the scale
    rate: float = 1.0  # its highest learning rate, as a multiple of the ladder's
    final: float = 0.1  # its last learning rate, as a part of the highest
    betas: tuple = (0.9, 0.999)


_POSITIONS = {"layers": 0, "wiring": "plain", "activation": "none", "initial": "scaled"}
_ATTENTION = {**_POSITIONS, "layers": 1, "heads": 1}
_HEADS = {**_ATTENTION, "heads": 4}
_RESIDUAL = {**_HEADS, "wiring": "pre"}
_MLP = {**_RESIDUAL, "activation": "gelu"}
_FULL = {**_MLP, "layers": 4, "initial": "small", "residual_scaled": True}

RUNGS = {
    # the table of the bigram has no neighbours to disturb: it takes, and needs, a larger rate
    "bigram": Rung("bigram", None, rate=10),
    "positions": Rung("+ positions", _POSITIONS),
    "attention": Rung("+ attention, seeing everything", {**_ATTENTION, "causal": False}, cheats=True),
    "causal": Rung("+ causal mask", _ATTENTION),
    # the same matrices as before, their 64 columns read as 4 heads of 16
    "heads": Rung("+ 4 heads", _HEADS),
    # x + f(norm(x)), and one more LayerNorm before the head
    "residual": Rung("+ residual path and LayerNorm", _RESIDUAL),
    "mlp": Rung("+ MLP", _MLP),
    # 4 blocks instead of 1; the starting weights that a deep model needs, small, and smaller into the residual path;
    # and the optimiser as in SMALL_RECIPE: twice the rate, down to 0, with a shorter memory
    "full": Rung("full recipe: 4 blocks", _FULL, rate=2, final=0.0, betas=(0.9, 0.95)),
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

    @property
    def tokens(self):
        """How many tokens each rung sees in training."""
        return self.steps * self.batch_size * self.context

    def model(self, key, track="numpy"):
        """The untrained model of a rung."""
        models = importlib.import_module(f"course_lib.{track}_track.models")
        vocabulary_size, changes = len(CharTokenizer.from_text(self.text)), RUNGS[key].changes
        if changes is None:
            return models.Bigram(vocabulary_size, self.seed)
        return models.GPT(GPTConfig(vocabulary_size, self.context, self.width, **changes), self.seed)

    def climb(self, key, track="numpy", **options):
        """Train one rung; returns (model, history, validation loss in nats per token). ``options`` go to ``train``."""
        model, optim = self.model(key, track), importlib.import_module(f"course_lib.{track}_track.optim")
        ids = CharTokenizer.from_text(self.text).encode(self.text)
        train_ids, validation_ids = split_by_position(ids, 0.9, self.context)
        rung = RUNGS[key]
        rate = self.rate * rung.rate
        optimizer = optim.AdamW(model.parameters(), rate, rung.betas)
        schedule = WarmupCosine(peak=rate, warmup=self.steps // 20, total=self.steps, final=rate * rung.final)
        batches = Batches(train_ids, self.context, self.batch_size, self.seed)
        history = train(model, optimizer, batches, self.steps, schedule=schedule, clip=1.0, **options)
        return model, history, evaluate(model, *windows(validation_ids, self.context, stride=self.context))


def measured(ladder, key, track="numpy", **options):
    """Climb one rung and return its line of the table, as plain names and numbers; seconds are the processor's."""
    started = time.process_time()
    model, history, loss = ladder.climb(key, track, **options)
    return {
        "rung": key, "name": RUNGS[key].name, "loss": round(loss, 4), "cheats": RUNGS[key].cheats,
        "parameters": model.number_of_parameters(), "steps": history.steps, "tokens": ladder.tokens,
        "seconds": round(time.process_time() - started, 1), "track": track,
    }  # fmt: skip


def in_words(rungs):
    """The ladder as one sentence, the alternative text of its picture."""
    parts = [f"{r['name'].removeprefix('+ ')} {r['loss']:.2f}{' (it cheats)' if r['cheats'] else ''}" for r in rungs]
    return f"Loss ladder, validation loss in nats per character: {'; '.join(parts)}."


def write(rungs, folder=PICTURES):
    """The picture ladder.png and the figures ladder.json, whose ``alt`` are the words for who cannot see it."""
    from .views.ladder import ladder_picture  # here: matplotlib is slow to come, and training needs none

    folder.mkdir(exist_ok=True)
    alt = in_words(rungs)
    (folder / "ladder.png").write_bytes(ladder_picture(rungs, alt).png)
    text = json.dumps({"alt": alt, "rungs": rungs}, indent=1)
    (folder / "ladder.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--track", choices=["numpy", "torch"], default="numpy")
    parser.add_argument("--rungs", default=",".join(RUNGS), help="some of %(default)s; without it, files are written")
    parser.add_argument("--steps", type=int, default=Ladder.steps)
    options = parser.parse_args()
    keys = [key.strip() for key in options.rungs.split(",")]
    for key in keys:
        if key not in RUNGS:
            parser.error(f"there is no rung {key!a}: choose from {', '.join(RUNGS)}")
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: at least one step")
    ladder, rungs = Ladder(load_corpus("tinyshakespeare").text, steps=options.steps), []
    print(f"{ladder.steps:,} steps of {ladder.batch_size} x {ladder.context} tokens a rung, {options.track} track")
    print(f"{'rung':32} {'parameters':>10} {'CPU s':>8} {'loss':>7} {'gain':>7}")
    before = None
    for key in keys:
        rungs.append(rung := measured(ladder, key, options.track))
        gain = "cheats" if rung["cheats"] else "" if before is None else f"{before - rung['loss']:.3f}"
        print(
            f"{rung['name']:32} {rung['parameters']:10,} {rung['seconds']:8.1f} {rung['loss']:7.3f} {gain:>7}",
            flush=True,
        )
        before = before if rung["cheats"] else rung["loss"]
    if keys == list(RUNGS) and options.steps == Ladder.steps:
        write(rungs)
        print(f"written: {PICTURES / 'ladder.png'} and ladder.json")


if __name__ == "__main__":
    main()
