"""GPT-2 (Radford et al. 2019) from the course's own blocks, with the published weights, in both tracks.

Its shape is that of ``GPT`` with biases in the attention, the tanh form of GELU, and a head that shares the token
table. The published file has other names and keeps query, key and value in one matrix; its matrices are
(fan_in, fan_out), as the course's are and torch.nn.Linear's are not. The files are the user's: a folder with
``model.safetensors`` and, for text, ``vocab.json`` and ``merges.txt`` of a GPT-2.
"""

import importlib
import json
import re
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from .config import GPTConfig

WEIGHTS, SETTINGS = "model.safetensors", "config.json"
HEAD_SIZE = 64  # D in all four published sizes


def gpt2_config(layers=12, heads=12, width=768, context=1024, vocabulary_size=50257, dtype="float32", dropout=0.0):
    """The GPTConfig of GPT-2; the defaults are the smallest published one, 124,439,808 parameters."""
    return GPTConfig(
        vocabulary_size, context, width, heads, layers, activation="gelu", tied=True, residual_scaled=True,
        attention_bias=True, dropout=dropout, dtype=dtype,
    )  # fmt: skip


def _names(layers):
    """Published name -> our name of every parameter that is the same array; c_attn is left to ``from_gpt2_state``."""
    names = {"wte.weight": "token.table", "wpe.weight": "position"}
    for i in range(layers):
        theirs, ours = f"h.{i}.", f"blocks.{i}."
        for norm, sublayer in (("ln_1", "attention"), ("ln_2", "mlp")):
            names[f"{theirs}{norm}.weight"] = f"{ours}{sublayer}.norm.gain"
            names[f"{theirs}{norm}.bias"] = f"{ours}{sublayer}.norm.bias"
        for matrix, layer in (
            ("attn.c_proj", "attention.layer.output"),
            ("mlp.c_fc", "mlp.layer.inner"),
            ("mlp.c_proj", "mlp.layer.outer"),
        ):
            for kind in ("weight", "bias"):
                names[f"{theirs}{matrix}.{kind}"] = f"{ours}{layer}.{kind}"
    return names | {"ln_f.weight": "norm.gain", "ln_f.bias": "norm.bias"}


def gpt2_shapes(config):
    """Published name -> shape of every array of a GPT-2 of this size."""
    V, T, C = config.vocabulary_size, config.context, config.width
    shapes = {"wte.weight": (V, C), "wpe.weight": (T, C)}
    for i in range(config.layers):
        for name, fan_in, fan_out in (
            ("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C), ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C),
        ):  # fmt: skip
            shapes |= {f"h.{i}.{name}.weight": (fan_in, fan_out), f"h.{i}.{name}.bias": (fan_out,)}
        shapes |= {f"h.{i}.{norm}.{kind}": (C,) for norm in ("ln_1", "ln_2") for kind in ("weight", "bias")}
    return shapes | {"ln_f.weight": (C,), "ln_f.bias": (C,)}


def from_gpt2_state(arrays, heads=None, dtype="float32"):
    """``(config, state)`` from the arrays of a published file: a GPTConfig and what ``GPT.load_state`` takes.

    The size is read from the shapes, all but the number of heads: without it a head has 64 numbers, as in every
    published size. Raises ValueError that names each array that is missing, unknown, or of another shape.
    """
    arrays = _tidied(arrays)
    for name in ("wte.weight", "wpe.weight"):
        if np.ndim(arrays.get(name)) != 2:
            raise ValueError(f"this is no GPT-2: {name} is missing or no matrix")
    (size, width), context = arrays["wte.weight"].shape, len(arrays["wpe.weight"])
    layers = 1 + max((int(m[1]) for name in arrays if (m := re.match(r"h\.(\d+)\.", name))), default=-1)
    heads = max(1, width // HEAD_SIZE) if heads is None else heads
    config = gpt2_config(layers, heads, width, context, size, dtype)
    shapes = gpt2_shapes(config)
    wrong = [f"{name} is missing" for name in shapes if name not in arrays]
    wrong += [f"{name} is unknown" for name in arrays if name not in shapes]
    wrong += [
        f"{name} has shape {arrays[name].shape}, not {shape}"
        for name, shape in shapes.items()
        if name in arrays and arrays[name].shape != shape
    ]
    if wrong:
        more = f"; and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        blocks = "one block" if layers == 1 else f"{layers} blocks"
        raise ValueError(f"these weights are no GPT-2 of {blocks}: {'; '.join(wrong[:10])}{more}")
    state = {ours: arrays[theirs] for theirs, ours in _names(layers).items()}
    for i in range(layers):
        for kind in ("weight", "bias"):
            three = np.split(arrays[f"h.{i}.attn.c_attn.{kind}"], 3, axis=-1)  # (C, 3C) -> three (C, C)
            for part, array in zip(("query", "key", "value"), three):
                state[f"blocks.{i}.attention.layer.{part}.{kind}"] = array
    return config, state


def to_gpt2_state(model):
    """The other way: the weights of a GPT of this shape under the published names, query, key and value in one."""
    state, layers = model.state(), model.config.layers
    arrays = {theirs: state[ours] for theirs, ours in _names(layers).items()}
    for i in range(layers):
        for kind in ("weight", "bias"):
            three = [state[f"blocks.{i}.attention.layer.{part}.{kind}"] for part in ("query", "key", "value")]
            arrays[f"h.{i}.attn.c_attn.{kind}"] = np.concatenate(three, axis=-1)
    return arrays


def _tidied(arrays):
    """Without what is no parameter: a prefix that some files carry, stored masks, and a second copy of the table."""
    arrays = {name.removeprefix("transformer."): array for name, array in arrays.items()}
    arrays = {k: v for k, v in arrays.items() if not re.fullmatch(r"h\.\d+\.attn\.(masked_)?bias", k)}
    head = arrays.pop("lm_head.weight", None)
    if head is not None and not np.array_equal(head, arrays.get("wte.weight")):
        raise ValueError("lm_head.weight is not wte.weight: in a GPT-2 the head shares the token table")
    return arrays


def load_gpt2(folder, track="numpy", dtype="float32"):
    """The published weights in ``folder`` as a GPT of ``track``, "numpy" or "torch".

    The number of heads is read from ``config.json``, if it lies there. Raises FileNotFoundError that names the missing
    file, ValueError for a file that is damaged or holds something else.
    """
    if track not in ("numpy", "torch"):
        raise ValueError(f"track must be 'numpy' or 'torch', not {track!r}")
    folder = Path(folder)
    path = _there(folder / WEIGHTS)
    try:
        arrays = load_file(path)
    except (SafetensorError, AttributeError, KeyError, TypeError) as error:  # also a precision that NumPy lacks
        raise ValueError(
            f"{path} is not a whole safetensors file, or not in numbers that NumPy knows: {error}"
        ) from error
    heads = None
    if (folder / SETTINGS).is_file():
        heads = json.loads((folder / SETTINGS).read_text(encoding="utf-8")).get("n_head")
    try:
        config, state = from_gpt2_state(arrays, heads, dtype)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    model = importlib.import_module(f"course_lib.{track}_track.models").GPT(config)
    model.load_state(state)
    return model


class GPT2Tokenizer:
    """GPT-2's byte-level BPE by the library ``tokenizers``, with the user's ``vocab.json`` and ``merges.txt``.

    Text is cut into pieces of bytes, so nothing is unknown. Raises FileNotFoundError for a missing file, ImportError
    that says what to install.
    """

    unit = "byte pair"

    def __init__(self, folder):
        vocabulary, merges = (str(_there(Path(folder) / name)) for name in ("vocab.json", "merges.txt"))
        try:
            from tokenizers import ByteLevelBPETokenizer
        except ImportError as error:
            raise ImportError("GPT-2's tokenizer needs the library tokenizers: pip install tokenizers") from error
        self._library = ByteLevelBPETokenizer(vocabulary, merges)

    def __len__(self):
        return self._library.get_vocab_size()

    def encode(self, text):
        """The ids of a text, int64 of shape (N,)."""
        return np.array(self._library.encode(text).ids, np.int64)

    def decode(self, ids):
        """The text of ids: ``decode(encode(text)) == text``."""
        return self._library.decode([int(i) for i in ids])


def _there(path):
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: the files of a published GPT-2 are not part of the course; put them in this folder"
        )
    return path
