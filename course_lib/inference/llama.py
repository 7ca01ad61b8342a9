"""Llama (Touvron et al. 2023) and its kin from the course's own blocks, with published weights, in both tracks.

``load_llama`` reads a folder in the layout of Llama 2 and 3, Mistral or Qwen3: ``config.json``, and the weights in one
safetensors file or in several. Their matrices are (fan_out, fan_in), as torch.nn.Linear keeps them, and a rotary pair
is two channels half a head apart, as in ``rotary``. You supply the files. Each setting that changes the numbers is
followed, or refused by its name.
"""

import re
from pathlib import Path

from .. import get_track
from ..common.checks import check_whole, mismatches
from ..common.config import GPTConfig
from .published import read_json, read_weights

SETTINGS = "config.json"
MODEL_TYPES = ("llama", "mistral", "qwen3")
# settings that change the numbers, and the one value that the course's model has
FIXED = {
    "hidden_act": "silu", "mlp_bias": False, "partial_rotary_factor": 1.0, "quantization_config": None,
    "auto_map": None, "is_encoder_decoder": False, "add_cross_attention": False,
}  # fmt: skip
# of rope_type "llama3", in the order of GPTConfig.rope_scaling
LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
SIZES = {
    "vocab_size": "vocab_size", "hidden_size": "width", "intermediate_size": "d_ff", "num_hidden_layers": "layers",
    "num_key_value_heads": "kv_heads", "head_dim": "head_dim",
}  # fmt: skip
LAYER = {
    "self_attn.q_proj": "attention.layer.query", "self_attn.k_proj": "attention.layer.key",
    "self_attn.v_proj": "attention.layer.value", "self_attn.o_proj": "attention.layer.output",
    "self_attn.q_norm": "attention.layer.query_norm", "self_attn.k_norm": "attention.layer.key_norm",
    "input_layernorm": "attention.norm", "post_attention_layernorm": "mlp.norm", "mlp.gate_proj": "mlp.layer.gate",
    "mlp.up_proj": "mlp.layer.up", "mlp.down_proj": "mlp.layer.down",
}  # fmt: skip


def llama_shapes(config):
    """Return published name -> (our name, shape) for every array of a model of this config."""
    C, D, F = config.width, config.head_size, config.hidden_units
    H, G, V = config.heads * D, config.key_value_heads * D, config.vocab_size
    shapes = {
        "self_attn.q_proj": (H, C), "self_attn.k_proj": (G, C), "self_attn.v_proj": (G, C), "self_attn.o_proj": (C, H),
        "input_layernorm": (C,), "post_attention_layernorm": (C,),
        "mlp.gate_proj": (F, C), "mlp.up_proj": (F, C), "mlp.down_proj": (C, F),
    }  # fmt: skip
    if config.qk_norm:
        shapes |= {"self_attn.q_norm": (D,), "self_attn.k_norm": (D,)}
    found = {"model.embed_tokens.weight": ("token.weight", (V, C))}
    for i in range(config.layers):
        for name, shape in shapes.items():
            theirs, ours = f"model.layers.{i}.{name}", f"blocks.{i}.{LAYER[name]}"
            found[f"{theirs}.weight"] = f"{ours}.weight", shape
            if config.attention_bias and name.endswith("_proj") and name.startswith("self_attn"):
                found[f"{theirs}.bias"] = f"{ours}.bias", shape[:1]
    found["model.norm.weight"] = "norm.weight", (C,)
    return found if config.tied else found | {"lm_head.weight": ("head.weight", (V, C))}


def from_llama_state(arrays, settings, context_length=2048, dtype="float32"):
    """Convert the arrays of a published model to ``(config, state)``: a GPTConfig, and a dict for ``load_state_dict``.

    ``settings`` is the content of config.json. Sizes are read from the shapes, and the settings must agree; the context
    is as long as they allow, ``context_length`` at most. Raises ValueError that names each array that is missing,
    unknown or of another shape, and each setting that cannot be followed.
    """
    _refuse(settings)
    # some files carry the frequencies of the rotation, which are computed here
    arrays = {name: a for name, a in arrays.items() if not name.endswith("rotary_emb.inv_freq")}
    layers = 1 + max((int(m[1]) for name in arrays if (m := re.match(r"model\.layers\.(\d+)\.", name))), default=-1)
    for name in ("num_attention_heads", "max_position_embeddings"):
        if name not in settings:
            raise ValueError(f"{name} is missing in {SETTINGS}, and no shape tells it")
        check_whole(name, settings[name], 1)
    heads, (theta, scaling) = settings["num_attention_heads"], _rope(settings)
    rows = {}
    for name in ("embed_tokens", "layers.0.self_attn.q_proj", "layers.0.self_attn.k_proj", "layers.0.mlp.up_proj"):
        if getattr(arrays.get(f"model.{name}.weight"), "ndim", 0) != 2:
            raise ValueError(f"this is not a Llama: model.{name}.weight is missing or not a matrix")
        rows[name.split(".")[-1]], width = arrays[f"model.{name}.weight"].shape
    if rows["q_proj"] % heads or rows["k_proj"] % (head_dim := rows["q_proj"] // heads):
        raise ValueError(f"{rows['q_proj']} and {rows['k_proj']} rows of q_proj and k_proj do not fit {heads} heads")
    tied, head = bool(settings.get("tie_word_embeddings")), arrays.get("lm_head.weight")
    if tied and head is not None:
        table = arrays["model.embed_tokens.weight"]
        if head.shape != table.shape or (head != table).any():
            raise ValueError("tie_word_embeddings is True, but lm_head.weight is not model.embed_tokens.weight")
        del arrays["lm_head.weight"]
    context_length = min(settings["max_position_embeddings"], context_length)
    config = GPTConfig(
        rows["embed_tokens"], context_length, width, heads, layers, activation="swiglu", positions="rotary", tied=tied,
        residual_scaled=True, attention_bias=bool(settings.get("attention_bias")), dtype=dtype, norm_layer="rms_norm",
        norm_eps=settings.get("rms_norm_eps", 1e-6), rope_theta=theta, rope_scaling=scaling, d_ff=rows["up_proj"],
        kv_heads=rows["k_proj"] // head_dim, head_dim=head_dim, qk_norm=settings["model_type"] == "qwen3",
        window=_window(settings, layers, context_length), bias=False,
    )  # fmt: skip
    for name, ours in SIZES.items():
        if settings.get(name) not in (None, found := getattr(config, ours)):
            raise ValueError(f"{SETTINGS} says {name} is {settings[name]!r}, but the arrays {found}")
    names = llama_shapes(config)
    if wrong := mismatches(arrays, {name: shape for name, (_, shape) in names.items()}):
        more = f"; and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        raise ValueError(f"these weights are not a Llama of {layers} blocks: {'; '.join(wrong[:10])}{more}")
    if odd := [f"{name} holds {a.dtype}" for name, a in arrays.items() if a.dtype.kind != "f"]:
        raise ValueError(f"weights must be floating-point numbers: {'; '.join(odd[:10])}")
    keep = "token.weight"  # a table, (V, C) in both; all other matrices are transposed
    return config, {ours: arrays[name] if ours == keep else arrays[name].T for name, (ours, _) in names.items()}


def _refuse(settings):
    """Raise ValueError for settings that this model cannot follow. A setting that is not there has its usual value."""
    wrong = [
        f"{name} is {settings[name]!r}, not {value!r}"
        for name, value in FIXED.items()
        if settings.get(name, value) not in (value, value or None)  # null for false
    ]
    if (kind := settings.get("model_type")) not in MODEL_TYPES:
        wrong.append(f"model_type is {kind!r}, not one of {', '.join(MODEL_TYPES)}")
    for name in ("attention_bias", "tie_word_embeddings", "use_sliding_window"):
        if settings.get(name) not in (True, False, None):
            wrong.append(f"{name} is {settings[name]!r}, not true or false")
    if wrong:
        raise ValueError(f"{SETTINGS} has settings that this model cannot follow: {'; '.join(wrong)}")


def _rope(settings):
    """Return (theta, scaling) of the rotary positions, from ``rope_parameters`` (newer files) or ``rope_scaling``."""
    found = {"rope_theta": settings.get("rope_theta", 10000.0)}
    for name in ("rope_scaling", "rope_parameters"):
        more = settings.get(name) or {}
        if odd := sorted(set(more) - {*LLAMA3, "rope_theta", "rope_type", "type", "partial_rotary_factor"}):
            raise ValueError(f"{name} holds {', '.join(map(str, odd))}, which this model cannot follow")
        found |= more
    kind = found.get("rope_type", found.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise ValueError(f"rope_scaling has rope_type {kind!r}: only 'default' and 'llama3' can be followed")
    if found.get("partial_rotary_factor", 1.0) != 1:
        raise ValueError(f"partial_rotary_factor is {found['partial_rotary_factor']!r}, not 1.0")
    if kind == "default":
        return float(found["rope_theta"]), None
    if lost := [name for name in LLAMA3 if name not in found]:
        raise ValueError(f"rope_scaling of rope_type 'llama3' lacks {', '.join(lost)}")
    return float(found["rope_theta"]), tuple(float(found[name]) for name in LLAMA3)


def _window(settings, layers, context_length):
    """Return the window of all layers, or None if the context is no longer than it."""
    kind = settings["model_type"]
    window = settings.get("sliding_window", 4096 if kind == "mistral" else None)
    if kind == "qwen3" and not settings.get("use_sliding_window"):
        window = None
    if window is None or window >= context_length:
        return None
    if kind == "llama":
        raise ValueError(f"sliding_window is {window}, which a model_type 'llama' does not have")
    first = settings.get("max_window_layers", 28) if kind == "qwen3" else 0  # the layers before it see everything
    usual = ["full_attention" if i < first else "sliding_attention" for i in range(layers)]
    kinds = set(settings.get("layer_types") or usual)
    if len(kinds) > 1:
        raise ValueError(f"sliding_window is {window} in some layers only (layer_types, max_window_layers), not in all")
    return window if kinds == {"sliding_attention"} else None


def load_llama(folder, track="numpy", dtype="float32", context_length=2048):
    """Load the published weights in ``folder`` into a GPT of ``track``, "numpy" or "torch".

    The weights may be in 64, 32 or 16 bits, bfloat16 among them. ``context_length`` limits the context, which published
    settings make longer than a small machine can hold: the masks take its square. Raises FileNotFoundError that names
    the missing file, ValueError for a file that is damaged or holds something else, or for a setting that cannot be
    followed.
    """
    models, settings = get_track(track).models, read_json(Path(folder) / SETTINGS)
    check_whole("context_length", context_length, 1)
    arrays, path = read_weights(folder)
    try:
        config, state = from_llama_state(arrays, settings, context_length, dtype)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    model = models.GPT(config)
    model.load_state_dict(state)
    return model
