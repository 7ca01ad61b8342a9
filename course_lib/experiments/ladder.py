"""The loss ladder, an ablation study: the same text and number of tokens, one change per rung, and what it gains.

    python -m course_lib.experiments.ladder           all rungs; writes the picture and the figures (minutes)
    python -m course_lib.experiments.ladder --track torch --rungs bigram,causal      some of them; writes nothing

All rungs are trained alike; a rung's figure is the loss over the whole validation part (windows side by side, every
position counted). What an idea gains depends on what is there already, so the last rung is also trained without each.
The same again for what changed from GPT-2 to today: six rungs above the last, the highest without each, and the six
rungs with other seeds.
"""

import argparse
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

from .. import get_track
from ..common.config import GPTConfig
from ..inference import generate
from ..text import Batches, CharTokenizer, load_corpus, split_by_position, windows
from ..training import WarmupCosine, evaluate, train

PICTURES = Path(__file__).resolve().parents[2] / "notebooks" / "pictures"


@dataclass(frozen=True)
class Rung:
    """One model of the ladder."""

    name: str
    changes: dict | None  # its settings of GPTConfig; None: the bigram table, which has no configuration
    cheats: bool = False  # it reads the answer, so its loss does not belong on the scale
    lr: float = 1.0  # its highest learning rate, as a multiple of the ladder's
    final: float = 0.1  # its last learning rate, as a fraction of the highest
    betas: tuple = (0.9, 0.999)


_POSITIONS = {"layers": 0, "norm": None, "residual": False, "activation": "none", "init": "scaled"}
_ATTENTION = {**_POSITIONS, "layers": 1, "heads": 1}
_HEADS = {**_ATTENTION, "heads": 4}
_RESIDUAL = {**_HEADS, "residual": True}
_NORM = {**_RESIDUAL, "norm": "pre"}
_MLP = {**_NORM, "activation": "gelu"}
_FULL = {**_MLP, "layers": 4, "init": "small", "residual_scaled": True}

RUNGS = {
    # updating one row of the bigram's table disturbs no other: it tolerates, and needs, a larger rate
    "bigram": Rung("bigram", None, lr=10),
    "positions": Rung("+ positions", _POSITIONS),
    "attention": Rung("+ attention, seeing everything", {**_ATTENTION, "causal": False}, cheats=True),
    "causal": Rung("+ causal mask", _ATTENTION),
    # the same matrices as before, their 64 columns read as 4 heads of 16
    "heads": Rung("+ 4 heads", _HEADS),
    "residual": Rung("+ residual path", _RESIDUAL),
    # f(norm(x)) instead of f(x), and one more LayerNorm before the head
    "norm": Rung("+ LayerNorm", _NORM),
    "mlp": Rung("+ MLP", _MLP),
    # 4 blocks instead of 1; the initial weights that a deep model needs, small, and smaller into the residual path;
    # and the schedule and betas of SMALL_RECIPE: twice the rate, down to 0, with a shorter memory
    "full": Rung("full recipe: 4 blocks", _FULL, lr=2, final=0.0, betas=(0.9, 0.95)),
}
# the last rung without one thing; its recipe, alone, is the other rungs'
_ONE_LESS = {
    "positions": {"positions": False}, "4 heads": {"heads": 1}, "residual path": {"residual": False},
    "LayerNorm": {"norm": None}, "MLP": {"activation": "none"}, "4 blocks": {"layers": 1}, "recipe": {},
}  # fmt: skip
WITHOUT = {
    f"without {name}": replace(RUNGS["full" if change else "mlp"], name=f"without {name}", changes={**_FULL, **change})
    for name, change in _ONE_LESS.items()
}
# what the models of today changed in that block: the same recipe, one change a rung
_TODAY = {
    "rotary": ("+ rotary positions", {"positions": "rotary"}),
    "qk_norm": ("+ QK-norm", {"qk_norm": True}),
    "rms_norm": ("+ RMSNorm", {"norm_layer": "rms_norm"}),
    "swiglu": ("+ SwiGLU", {"activation": "swiglu"}),
    "grouped": ("+ 2 key and value heads instead of 4", {"kv_heads": 2}),
    "no bias": ("+ no biases", {"bias": False}),
}
TODAY, _changes = {}, _FULL
for _key, (_name, _change) in _TODAY.items():
    _changes = {**_changes, **_change}
    TODAY[_key] = replace(RUNGS["full"], name=_name, changes=_changes)
_BACK = {
    "rotary positions": {"positions": True}, "QK-norm": {"qk_norm": False}, "RMSNorm": {"norm_layer": "layer_norm"},
    "SwiGLU": {"activation": "gelu"}, "sharing of heads": {"kv_heads": None}, "leaving biases out": {"bias": True},
}  # fmt: skip
TODAY_WITHOUT = {
    f"today, without {name}": replace(RUNGS["full"], name=f"without {name}", changes={**_changes, **change})
    for name, change in _BACK.items()
}
ALL = RUNGS | WITHOUT | TODAY | TODAY_WITHOUT
OTHER_SEEDS = (
    1,
    2,
)  # the rungs of today again, from other weights and batches: how far a second decimal can be trusted


@dataclass(frozen=True)
class Ladder:
    """The text and the recipe that all rungs share: 2,000 steps of 16 windows of 32, about a million tokens."""

    text: str
    context_length: int = 32
    width: int = 64
    batch_size: int = 16
    steps: int = 2000
    lr: float = 3e-3
    seed: int = 0

    @property
    def tokens(self):
        """The number of tokens that each rung sees in training."""
        return self.steps * self.batch_size * self.context_length

    def model(self, key, track="numpy"):
        """Return the untrained model of a rung."""
        models = get_track(track).models
        vocab_size, changes = len(CharTokenizer.from_text(self.text)), ALL[key].changes
        if changes is None:
            return models.Bigram(vocab_size, self.seed)
        return models.GPT(GPTConfig(vocab_size, self.context_length, self.width, **changes), self.seed)

    def climb(self, key, track="numpy", **options):
        """Train one rung; return (model, history, validation loss in nats per token). ``options`` go to ``train``."""
        model, optim = self.model(key, track), get_track(track).optim
        ids = CharTokenizer.from_text(self.text).encode(self.text)
        train_ids, validation_ids = split_by_position(ids, 0.9, self.context_length)
        rung = ALL[key]
        lr = self.lr * rung.lr
        optimizer = optim.AdamW(model.parameters(), lr, rung.betas)
        schedule = WarmupCosine(lr=lr, warmup_steps=self.steps // 20, total_steps=self.steps, min_lr=lr * rung.final)
        batches = Batches(train_ids, self.context_length, self.batch_size, self.seed)
        history = train(model, optimizer, batches, self.steps, schedule=schedule, clip=1.0, **options)
        loss = evaluate(model, *windows(validation_ids, self.context_length, stride=self.context_length))
        return model, history, loss

    def sample(self, model, length=150, seed=0):
        """Return ``length`` characters that a trained rung writes after the end of a line, at temperature 0.8."""
        tokenizer = CharTokenizer.from_text(self.text)
        return generate(model, tokenizer, "\n", length, temperature=0.8, seed=seed)[1:]


def measured(ladder, key, track="numpy", **options):
    """Climb one rung and return its line of the table, plain names and numbers; seconds are CPU time."""
    started = time.process_time()
    model, history, loss = ladder.climb(key, track, **options)
    return {
        "rung": key, "name": ALL[key].name, "loss": round(loss, 4), "cheats": key == "attention",
        "parameters": model.num_parameters(), "steps": history.steps, "tokens": ladder.tokens,
        "seconds": round(time.process_time() - started, 1), "track": track,
    }  # fmt: skip


def stored_loss(key):
    """Return the loss of a rung as the stored ladder has it: NumPy track, tinyshakespeare, seed 0."""
    stored = json.loads((PICTURES / "ladder.json").read_text(encoding="utf-8"))
    return next(rung["loss"] for part in ("rungs", "today") for rung in stored[part] if rung["rung"] == key)


def in_words(rungs):
    """Return the ladder as one sentence, the alt text of its picture."""
    parts = [f"{r['name'].removeprefix('+ ')} {r['loss']:.2f}{' (it cheats)' if r['cheats'] else ''}" for r in rungs]
    return f"Loss ladder, validation loss in nats per character: {'; '.join(parts)}."


def other_seeds(ladder, track="numpy"):
    """Climb the last rung and those of today with the other seeds: a list of {"rung", "seed", "loss"}."""
    return [
        {"rung": key, "seed": seed, "loss": measured(replace(ladder, seed=seed), key, track)["loss"]}
        for seed in OTHER_SEEDS
        for key in ("full", *TODAY)
    ]


def write(rungs, without, today, today_without, seeds, folder=PICTURES):
    """Write the picture ladder.png and the figures ladder.json, with the alt text for readers who cannot see it."""
    from ..views.ladder import ladder_picture  # here, because matplotlib is slow to import and training needs none

    folder.mkdir(exist_ok=True)
    alt = in_words(rungs)
    (folder / "ladder.png").write_bytes(ladder_picture(rungs, alt).png)
    figures = {"alt": alt, "rungs": rungs, "without": without, "today": today, "today_without": today_without}
    text = json.dumps(figures | {"other_seeds": seeds}, indent=1)
    (folder / "ladder.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--track", choices=["numpy", "torch"], default="numpy")
    parser.add_argument(
        "--rungs", default=",".join(RUNGS), help="some of %(default)s; if omitted, all rungs, and the files are written"
    )
    parser.add_argument("--steps", type=int, default=Ladder.steps)
    options = parser.parse_args()
    keys = [key.strip() for key in options.rungs.split(",")]
    for key in keys:
        if key not in ALL:
            parser.error(f"there is no rung {key!a}: choose from {', '.join(ALL)}")
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: at least one step")
    ladder, rungs = Ladder(load_corpus("tinyshakespeare").text, steps=options.steps), []
    size = f"{ladder.batch_size} x {ladder.context_length}"
    print(f"{ladder.steps:,} steps of {size} tokens per rung, {options.track} track")
    print(f"{'rung':32} {'parameters':>10} {'CPU s':>8} {'loss':>7} {'gain':>7}")
    before, whole = None, keys == list(RUNGS) and options.steps == Ladder.steps
    if whole:
        keys = list(ALL)
    for key in keys:
        rungs.append(rung := measured(ladder, key, options.track))
        gain = "cheats" if rung["cheats"] else "" if before is None else f"{before - rung['loss']:.3f}"  # < 0: a loss
        print(
            f"{rung['name']:32} {rung['parameters']:10,} {rung['seconds']:8.1f} {rung['loss']:7.3f} {gain:>7}",
            flush=True,
        )
        before = before if rung["cheats"] or key in WITHOUT | TODAY_WITHOUT else rung["loss"]
    if whole:
        parts = ([rung for rung in rungs if rung["rung"] in part] for part in (RUNGS, WITHOUT, TODAY, TODAY_WITHOUT))
        write(*parts, other_seeds(ladder, options.track))
        print(f"written: {PICTURES / 'ladder.png'} and ladder.json")


if __name__ == "__main__":
    main()
