"""Trained models as files: safetensors, readable by both tracks. Nothing is unpickled."""

import dataclasses
import hashlib
import json
import os
import uuid
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .. import get_track
from ..common import config as configs
from ..text import CharTokenizer, WordTokenizer, shipped_folder
from .history import History

FORMAT = "gpt-twice 2"
SHIPPED = shipped_folder()
SHIPPED_NAMES = ("market-gpt", "shakespeare-gpt")
MODELS = {"FirstGPT": configs.FirstGPTConfig, "GPT": configs.GPTConfig}
HISTORY = ("losses", "lrs", "norms", "evaluations")
TOKENIZERS = {"CharTokenizer": CharTokenizer, "WordTokenizer": WordTokenizer}


@dataclasses.dataclass(repr=False)
class Checkpoint:
    """A loaded model, its tokenizer, and what is needed to resume training (None where it was not saved)."""

    model: object
    tokenizer: object
    optimizer_state: dict | None
    batches_state: dict | None
    note: str
    history: History | None = None

    def __repr__(self):
        count = f"{self.model.num_parameters():,} parameters"
        return f"Checkpoint: {type(self.model).__name__} of {count}{', ' if self.note else ''}{self.note}"


def save_checkpoint(path, model, tokenizer, optimizer=None, batches=None, note="", history=None):
    """Write ``model``, its config and vocabulary to ``path``; the rest is for resuming training.

    (The history knows at which step of the schedule to resume.) The file is written under a temporary name, then
    renamed, so an interrupted write leaves the old file whole. Raises TypeError for another kind of model or tokenizer,
    ValueError for the name of a shipped model, or for an optimiser or a vocabulary of another model.
    """
    path = Path(path)
    for kind, known in ((type(model).__name__, MODELS), (type(tokenizer).__name__, TOKENIZERS)):
        if kind not in known:
            raise TypeError(f"a checkpoint holds one of {', '.join(known)}, not a {kind}")
    if str(path) in SHIPPED_NAMES:
        raise ValueError(f"{path} is the name of a model that ships with the course: choose another file name")
    if optimizer is not None and not _holds(optimizer, model):
        raise ValueError("this optimiser does not hold the parameters of this model")
    if len(tokenizer.vocabulary) != model.vocab_size:
        raise ValueError(f"the tokenizer has {len(tokenizer.vocabulary)} tokens, the model {model.vocab_size}")
    arrays = {f"model.{key}": value for key, value in model.state_dict().items()}
    about = {
        "format": FORMAT, "model": type(model).__name__, "config": dataclasses.asdict(model.config), "note": note,
        "tokenizer": type(tokenizer).__name__, "vocabulary": list(tokenizer.vocabulary),
        "batches": None if batches is None else batches.state_dict(),
        "dropout": None if not hasattr(model, "dropout") else model.dropout.rng.bit_generator.state,
        "optimizer": None,
        "history": None if history is None else {"seconds": history.seconds, "stopped": history.stopped},
    }  # fmt: skip
    if history is not None:
        arrays |= {f"history.{key}": np.array(getattr(history, key), np.float64) for key in HISTORY}
    if optimizer is not None:
        state = optimizer.state_dict()
        arrays |= {f"optimizer.{key}": value for key, value in state.items() if isinstance(value, np.ndarray)}
        about["optimizer"] = {key: value for key, value in state.items() if not isinstance(value, np.ndarray)}
    arrays = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
    about["sha256"] = _fingerprint(about, arrays)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.part")  # another process may be writing, too
    try:
        temporary.write_bytes(save(arrays, {"about": json.dumps(about)}))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _holds(optimizer, model):
    """Return True if ``optimizer`` holds all trained parameters of ``model``, perhaps frozen ones, and no others."""
    held, mine = {id(p) for p in optimizer.parameters}, {id(p): p.requires_grad for p in model.parameters()}
    return held <= mine.keys() and all(key in held for key, trained in mine.items() if trained)


def load_checkpoint(path, track="numpy"):
    """Read a checkpoint into a model of ``track`` ("numpy" or "torch"), whichever track wrote it; return a Checkpoint.

    ``path`` is a file, or the name of a model that ships with the course: "market-gpt", "shakespeare-gpt".
    Raises FileNotFoundError, or ValueError that says what is wrong with the file.
    """
    models = get_track(track).models
    path = SHIPPED / f"{path}.safetensors" if path in SHIPPED_NAMES else Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        path.open("rb").close()  # PermissionError, if it may not be read
        with safe_open(path, "numpy") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            found = about.get("format") if isinstance(about, dict) else about
            arrays = {key: file.get_tensor(key) for key in file.keys()} if found == FORMAT else {}
    except (SafetensorError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a complete safetensors file: {error}") from error
    except (AttributeError, TypeError) as error:  # what safetensors says of bfloat16 and its like
        raise ValueError(f"{path} holds numbers that this course does not write: {error}") from error
    if found == "gpt-twice 1":
        raise ValueError(f"{path} was written by an earlier version of the course, with other names: train it again")
    if found != FORMAT:
        raise ValueError(f"{path} was not written by this course: its format is {found!r}, not {FORMAT!r}")
    try:
        return _build(about, arrays, models)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged, its parts do not fit together: {type(error).__name__} {error}") from error


def _build(about, arrays, models):
    if about.pop("sha256") != _fingerprint(about, arrays):
        raise ValueError("its arrays or its vocabulary are not those that were written")
    config = MODELS[about["model"]](**about["config"])
    model = getattr(models, about["model"])(config)
    model.load_state_dict(_part(arrays, "model."))
    if about["dropout"]:
        model.dropout.rng.bit_generator.state = about["dropout"]
    tokenizer = TOKENIZERS[about["tokenizer"]](about["vocabulary"])
    if len(tokenizer) != model.vocab_size:
        raise ValueError(f"{len(tokenizer)} tokens in the vocabulary, {model.vocab_size} in the model")
    optimizer = None if about["optimizer"] is None else about["optimizer"] | _part(arrays, "optimizer.")
    history = about.get("history") and History(**_history(arrays), **about["history"])
    return Checkpoint(model, tokenizer, optimizer, about["batches"], about["note"], history)


def _history(arrays):
    """Return the entries of a History: lists of floats, and pairs of a step and a loss."""
    rows = {key: arrays[f"history.{key}"].tolist() for key in HISTORY}
    return rows | {"evaluations": [(int(step), loss) for step, loss in rows["evaluations"]]}


def _fingerprint(about, arrays):
    """Return the SHA-256 of everything that is stored: a flipped bit would otherwise go unnoticed."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for key in sorted(arrays):
        digest.update(key.encode() + arrays[key].tobytes())
    return digest.hexdigest()


def _part(arrays, prefix):
    return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
