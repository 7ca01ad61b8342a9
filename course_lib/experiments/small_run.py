"""The small GPT, one change at a time: what made it better, and what did not.

    python -m course_lib.experiments.small_run                        all lines; writes the figures (an hour or more)
    python -m course_lib.experiments.small_run --lines rotary,conv    some of them; the other figures stay

Every line is a whole run of seed 0 over 1,536,000 characters; its figure is the loss over the whole validation part.
Runs that differ only in rounding or in the seed differ by some 0.005: less than that between two lines says nothing.
For speed the model is trained as an nn.Module, starting from the weights of the raw model, so that the last decimals
are not those of ``reproduce small``, which trains the first and the best of these models in both tracks.
"""

import argparse
import json
import os
from dataclasses import dataclass, field, replace

from .. import get_track
from ..text import Batches, load_corpus
from ..training import WarmupCosine, evaluate, train
from .ladder import PICTURES
from .recipes import BEST_RECIPE, SMALL_RECIPE
from .reproduce.checks import side_by_side

FIGURES = PICTURES / "small.json"


@dataclass(frozen=True)
class Line:
    """One change: in words, and as settings of GPTConfig and of the Recipe."""

    what: str
    model: dict = field(default_factory=dict)
    recipe: dict = field(default_factory=dict)

    def after(self, recipe):
        """Return ``recipe`` with this change."""
        return replace(recipe, **{"model_settings": {**recipe.model_settings, **self.model}, **self.recipe})


# each is one change more than the line above it
CHANGES = {
    "small": Line("the small GPT with Muon"),
    "rotary": Line("rotary positions", {"positions": "rotary"}),
    "qk_norm": Line("QK-norm", {"qk_norm": True}),
    "adamw_lr": Line("a rate of 2e-2 for tables and vectors, which AdamW moves", recipe={"adamw_lr": 2e-2}),
    "embedding": Line(
        "token table N(0, 0.1), its vectors normalised before the first block",
        {"embedding_std": 0.1, "embedding_norm": True},
    ),
    "conv": Line("a convolution over the last 3 positions before each MLP", {"conv_kernel": 3}),
    "head": Line("a head of its own, not tied", {"tied": False}),
}
# each is one change from the last line above, and gained nothing, or too little to tell
TRIED = {
    "today": Line("RMSNorm and SwiGLU", {"norm_layer": "rms_norm", "activation": "swiglu"}),
    "one rate": Line("one rate for all, 6e-3", recipe={"adamw_lr": None}),
    "plain": Line("token table N(0, 0.02), not normalised", {"embedding_std": None, "embedding_norm": False}),
}
LINES = CHANGES | TRIED


def recipe_of(key):
    """Return the Recipe of a line."""
    if key in TRIED:
        return TRIED[key].after(BEST_RECIPE)
    recipe = SMALL_RECIPE
    for name, line in CHANGES.items():
        recipe = line.after(recipe)
        if name == key:
            return recipe
    raise KeyError(key)


def measured(key, text=None, steps=None):
    """Train one line, on tinyshakespeare or another ``text``, and return its row: plain names and numbers."""
    from ..idiomatic.gpt import GPT  # here, because PyTorch is slow to import
    from ..idiomatic.training import OnDevice
    from ..idiomatic.weights import load_raw

    recipe = recipe_of(key)
    data = recipe.data(text)
    raw = recipe.model("torch", data, seed=0)
    model = OnDevice(load_raw(GPT(raw.config), raw.state_dict()))
    matrices = [p for p in model.model.blocks.parameters() if p.ndim == 2]
    settings = {"betas": recipe.betas, "weight_decay": recipe.weight_decay, "adamw_lr": recipe.adamw_lr}
    optimizer = get_track("torch").Muon(model.parameters(), recipe.lr, matrices, **settings)
    batches = Batches(data.train_ids, raw.context_length, recipe.batch_size, seed=0)
    schedule = WarmupCosine(recipe.lr, recipe.warmup_steps, recipe.steps, recipe.min_lr)
    steps = recipe.steps if steps is None else steps
    train(model, optimizer, batches, steps, schedule=schedule, clip=recipe.clip, progress=False)
    return {
        "line": key, "what": LINES[key].what, "loss": round(evaluate(model, data.x, data.y), 4),
        "parameters": raw.num_parameters(), "tokens": steps * recipe.batch_size * raw.context_length,
    }  # fmt: skip


def stored():
    """Return the rows that are stored, line -> row."""
    if not FIGURES.is_file():
        return {}
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    return {row["line"]: row for part in ("changes", "tried") for row in figures[part]}


def store(row):
    """Put a row among the stored ones, in place of an older one of the same line."""
    rows = stored() | {row["line"]: row}
    parts = {"changes": CHANGES, "tried": TRIED}
    figures = {name: [rows[key] for key in part if key in rows] for name, part in parts.items()}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8", newline="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", default=",".join(LINES), help="some of: %(default)s")
    parser.add_argument("--jobs", type=int, default=max(1, min(2, os.cpu_count() or 1)), help="runs at a time")
    options = parser.parse_args()
    keys = [key.strip() for key in options.lines.split(",")]
    for key in keys:
        if key not in LINES:
            parser.error(f"there is no line {key!a}: choose from {', '.join(LINES)}")
    if options.jobs < 1:
        parser.error(f"--jobs {options.jobs}: at least one run at a time")
    load_corpus(SMALL_RECIPE.corpus)  # fetch the text, or fail, before any work starts
    for _, row in side_by_side(measured, [(key,) for key in keys], options.jobs):
        store(row)
        print(f"{row['loss']:.4f}  {row['parameters']:9,} parameters  {row['what']}", flush=True)


if __name__ == "__main__":
    main()
