"""Trained models as files: safetensors, written beside and renamed, readable by both tracks. Nothing is unpickled."""

import dataclasses
import importlib
import json
import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .. import config as configs
from ..text import tokenizers

FORMAT = "gpt-twice 1"
SHIPPED = Path(__file__).resolve().parents[2] / "data"
SHIPPED_NAMES = ("market-gpt", "shakespeare-gpt")
MODELS = {"FirstGPT": "FirstGPTConfig", "GPT": "GPTConfig"}


@dataclasses.dataclass
class Checkpoint:
    """A loaded model, its tokenizer, and what a later run needs to go on (None where it was not saved)."""

    model: object
    tokenizer: object
    optimizer_state: dict | None
    batches_state: dict | None
    note: str


def save_checkpoint(path, model, tokenizer, optimizer=None, batches=None, note=""):
    """Write ``model`` with its config and vocabulary to ``path``; with ``optimizer`` and ``batches``, training can go on.

    The file is written under another name first and then renamed, so an interrupted write leaves the old file whole.
    """
    path = Path(path)
    name = type(model).__name__
    if name not in MODELS:
        raise TypeError(f"a checkpoint holds one of {', '.join(MODELS)}, not a {name}")
    if len(tokenizer.vocabulary) != model.vocabulary_size:
        raise ValueError(f"the tokenizer has {len(tokenizer.vocabulary)} tokens, the model {model.vocabulary_size}")
    arrays = {f"model.{key}": value for key, value in model.state().items()}
    about = {
        "format": FORMAT, "model": name, "config": dataclasses.asdict(model.config), "note": note,
        "tokenizer": type(tokenizer).__name__, "vocabulary": list(tokenizer.vocabulary),
        "batches": None if batches is None else batches.state(),
        "dropout": None if not hasattr(model, "dropout") else model.dropout.rng.bit_generator.state,
        "optimizer": None,
    }  # fmt: skip
    if optimizer is not None:
        state = optimizer.state()
        arrays |= {f"optimizer.{key}": value for key, value in state.items() if isinstance(value, np.ndarray)}
        about["optimizer"] = {key: value for key, value in state.items() if not isinstance(value, np.ndarray)}
    beside = path.with_name(path.name + ".part")
    try:
        content = save({key: np.ascontiguousarray(value) for key, value in arrays.items()}, {"about": json.dumps(about)})
        beside.write_bytes(content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def load_checkpoint(path, track="numpy"):
    """Read a checkpoint into a model of ``track`` ("numpy" or "torch"), whichever track wrote it. Returns a Checkpoint.

    ``path`` is a file, or the name of a model that ships with the course: "market-gpt", "shakespeare-gpt". Raises FileNotFoundError, or ValueError that says what is wrong with the file.
    """
    if track not in ("numpy", "torch"):
        raise ValueError(f"track must be 'numpy' or 'torch', not {track!r}")
    path = SHIPPED / f"{path}.safetensors" if path in SHIPPED_NAMES else Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with safe_open(path, "numpy") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    if about.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by this course: its format is {about.get('format')!r}, not {FORMAT!r}")
    models = importlib.import_module(f"course_lib.{track}_track.models")
    model = getattr(models, about["model"])(getattr(configs, MODELS[about["model"]])(**about["config"]))
    model.load_state(_part(arrays, "model."))
    if about["dropout"]:
        model.dropout.rng.bit_generator.state = about["dropout"]
    tokenizer = getattr(tokenizers, about["tokenizer"])(about["vocabulary"])
    optimizer = None if about["optimizer"] is None else about["optimizer"] | _part(arrays, "optimizer.")
    return Checkpoint(model, tokenizer, optimizer, about["batches"], about["note"])


def _part(arrays, prefix):
    return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
