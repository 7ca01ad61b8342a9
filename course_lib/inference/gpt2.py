"""GPT-2 (Radford et al. 2019) from the course's own blocks, with the published weights, in both tracks.

Its shape is that of ``GPT`` with biases in attention, the tanh form of GELU, and a head that shares the token table.
The published file uses other names and keeps query, key and value in one matrix; its matrices are (fan_in, fan_out),
like the course's and unlike torch.nn.Linear's. ``load_tokenizer`` reads the tokenizer in the same folder.
"""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np

from .. import get_track
from ..common.checks import check_whole, mismatches
from ..common.config import GPTConfig
from .published import read_json, read_weights

SETTINGS = "config.json"
HEAD_SIZE = 64  # D in all four published sizes
# names in config.json -> ours; the first five are ways to compute the tanh form
ACTIVATIONS = dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"), "gelu")
ACTIVATIONS |= {"relu": "relu"}
# every other setting that changes the numbers of a GPT-2, and the one value that the course's model has
FIXED = {
    "model_type": "gpt2", "add_cross_attention": False, "is_encoder_decoder": False,
    "quantization_config": None, "auto_map": None, "pruned_heads": {},
}  # fmt: skip
SIZES = {
    "n_embd": "width", "hidden_size": "width", "n_layer": "layers", "num_hidden_layers": "layers",
    "n_head": "heads", "num_attention_heads": "heads", "n_positions": "context_length",
    "max_position_embeddings": "context_length", "vocab_size": "vocab_size",
}  # fmt: skip


def gpt2_config(layers=12, heads=12, width=768, context_length=1024, vocab_size=50257, dtype="float32", dropout=0.0):
    """Return the GPTConfig of a GPT-2; the defaults give the smallest published one, 124,439,808 parameters."""
    return GPTConfig(
        vocab_size, context_length, width, heads, layers, activation="gelu", tied=True, residual_scaled=True,
        attention_bias=True, dropout=dropout, dtype=dtype,
    )  # fmt: skip


def _names(layers):
    """Return published name -> our name for every array that both have; c_attn is left to ``from_gpt2_state``."""
    names = {"wte.weight": "token.weight", "wpe.weight": "position"}
    for i in range(layers):
        theirs, ours = f"h.{i}.", f"blocks.{i}."
        for norm, sublayer in (("ln_1", "attention"), ("ln_2", "mlp")):
            names[f"{theirs}{norm}.weight"] = f"{ours}{sublayer}.norm.weight"
            names[f"{theirs}{norm}.bias"] = f"{ours}{sublayer}.norm.bias"
        for matrix, layer in (
            ("attn.c_proj", "attention.layer.output"),
            ("mlp.c_fc", "mlp.layer.up"),
            ("mlp.c_proj", "mlp.layer.down"),
        ):
            for kind in ("weight", "bias"):
                names[f"{theirs}{matrix}.{kind}"] = f"{ours}{layer}.{kind}"
    return names | {"ln_f.weight": "norm.weight", "ln_f.bias": "norm.bias"}


def gpt2_shapes(config):
    """Return published name -> shape for every array of a GPT-2 of this size."""
    V, T, C = config.vocab_size, config.context_length, config.width
    shapes = {"wte.weight": (V, C), "wpe.weight": (T, C)}
    for i in range(config.layers):
        for name, fan_in, fan_out in (
            ("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C), ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C),
        ):  # fmt: skip
            shapes |= {f"h.{i}.{name}.weight": (fan_in, fan_out), f"h.{i}.{name}.bias": (fan_out,)}
        shapes |= {f"h.{i}.{norm}.{kind}": (C,) for norm in ("ln_1", "ln_2") for kind in ("weight", "bias")}
    return shapes | {"ln_f.weight": (C,), "ln_f.bias": (C,)}


def from_gpt2_state(arrays, heads=None, dtype="float32", settings=None):
    """Convert the arrays of a published file to ``(config, state)``: a GPTConfig, and a dict for ``load_state_dict``.

    All sizes but the number of heads are read from the shapes; with ``heads`` None the head size is 64, as in every
    published size. ``settings`` is the content of config.json: each one that changes the numbers is followed or
    refused. Another scale of the scores is a factor of the query's weights. Raises ValueError that names each array
    that is missing, unknown, of another shape or not of floating-point numbers, and each setting that cannot be
    followed, with its value.
    """
    if settings is not None:
        _refuse_settings(settings, "lm_head.weight" in arrays)
    settings, arrays = settings or {}, _tidied(arrays)
    for name in ("wte.weight", "wpe.weight"):
        if np.ndim(arrays.get(name)) != 2:
            raise ValueError(f"this is not a GPT-2: {name} is missing or not a matrix")
    (size, width), context = arrays["wte.weight"].shape, len(arrays["wpe.weight"])
    layers = 1 + max((int(m[1]) for name in arrays if (m := re.match(r"h\.(\d+)\.", name))), default=-1)
    if heads is None:
        heads = next((settings[name] for name in ("n_head", "num_attention_heads") if name in settings), None)
        heads = max(1, width // HEAD_SIZE) if heads is None else heads
    config = gpt2_config(layers, heads, width, context, size, dtype)
    config = dataclasses.replace(
        config,
        activation=ACTIVATIONS[settings.get("activation_function", "gelu_new")],
        norm_eps=settings.get("layer_norm_epsilon", 1e-5),
    )
    if wrong := mismatches(arrays, gpt2_shapes(config)):
        more = f"; and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        blocks = "one block" if layers == 1 else f"{layers} blocks"
        raise ValueError(f"these weights are not a GPT-2 of {blocks}: {'; '.join(wrong[:10])}{more}")
    if odd := [f"{name} holds {a.dtype}" for name, a in arrays.items() if np.asarray(a).dtype.kind != "f"]:
        raise ValueError(f"weights must be floating-point numbers: {'; '.join(odd[:10])}")
    sizes = dataclasses.asdict(config) | {"inner": 4 * width}
    for name, ours in (SIZES | ({"n_inner": "inner"} if settings.get("n_inner") is not None else {})).items():
        if name in settings and settings[name] != sizes[ours]:
            raise ValueError(f"config.json says {name} is {settings[name]!r}, but the arrays {sizes[ours]}")
    state = {ours: arrays[theirs] for theirs, ours in _names(layers).items()}
    for i in range(layers):
        scale = 1 if settings.get("scale_attn_weights", True) else math.sqrt(width // heads)  # times 1/√D is 1
        scale /= i + 1 if settings.get("scale_attn_by_inverse_layer_idx", False) else 1
        for kind in ("weight", "bias"):
            three = np.split(arrays[f"h.{i}.attn.c_attn.{kind}"], 3, axis=-1)  # (C, 3C) -> three (C, C)
            for part, array in zip(("query", "key", "value"), three):
                scaled = part == "query" and scale != 1
                state[f"blocks.{i}.attention.layer.{part}.{kind}"] = array.astype(float) * scale if scaled else array
    return config, state


def _refuse_settings(settings, has_head):
    """Raise ValueError for settings that this GPT-2 cannot follow. A setting that is not there has its usual value."""
    wrong = [
        f"{name} is {settings[name]!r}, not {value!r}"
        for name, value in FIXED.items()
        if settings.get(name, value) not in (value, value or None)  # null for false and for {}
    ]
    if (name := settings.get("activation_function", "gelu_new")) not in list(ACTIVATIONS):
        wrong.append(f"activation_function is {name!r}, not one of {', '.join(ACTIVATIONS)}")
    eps = settings.get("layer_norm_epsilon", 1e-5)
    if isinstance(eps, bool) or not isinstance(eps, (int, float)) or not 0 < eps < math.inf:
        wrong.append(f"layer_norm_epsilon is {eps!r}, not a number above 0")
    for name in ("scale_attn_weights", "scale_attn_by_inverse_layer_idx"):
        if settings.get(name, False) not in (True, False):
            wrong.append(f"{name} is {settings[name]!r}, not true or false")
    if settings.get("tie_word_embeddings", True) is not True and not has_head:
        wrong.append(f"tie_word_embeddings is {settings['tie_word_embeddings']!r}, but there is no lm_head.weight")
    named = {"n_head", "num_attention_heads"} & settings.keys()
    if not named:
        wrong.append("n_head is missing, and no shape tells the number of heads")
    if wrong:
        raise ValueError(f"{SETTINGS} has settings that this GPT-2 cannot follow: {'; '.join(wrong)}")
    for name in named:
        check_whole(name, settings[name], 1)


def _layout(config):
    """Return name -> the values that GPT-2's layout can hold, for every setting of which it holds only some."""
    return {
        "activation": ("gelu", "relu"), "norm": ("pre",), "residual": (True,), "causal": (True,), "positions": (True,),
        "tied": (True,), "attention_bias": (True,), "bias": (True,), "norm_layer": ("layer_norm",),
        "d_ff": (None, 4 * config.width), "kv_heads": (None, config.heads),
        "head_dim": (None, config.width // config.heads), "qk_norm": (False,), "window": (None,),
        "embedding_norm": (False,), "conv_kernel": (None,),
    }  # fmt: skip


def to_gpt2_state(model):
    """Convert the weights of a GPT of this shape to the published names, query, key and value in one matrix.

    Raises ValueError that names each setting of the model for which GPT-2's layout has no place.
    """
    if not isinstance(getattr(model, "config", None), GPTConfig):
        raise ValueError(f"GPT-2's layout is that of a GPT, not of a {type(model).__name__}")
    if wrong := [
        f"{name} is {getattr(model.config, name)!r}, not {' or '.join(map(repr, values))}"
        for name, values in _layout(model.config).items()
        if getattr(model.config, name) not in values
    ]:
        raise ValueError(f"GPT-2's layout has no place for this model: {'; '.join(wrong)}")
    state, layers = model.state_dict(), model.config.layers
    arrays = {theirs: state[ours] for theirs, ours in _names(layers).items()}
    for i in range(layers):
        for kind in ("weight", "bias"):
            three = [state[f"blocks.{i}.attention.layer.{part}.{kind}"] for part in ("query", "key", "value")]
            arrays[f"h.{i}.attn.c_attn.{kind}"] = np.concatenate(three, axis=-1)
    return arrays


def _tidied(arrays):
    """Drop everything that is not a parameter: a prefix in some names, stored masks, a second copy of the table."""
    arrays = {name.removeprefix("transformer."): array for name, array in arrays.items()}
    arrays = {k: v for k, v in arrays.items() if not re.fullmatch(r"h\.\d+\.attn\.(masked_)?bias", k)}
    head = arrays.pop("lm_head.weight", None)
    if head is not None and not np.array_equal(head, arrays.get("wte.weight")):
        raise ValueError("lm_head.weight is not wte.weight: in a GPT-2 the head shares the token table")
    return arrays


def load_gpt2(folder, track="numpy", dtype="float32"):
    """Load the published weights in ``folder`` into a GPT of ``track``, "numpy" or "torch".

    The weights are in one file or in several with an index, in 64, 32 or 16 bits, bfloat16 among them. The number of
    heads and all other settings are read from ``config.json``, if there is one. Raises FileNotFoundError that names the
    missing file, ValueError for another track, for a file that is damaged or holds something else, or for a setting
    that cannot be followed.
    """
    models = get_track(track).models
    arrays, path = read_weights(folder)
    settings = Path(folder) / SETTINGS
    try:
        config, state = from_gpt2_state(arrays, None, dtype, read_json(settings) if settings.is_file() else None)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    model = models.GPT(config)
    model.load_state_dict(state)
    return model
