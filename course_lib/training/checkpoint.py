"""Trained models as files: safetensors, written beside and renamed, readable by both tracks. Nothing is unpickled."""

import dataclasses
import hashlib
import importlib
import json
import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .. import config as configs
from ..text import CharTokenizer, WordTokenizer
from .history import History

FORMAT = "gpt-twice 1"
SHIPPED = Path(__file__).resolve().parents[2] / "data"
SHIPPED_NAMES = ("market-gpt", "shakespeare-gpt")
MODELS = {"FirstGPT": configs.FirstGPTConfig, "GPT": configs.GPTConfig}
HISTORY = ("losses", "rates", "norms", "evaluations")
TOKENIZERS = {"CharTokenizer": CharTokenizer, "WordTokenizer": WordTokenizer}


@dataclasses.dataclass
class Checkpoint:
    """A loaded model, its tokenizer, and what a later run needs to go on (None where it was not saved)."""

    model: object
    tokenizer: object
    optimizer_state: dict | None
    batches_state: dict | None
    note: str
    history: History | None = None


def save_checkpoint(path, model, tokenizer, optimizer=None, batches=None, note="", history=None):
    """Write ``model``, its config and vocabulary to ``path``; with ``optimizer``, ``batches`` and ``history``, training
    can go on. (The history says at which step the schedule stands.)

    The file is written under another name first and then renamed, so an interrupted write leaves the old file whole.
    """
    path = Path(path)
    name = type(model).__name__
    if name not in MODELS:
        raise TypeError(f"a checkpoint holds one of {', '.join(MODELS)}, not a {name}")
    if type(tokenizer).__name__ not in TOKENIZERS:
        raise TypeError(f"a checkpoint holds one of {', '.join(TOKENIZERS)}, not a {type(tokenizer).__name__}")
    if str(path) in SHIPPED_NAMES:
        raise ValueError(f"{path} is the name of a model that ships with the course: choose another file name")
    if optimizer is not None and {id(p) for p in optimizer.parameters} != {id(p) for p in model.parameters()}:
        raise ValueError("this optimiser does not hold the parameters of this model")
    if len(tokenizer.vocabulary) != model.vocabulary_size:
        raise ValueError(f"the tokenizer has {len(tokenizer.vocabulary)} tokens, the model {model.vocabulary_size}")
    arrays = {f"model.{key}": value for key, value in model.state().items()}
    about = {
        "format": FORMAT, "model": name, "config": dataclasses.asdict(model.config), "note": note,
        "tokenizer": type(tokenizer).__name__, "vocabulary": list(tokenizer.vocabulary),
        "batches": None if batches is None else batches.state(),
        "dropout": None if not hasattr(model, "dropout") else model.dropout.rng.bit_generator.state,
        "optimizer": None,
        "history": None if history is None else {"seconds": history.seconds, "stopped": history.stopped},
    }  # fmt: skip
    if history is not None:
        arrays |= {f"history.{key}": np.array(getattr(history, key), np.float64) for key in HISTORY}
    if optimizer is not None:
        state = optimizer.state()
        arrays |= {f"optimizer.{key}": value for key, value in state.items() if isinstance(value, np.ndarray)}
        about["optimizer"] = {key: value for key, value in state.items() if not isinstance(value, np.ndarray)}
    arrays = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
    about["sha256"] = _fingerprint(about, arrays)
    beside = path.with_name(path.name + ".part")
    try:
        beside.write_bytes(save(arrays, {"about": json.dumps(about)}))
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def load_checkpoint(path, track="numpy"):
    """Read a checkpoint into a model of ``track`` ("numpy" or "torch"), whichever track wrote it. Returns a Checkpoint.

    ``path`` is a file, or the name of a model that ships with the course: "market-gpt", "shakespeare-gpt".
    Raises FileNotFoundError, or ValueError that says what is wrong with the file.
    """
    if track not in ("numpy", "torch"):
        raise ValueError(f"track must be 'numpy' or 'torch', not {track!r}")
    path = SHIPPED / f"{path}.safetensors" if path in SHIPPED_NAMES else Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        path.open("rb").close()  # a file that may not be read says so here
        with safe_open(path, "numpy") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            arrays = {key: file.get_tensor(key) for key in file.keys()}
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        found = about.get("format") if isinstance(about, dict) else about
        raise ValueError(f"{path} was not written by this course: its format is {found!r}, not {FORMAT!r}")
    try:
        return _build(about, arrays, importlib.import_module(f"course_lib.{track}_track.models"))
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged, its parts do not fit together: {type(error).__name__} {error}") from error


def _build(about, arrays, models):
    if about.pop("sha256") != _fingerprint(about, arrays):
        raise ValueError("its numbers or its vocabulary are not those that were written")
    config = MODELS[about["model"]](**about["config"])
    model = getattr(models, about["model"])(config)
    model.load_state(_part(arrays, "model."))
    if about["dropout"]:
        model.dropout.rng.bit_generator.state = about["dropout"]
    tokenizer = TOKENIZERS[about["tokenizer"]](about["vocabulary"])
    if len(tokenizer) != model.vocabulary_size:
        raise ValueError(f"{len(tokenizer)} tokens in the vocabulary, {model.vocabulary_size} in the model")
    optimizer = None if about["optimizer"] is None else about["optimizer"] | _part(arrays, "optimizer.")
    history = about.get("history") and History(**_history(arrays), **about["history"])
    return Checkpoint(model, tokenizer, optimizer, about["batches"], about["note"], history)


def _history(arrays):
    """The rows of a History as it holds them: lists of floats, and pairs of a step and a loss."""
    rows = {key: arrays[f"history.{key}"].tolist() for key in HISTORY}
    return rows | {"evaluations": [(int(step), loss) for step, loss in rows["evaluations"]]}


def _fingerprint(about, arrays):
    """SHA-256 over everything that is stored: a flipped bit would otherwise go unnoticed."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for key in sorted(arrays):
        digest.update(key.encode() + arrays[key].tobytes())
    return digest.hexdigest()


def _part(arrays, prefix):
    return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
