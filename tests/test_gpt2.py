"""GPT-2's shape and files: a small random checkpoint in the published layout, read by both tracks."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch.nn import functional as F
from track_tools import NUMPY, array, assert_same, both_tracks

from course_lib.inference import generate_ids
from course_lib.inference.gpt2 import from_gpt2_state, gpt2_config, gpt2_shapes, load_gpt2, to_gpt2_state

V, T, C, H, L = 61, 12, 24, 3, 2
IDS = np.random.default_rng(1).integers(V, size=(2, T))


def checkpoint(dtype="float32", layers=L, width=C):
    """Random numbers in every array of the published layout, written out name by name."""
    rng = np.random.default_rng(0)

    def normal(*shape):
        return (0.2 * rng.standard_normal(shape)).astype(dtype)

    arrays = {"wte.weight": normal(V, width), "wpe.weight": normal(T, width)}
    for i in range(layers):
        arrays |= {
            f"h.{i}.ln_1.weight": 1 + normal(width),
            f"h.{i}.ln_1.bias": normal(width),
            f"h.{i}.attn.c_attn.weight": normal(width, 3 * width),
            f"h.{i}.attn.c_attn.bias": normal(3 * width),
            f"h.{i}.attn.c_proj.weight": normal(width, width),
            f"h.{i}.attn.c_proj.bias": normal(width),
            f"h.{i}.ln_2.weight": 1 + normal(width),
            f"h.{i}.ln_2.bias": normal(width),
            f"h.{i}.mlp.c_fc.weight": normal(width, 4 * width),
            f"h.{i}.mlp.c_fc.bias": normal(4 * width),
            f"h.{i}.mlp.c_proj.weight": normal(4 * width, width),
            f"h.{i}.mlp.c_proj.bias": normal(width),
        }
    return arrays | {"ln_f.weight": 1 + normal(width), "ln_f.bias": normal(width)}


def reference(arrays, ids, heads=H):
    """GPT-2 straight from its arrays, with PyTorch's functions: logits (B, T, V)."""
    w = {name: torch.tensor(a) for name, a in arrays.items()}

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    def affine(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][torch.tensor(ids)] + w["wpe.weight"][: ids.shape[1]]
    for i in range(sum(name.endswith("ln_1.bias") for name in arrays)):
        q, k, v = (
            part.unflatten(-1, (heads, -1)).transpose(1, 2)
            for part in affine(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + affine(mixed, f"h.{i}.attn.c_proj")
        inner = F.gelu(affine(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + affine(inner, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def folder_with(path, arrays, **settings):
    save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"n_head": H, **settings}), encoding="utf-8")
    return path


@both_tracks
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logits(track, dtype, tmp_path):
    arrays = checkpoint(dtype)
    model = load_gpt2(folder_with(tmp_path, arrays), track.name, dtype)
    assert_same(model(IDS)[0], reference(arrays, IDS))
    assert_same(model(IDS[:, :1])[0], reference(arrays, IDS[:, :1]))
    assert (model.context_length, model.vocab_size, model.config.heads, model.config.layers) == (T, V, H, L)


def test_the_tracks_agree(tmp_path):
    folder = folder_with(tmp_path, checkpoint("float64"))
    mine, other = (load_gpt2(folder, track, "float64") for track in ("numpy", "torch"))
    assert_same(*(model(IDS, IDS)[1] for model in (mine, other)))
    texts = [list(generate_ids(model, IDS[0, :3], 20, temperature=0)) for model in (mine, other)]
    assert texts[0] == texts[1] and len(set(texts[0])) > 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_greedy_text_with_the_cache(dtype, tmp_path):
    """Token for token the same: with the cache and without, in both tracks, also beyond the context of T."""
    folder, seen = folder_with(tmp_path, checkpoint(dtype)), set()
    models = [load_gpt2(folder, track, dtype) for track in ("numpy", "torch")]
    for start in (IDS[0, :1], IDS[0, :3], IDS[0, :5], IDS[1, :4], IDS[1]):
        texts = [
            list(generate_ids(model, start, 2 * T, temperature=0, cache=cache))
            for model in models
            for cache in (True, False)
        ]
        assert texts[1:] == texts[:1] * 3
        seen.update(texts[0])
    assert len(seen) > 3  # one token over and over would prove little


@both_tracks
def test_logits_with_the_cache(track, tmp_path):
    model = load_gpt2(folder_with(tmp_path, checkpoint("float64")), track.name, "float64")
    cache, found = model.new_cache(2), []
    with model.evaluating():
        for start, end in ((0, 4), (4, 5), (5, 6), (6, T)):  # the prompt, then token by token, then several
            found.append(array(model(IDS[:, start:end], cache=cache)[0]).copy())
    assert_same(np.concatenate(found, axis=1), reference(checkpoint("float64"), IDS))


@both_tracks
def test_there_and_back(track, tmp_path):
    arrays = checkpoint()
    written = to_gpt2_state(load_gpt2(folder_with(tmp_path, arrays), track.name))
    assert written.keys() == arrays.keys()
    for name in arrays:
        assert (written[name] == arrays[name]).all(), name


def test_what_published_files_carry_besides():
    """A prefix, stored masks, the head as a copy of the table: none is a parameter."""
    arrays = checkpoint()
    config, state = from_gpt2_state(arrays, H)
    extra = {f"h.{i}.attn.bias": np.tril(np.ones((1, 1, T, T), "float32")) for i in range(L)}
    extra |= {"h.0.attn.masked_bias": np.float32(-1e4), "lm_head.weight": arrays["wte.weight"].copy()}
    again, same = from_gpt2_state({f"transformer.{k}": v for k, v in (arrays | extra).items() if "lm_head" not in k} |
                                  {"lm_head.weight": extra["lm_head.weight"]}, H)  # fmt: skip
    assert again == config and same.keys() == state.keys()
    with pytest.raises(ValueError, match=r"lm_head.weight is not wte.weight"):
        from_gpt2_state(arrays | {"lm_head.weight": arrays["wte.weight"] + 1}, H)


def test_heads():
    """Without settings a head has 64 numbers, as in every published size."""
    assert from_gpt2_state(checkpoint(width=192, layers=1))[0].heads == 3
    assert from_gpt2_state(checkpoint())[0].heads == 1  # narrower than one head of 64
    with pytest.raises(ValueError, match="width 24 is not divisible by 5 heads"):
        from_gpt2_state(checkpoint(), heads=5)


def test_files_that_do_not_fit(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model.safetensors is missing"):
        load_gpt2(tmp_path)
    with pytest.raises(ValueError, match="track must be 'numpy' or 'torch', not 'jax'"):
        load_gpt2(tmp_path, "jax")
    arrays = checkpoint()
    missing = {k: v for k, v in arrays.items() if k != "h.1.mlp.c_fc.bias"}
    with pytest.raises(ValueError, match=r"model.safetensors: .*2 blocks: h.1.mlp.c_fc.bias is missing$"):
        load_gpt2(folder_with(tmp_path, missing))
    with pytest.raises(ValueError, match="h.0.attn.c_bias is unknown$"):
        load_gpt2(folder_with(tmp_path, arrays | {"h.0.attn.c_bias": np.zeros(3)}))
    turned = arrays | {"h.0.mlp.c_fc.weight": arrays["h.0.mlp.c_fc.weight"].T}  # as torch.nn.Linear would store it
    with pytest.raises(ValueError, match=r"h.0.mlp.c_fc.weight has shape \(96, 24\), not \(24, 96\)"):
        load_gpt2(folder_with(tmp_path, turned))
    with pytest.raises(ValueError, match="wpe.weight is missing or not a matrix"):
        load_gpt2(folder_with(tmp_path, {"wte.weight": arrays["wte.weight"]}))
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        load_gpt2(tmp_path)


def test_parameters_of_the_smallest_published_size():
    width, layers = 768, 12
    attention = width * 3 * width + 3 * width + width * width + width  # query, key and value in one; output
    mlp = width * 4 * width + 4 * width + 4 * width * width + width
    block = attention + mlp + 2 * 2 * width  # two LayerNorms
    total = (50257 + 1024) * width + layers * block + 2 * width  # tables, blocks, the last LayerNorm; no head
    assert (block, total) == (7_087_872, 124_439_808)
    assert sum(math.prod(shape) for shape in gpt2_shapes(gpt2_config()).values()) == total
    small = gpt2_config(L, H, C, T, V)  # a model has as many as its shapes say
    counted = sum(math.prod(shape) for shape in gpt2_shapes(small).values())
    assert NUMPY.models.GPT(small).num_parameters() == counted == sum(a.size for a in checkpoint().values())


def test_the_shape_is_the_courses_own():
    config = gpt2_config(layers=2, heads=3, width=24, context_length=12, vocab_size=61)
    assert (
        config.tied
        and config.attention_bias
        and config.norm == "pre"
        and config.residual
        and config.activation == "gelu"
    )
    without = NUMPY.models.GPT(dataclasses.replace(config, attention_bias=False))
    names = dict(NUMPY.models.GPT(config).named_parameters()).keys() - dict(without.named_parameters())
    assert names == {f"blocks.{i}.attention.layer.{part}.bias" for i in range(2)
                     for part in ("query", "key", "value", "output")}  # fmt: skip


@both_tracks
def test_against_transformers(track, tmp_path):
    """The library's own GPT-2 with random weights, saved by it and read by us."""
    transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")
    torch.manual_seed(0)
    settings = transformers.GPT2Config(vocab_size=V, n_positions=T, n_embd=C, n_layer=L, n_head=H)
    theirs = transformers.GPT2LMHeadModel(settings).eval()
    for p in theirs.parameters():
        p.data += 0.1 * torch.randn(p.shape)
    theirs.save_pretrained(tmp_path)
    with torch.no_grad():
        expected = theirs(torch.tensor(IDS)).logits.numpy()
    mine = array(load_gpt2(tmp_path, track.name)(IDS)[0])
    assert np.abs(mine - expected).max() <= 1e-4
    assert (mine.argmax(axis=-1) == expected.argmax(axis=-1)).all()
    prompt, new = torch.tensor(IDS[:1, :3]), T - 3
    text = theirs.generate(
        prompt, max_new_tokens=new, do_sample=False, use_cache=True, pad_token_id=0, eos_token_id=None
    )
    ours = generate_ids(load_gpt2(tmp_path, track.name), IDS[0, :3], new, temperature=0, cache=True)
    assert list(ours) == text[0, 3:].tolist() and len(set(text[0, 3:].tolist())) > 1


# ------------------------------------------------------------------ what the layout cannot hold
@both_tracks
@pytest.mark.parametrize(
    "change, said",
    [
        ({"norm_layer": "rms_norm"}, "norm_layer is 'rms_norm', not 'layer_norm'"),
        ({"positions": "rotary"}, "positions is 'rotary', not True"),
        ({"positions": False}, "positions is False, not True"),
        ({"activation": "swiglu"}, "activation is 'swiglu', not 'gelu' or 'relu'"),
        ({"activation": "none"}, "activation is 'none'"),
        ({"kv_heads": 1}, "kv_heads is 1, not None or 3"),
        ({"head_dim": 4}, "head_dim is 4, not None or 8"),
        ({"d_ff": 24}, "d_ff is 24, not None or 96"),
        ({"qk_norm": True}, "qk_norm is True, not False"),
        ({"window": 4}, "window is 4, not None"),
        ({"embedding_norm": True}, "embedding_norm is True, not False"),
        ({"bias": False}, "bias is False, not True"),
        ({"attention_bias": False}, "attention_bias is False, not True"),
        ({"tied": False}, "tied is False, not True"),
        ({"norm": "post"}, "norm is 'post', not 'pre'"),
        ({"norm": None}, "norm is None, not 'pre'"),
        ({"residual": False}, "residual is False"),
        ({"causal": False}, "causal is False"),
        ({"bias": False, "window": 2}, "bias is False, not True; window is 2, not None"),
    ],
)
def test_a_model_for_which_the_layout_has_no_place(change, said, track):
    model = track.models.GPT(dataclasses.replace(gpt2_config(L, H, C, T, V), **change))
    with pytest.raises(ValueError, match=f"no place for this model: {said}"):
        to_gpt2_state(model)


@both_tracks
def test_a_model_that_says_aloud_what_is_usual(track):
    config = dataclasses.replace(gpt2_config(L, H, C, T, V), kv_heads=H, head_dim=C // H, d_ff=4 * C)
    arrays = to_gpt2_state(track.models.GPT(config))
    assert {name: a.shape for name, a in arrays.items()} == gpt2_shapes(config)
    with pytest.raises(ValueError, match="that of a GPT, not of a Bigram"):
        to_gpt2_state(track.models.Bigram(V))
