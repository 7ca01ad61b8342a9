"""Published layouts of today: small random folders, read by both tracks, against the formulas in PyTorch's words."""

import json
import math

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch.nn import functional as F
from track_tools import array, assert_close, both_tracks

from course_lib.inference import generate_ids, load_llama
from course_lib.inference.llama import from_llama_state

V, C, H, G, D, FF, L = 23, 12, 4, 2, 6, 20, 2
LLAMA = {
    "model_type": "llama", "vocab_size": V, "hidden_size": C, "intermediate_size": FF, "num_hidden_layers": L,
    "num_attention_heads": H, "num_key_value_heads": G, "head_dim": D, "hidden_act": "silu", "rms_norm_eps": 1e-2,
    "max_position_embeddings": 16, "rope_theta": 100.0, "attention_bias": False, "tie_word_embeddings": False,
    "mlp_bias": False, "rope_scaling": None, "torch_dtype": "bfloat16", "attention_dropout": 0.0, "use_cache": True,
}  # fmt: skip
QWEN = LLAMA | {"model_type": "qwen3", "use_sliding_window": False, "sliding_window": 3, "max_window_layers": 0}
LONG = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONG |= {"original_max_position_embeddings": 100}
IDS = np.random.default_rng(1).integers(V, size=(2, 12))


def arrays_for(settings, dtype="float32"):
    """Random numbers in every array that a model of these settings has."""
    rng, bias = np.random.default_rng(0), settings["attention_bias"]

    def normal(*shape):
        return (0.4 * rng.standard_normal(shape)).astype(dtype)

    found = {"model.embed_tokens.weight": normal(V, C), "model.norm.weight": 1 + normal(C)}
    for i in range(L):
        at = f"model.layers.{i}."
        for name, shape in (("q", (H * D, C)), ("k", (G * D, C)), ("v", (G * D, C)), ("o", (C, H * D))):
            found[f"{at}self_attn.{name}_proj.weight"] = normal(*shape)
            found |= {f"{at}self_attn.{name}_proj.bias": normal(shape[0])} if bias else {}
        for name, shape in (("gate", (FF, C)), ("up", (FF, C)), ("down", (C, FF))):
            found[f"{at}mlp.{name}_proj.weight"] = normal(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}{name}.weight"] = 1 + normal(C)
        if settings["model_type"] == "qwen3":
            found |= {f"{at}self_attn.{n}_norm.weight": 1 + normal(D) for n in "qk"}
    return found if settings["tie_word_embeddings"] else found | {"lm_head.weight": normal(V, C)}


def published(arrays, settings, ids, window=None):
    """Logits as the published programs compute them, in float64."""
    w = {name: torch.tensor(np.asarray(a, np.float64)) for name, a in arrays.items()}
    eps, T = settings.get("rms_norm_eps", 1e-6), ids.shape[1]
    rope = {"rope_theta": settings.get("rope_theta", 10000.0)} | (settings.get("rope_scaling") or {})
    rope |= settings.get("rope_parameters") or {}
    speeds = []
    for i in range(D // 2):
        speed = 1 / rope["rope_theta"] ** (2 * i / D)
        if rope.get("rope_type", rope.get("type")) == "llama3":
            length, old = 2 * math.pi / speed, rope["original_max_position_embeddings"]
            low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
            if length > old / low:
                speed /= factor
            elif length >= old / high:
                smooth = (old / length - low) / (high - low)
                speed = (1 - smooth) * speed / factor + smooth * speed
        speeds.append(speed)
    angle = torch.outer(torch.arange(T, dtype=torch.float64), torch.tensor(speeds, dtype=torch.float64)).repeat(1, 2)
    back = torch.arange(T)[:, None] - torch.arange(T)
    allow = (back >= 0) & (back < (window or T))

    def norm(x, name):
        return F.rms_norm(x, x.shape[-1:], w[f"{name}.weight"], eps)

    def heads(x, at, name):
        x = F.linear(x, w[f"{at}{name}_proj.weight"], w.get(f"{at}{name}_proj.bias")).unflatten(-1, (-1, D))
        x = norm(x, f"{at}{name}_norm") if f"{at}{name}_norm.weight" in w else x
        x = x.transpose(1, 2)
        if name == "v":
            return x
        a, b = x.chunk(2, -1)
        return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()

    x = w["model.embed_tokens.weight"][torch.tensor(ids)]
    for i in range(L):
        at = f"model.layers.{i}."
        normed = norm(x, f"{at}input_layernorm")
        q, k, v = (heads(normed, f"{at}self_attn.", name) for name in "qkv")
        k, v = (t.repeat_interleave(H // G, 1) for t in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, allow).transpose(1, 2).flatten(2)
        x = x + F.linear(mixed, w[f"{at}self_attn.o_proj.weight"], w.get(f"{at}self_attn.o_proj.bias"))
        normed, at = norm(x, f"{at}post_attention_layernorm"), f"{at}mlp."
        gate, up, down = (w[f"{at}{name}_proj.weight"] for name in ("gate", "up", "down"))
        x = x + (F.silu(normed @ gate.T) * (normed @ up.T)) @ down.T
    return norm(x, "model.norm") @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def folder_with(path, arrays, settings):
    save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    return path


def without(settings, *names):
    return {name: value for name, value in settings.items() if name not in names}


FOLLOWED = {  # settings, and the window that they mean
    "Llama": (LLAMA, None),
    "sizes from the shapes": (without(LLAMA, "head_dim", "num_key_value_heads", "vocab_size"), None),
    "usual values": (without(LLAMA, "rms_norm_eps", "rope_theta", "rope_scaling", "hidden_act"), None),
    "eps": (LLAMA | {"rms_norm_eps": 0.3}, None),
    "theta": (LLAMA | {"rope_theta": 5e5}, None),
    "Llama 3": (LLAMA | {"rope_scaling": LONG}, None),
    "Llama 3, all slower": (LLAMA | {"rope_scaling": LONG | {"original_max_position_embeddings": 3}}, None),
    "as newer files write it": (without(LLAMA, "rope_theta") | {"rope_parameters": LONG | {"rope_theta": 7.0}}, None),
    "no scaling, said aloud": (LLAMA | {"rope_scaling": {"type": "default"}}, None),
    "biases": (LLAMA | {"attention_bias": True}, None),
    "tied": (LLAMA | {"tie_word_embeddings": True}, None),
    "Mistral": (LLAMA | {"model_type": "mistral", "sliding_window": 4}, 4),
    "Mistral, window beyond the context": (LLAMA | {"model_type": "mistral"}, None),
    "Mistral without a window": (LLAMA | {"model_type": "mistral", "sliding_window": None}, None),
    "Qwen3": (QWEN, None),
    "Qwen3 with a window": (QWEN | {"use_sliding_window": True}, 3),
    "Qwen3, layers named": (QWEN | {"use_sliding_window": True, "layer_types": ["full_attention"] * L}, None),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "window"), FOLLOWED.values(), ids=FOLLOWED)
@both_tracks
def test_settings_that_are_followed(track, settings, window, tmp_path):
    arrays = arrays_for(settings)
    model = load_llama(folder_with(tmp_path, arrays, settings), track.name, "float64")
    assert model.config.window == window
    assert_close(model(IDS)[0], published(arrays, settings, IDS, window).numpy(), 1e-9)


def test_each_setting_matters():
    """What is followed above would be seen if it were not."""
    arrays, seen = arrays_for(LLAMA), [published(arrays_for(LLAMA), LLAMA, IDS)]
    for name in ("usual values", "eps", "theta", "Llama 3", "Llama 3, all slower", "as newer files write it"):
        seen.append(published(arrays, FOLLOWED[name][0], IDS))
    seen.append(published(arrays, LLAMA, IDS, 4))
    assert min((a - b).abs().max() for i, a in enumerate(seen) for b in seen[:i]) > 1e-3


REFUSED = {
    "model_type is 'gemma'": {"model_type": "gemma"},
    "model_type is None": {"model_type": None},
    "hidden_act is 'gelu', not 'silu'": {"hidden_act": "gelu"},
    "mlp_bias is True": {"mlp_bias": True},
    "quantization_config is": {"quantization_config": {"bits": 4}},
    "partial_rotary_factor is 0.5": {"partial_rotary_factor": 0.5},
    "attention_bias is 'yes'": {"attention_bias": "yes"},
    "rope_type 'yarn': only 'default' and 'llama3'": {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
    "rope_type 'linear'": {"rope_scaling": {"type": "linear", "factor": 2.0}},
    "lacks factor": {"rope_scaling": {k: v for k, v in LONG.items() if k != "factor"}},
    "rope_scaling holds mscale": {"rope_scaling": LONG | {"mscale": 1.0}},
    "rope_parameters holds full_attention": {"rope_parameters": {"full_attention": LONG}},
    "sliding_window is 4, which a model_type 'llama' does not": {"sliding_window": 4},
    "sliding_window is 3 in some layers only": QWEN | {"use_sliding_window": True, "max_window_layers": 1},
    "num_attention_heads must be a whole number": {"num_attention_heads": "4"},
    "do not fit 5 heads": {"num_attention_heads": 5},
    "says head_dim is 8, but the arrays 6": {"head_dim": 8},
    "says num_key_value_heads is 4, but the arrays 2": {"num_key_value_heads": 4},
    "says num_hidden_layers is 3, but the arrays 2": {"num_hidden_layers": 3},
    "rms_norm_eps|norm_eps must be above 0": {"rms_norm_eps": 0},
}


@pytest.mark.parametrize(("message", "change"), REFUSED.items(), ids=REFUSED)
def test_settings_that_are_refused(message, change):
    settings = LLAMA | change
    with pytest.raises(ValueError, match=message):
        from_llama_state(arrays_for(settings), settings)


def test_arrays_that_do_not_fit():
    arrays = arrays_for(LLAMA)
    for wrong, message in (
        (without(arrays, "lm_head.weight"), "lm_head.weight is missing"),
        (without(arrays, "model.layers.1.mlp.down_proj.weight"), "2 blocks: model.layers.1.mlp.down_proj.weight is"),
        (without(arrays, "model.embed_tokens.weight"), "not a Llama: model.embed_tokens.weight is missing"),
        (arrays | {"model.layers.0.self_attn.q_norm.weight": np.ones(D)}, "q_norm.weight is unknown"),
        (arrays | {"model.layers.0.mlp.down_proj.weight": np.ones((FF, C))}, r"has shape \(20, 12\), not \(12, 20\)"),
        (arrays | {"model.norm.weight": np.ones(C, int)}, "model.norm.weight holds int64"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            from_llama_state(wrong, LLAMA)
    tied = LLAMA | {"tie_word_embeddings": True}
    with pytest.raises(ValueError, match=r"lm_head.weight is not model.embed_tokens.weight"):
        from_llama_state(arrays, tied)
    copied = arrays | {"lm_head.weight": arrays["model.embed_tokens.weight"]}
    extra = copied | {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(D // 2)}
    assert from_llama_state(extra, tied)[0].tied


@both_tracks
def test_files(track, tmp_path):
    """Half precision, bfloat16, and several files with an index."""
    for name in ("float16", "bfloat16", "in two files"):
        folder = tmp_path / name
        folder.mkdir()
        arrays = arrays_for(LLAMA, "float16" if name == "float16" else "float32")
        if name == "float16":
            folder_with(folder, arrays, LLAMA)
        else:
            from safetensors.torch import save_file as save_tensors

            (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
            half = {k: torch.tensor(a).to(torch.bfloat16) for k, a in arrays.items()}
            arrays = {k: a.float().numpy() for k, a in half.items()}
            names = sorted(half)
            files = {"a.safetensors": names[:5], "b.safetensors": names[5:]}
            files = {"model.safetensors": names} if name == "bfloat16" else files
            for file, inside in files.items():
                save_tensors({k: half[k] for k in inside}, folder / file)
            if len(files) > 1:
                index = {"weight_map": {k: file for file, inside in files.items() for k in inside}}
                (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
        model = load_llama(folder, track.name)
        expected = published(arrays, LLAMA, IDS).numpy()
        assert array(model(IDS)[0]).dtype == np.float32
        assert_close(model(IDS)[0], expected, 1e-4 * np.abs(expected).max())


def test_text_beyond_the_context(tmp_path):
    """With a window, and a context no longer than two of them: the tokens of the whole text, in both tracks."""
    settings = QWEN | {"use_sliding_window": True}
    folder = folder_with(tmp_path, arrays_for(settings), settings)
    models = [load_llama(folder, track, "float64", context_length=5) for track in ("numpy", "torch")]
    assert [model.context_length for model in models] == [5, 5]
    whole = load_llama(folder, "numpy", "float64")
    texts = [list(generate_ids(model, IDS[0, :3], 12)) for model in (*models, whole)]
    assert texts[0] == texts[1] == texts[2] and len(set(texts[0])) > 3


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config.json is missing: the files of a published model"):
        load_llama(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"model.safetensors is missing"):
        load_llama(tmp_path)
    with pytest.raises(ValueError, match="track must be 'numpy' or 'torch'"):
        load_llama(tmp_path, "jax")


# ------------------------------------------------------------------ beside the library that publishes them

PUBLISHED = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", {"attention_bias": False, "mlp_bias": False}),
    "llama, llama3 scaling, tied": (
        "LlamaConfig",
        "LlamaForCausalLM",
        {"rope_scaling": LONG, "tie_word_embeddings": True},
    ),
    "llama, biases": ("LlamaConfig", "LlamaForCausalLM", {"attention_bias": True}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {}),
    "qwen3, tied": ("Qwen3Config", "Qwen3ForCausalLM", {"tie_word_embeddings": True}),
    "mistral, window": ("MistralConfig", "MistralForCausalLM", {"sliding_window": 5}),
}


@both_tracks
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", PUBLISHED)
def test_logits_and_greedy_tokens_are_the_published_ones(track, kind, dtype, tmp_path):
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    config, model, more = PUBLISHED[kind]
    settings = {"hidden_size": C, "num_attention_heads": H, "num_key_value_heads": G, "head_dim": D, "vocab_size": V,
                "intermediate_size": FF, "num_hidden_layers": L, "max_position_embeddings": 64, "rms_norm_eps": 1e-3,
                "tie_word_embeddings": False, "initializer_range": 0.4, "bos_token_id": 0,
                "eos_token_id": None}  # fmt: skip
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**settings | more))
    made.to(getattr(torch, dtype)).save_pretrained(tmp_path, max_shard_size="3KB")
    # read again, because .to() has rounded the angles, too
    theirs = getattr(transformers, model).from_pretrained(tmp_path, dtype=torch.float32).eval()
    mine = load_llama(tmp_path, track.name, context_length=64)
    with torch.no_grad(), mine.evaluating():
        want, got = theirs(torch.tensor(IDS)).logits.numpy(), array(mine(IDS)[0])
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
    prompt = torch.tensor(IDS[:1, :4])
    said = theirs.generate(prompt, max_new_tokens=20, do_sample=False, pad_token_id=0)[0].tolist()
    for cache in (True, False):
        assert list(generate_ids(mine, IDS[0, :4], 20, temperature=0, cache=cache)) == said[4:], cache
