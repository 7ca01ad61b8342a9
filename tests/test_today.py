"""What changed from GPT-2 to today: every setting alone and ten mixtures, in both tracks and as nn.Module.

They are compared with each other, and with a model written straight from the published formulas, which can be told to
make the usual mistakes: each of them must show.
"""

import dataclasses
import importlib
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as TF
from track_tools import NUMPY, TORCH, array, assert_close, assert_parameters_agree, assert_same, both_tracks, grad

from course_lib.common.config import GPTConfig
from course_lib.common.costs import kv_cache_bytes, matrix_numbers, parameter_count
from course_lib.common.positions import rotary_angles
from course_lib.idiomatic.gpt import GPT
from course_lib.idiomatic.weights import load_raw, pairs
from course_lib.inference import generate_ids, interventions
from course_lib.numpy_track.gradcheck import gradient_check
from course_lib.text import Batches, CharTokenizer, load_corpus
from course_lib.training import load_checkpoint, save_checkpoint, train

for track in (NUMPY, TORCH):
    track.today = importlib.import_module(f"course_lib.{track.name}_track.today")

V, T = 11, 8
BASE = GPTConfig(V, T, 16, 4, 2, activation="gelu", init="uniform", dtype="float64")
SWITCHES = {
    "RMSNorm": {"norm_layer": "rms_norm"},
    "eps": {"norm_eps": 0.1},
    "rotary": {"positions": "rotary"},
    "rotary, another base": {"positions": "rotary", "rope_theta": 50.0},
    "rotary, for a longer context": {"positions": "rotary", "rope_scaling": (8.0, 1.0, 4.0, 20.0)},
    "SwiGLU": {"activation": "swiglu"},
    "SwiGLU of 12": {"activation": "swiglu", "d_ff": 12},
    "hidden units": {"d_ff": 20},
    "grouped queries": {"kv_heads": 2},
    "one key and value head": {"kv_heads": 1, "attention_bias": True},
    "head_dim": {"head_dim": 6},
    "head_dim of another width": {"width": 10, "head_dim": 6},
    "QK-norm": {"qk_norm": True},
    "no biases": {"bias": False},
    "tied, no biases": {"bias": False, "tied": True},
    "window": {"window": 3},
    "window of one": {"window": 1},
    "rotary and window": {"positions": "rotary", "window": 3},
    "convolution": {"conv_kernel": 3},
    "convolution before SwiGLU": {"conv_kernel": 2, "activation": "swiglu", "bias": False},
    "convolution of one": {"conv_kernel": 1},
    "convolution longer than the text, rotary": {"conv_kernel": 2 * T, "positions": "rotary"},
    "convolution and window": {"conv_kernel": 3, "window": 3, "positions": "rotary", "kv_heads": 2},
    "normalised embedding": {"embedding_norm": True, "norm_eps": 0.1},
    "normalised embedding, tied": {"embedding_norm": True, "embedding_std": 0.3, "tied": True},
}
LLAMA = {
    "norm_layer": "rms_norm", "norm_eps": 0.1, "positions": "rotary", "rope_theta": 100.0, "activation": "swiglu",
    "kv_heads": 2, "head_dim": 6, "qk_norm": True, "bias": False, "window": 5,
}  # fmt: skip


def mixtures(count=10):
    """Random choices of every setting."""
    rng = np.random.default_rng(16)

    def one_of(*values):
        return values[rng.integers(len(values))]

    for _ in range(count):
        yield {
            "norm_layer": one_of("layer_norm", "rms_norm"), "norm_eps": one_of(1e-5, 0.01),
            "positions": one_of(True, "rotary", "rotary"), "activation": one_of("relu", "gelu", "swiglu", "swiglu"),
            "d_ff": one_of(None, 9), "kv_heads": one_of(None, 1, 2, 4), "head_dim": one_of(None, 2, 6),
            "qk_norm": one_of(True, False), "bias": one_of(True, False), "window": one_of(None, 1, 4, 20),
            "tied": one_of(True, False), "attention_bias": one_of(True, False), "residual_scaled": one_of(True, False),
            "embedding_norm": one_of(True, False), "conv_kernel": one_of(None, None, 1),
        }  # fmt: skip


EVERY = {**SWITCHES, "as Qwen3": LLAMA} | {f"mixture {i}": options for i, options in enumerate(mixtures())}
every_setting = pytest.mark.parametrize("options", EVERY.values(), ids=EVERY)


def made(track, seed=0, **options):
    """A model whose weights are all stirred: a norm's weight of 1 would hide much."""
    model, rng = track.models.GPT(dataclasses.replace(BASE, **options), seed), np.random.default_rng(seed)
    for p in model.parameters():
        array(p)[...] += 0.2 * rng.standard_normal(tuple(p.shape))
    return model


def some_ids(*shape, seed=0):
    return np.random.default_rng(seed).integers(V, size=shape)


def logits_of(model, ids):
    with model.evaluating():
        return array(model(ids)[0]).copy()


# ------------------------------------------------------------------ the formulas, and the usual mistakes
def reference(model, ids, fault=None):
    """Logits of a pre-norm GPT from its weights alone, float64; ``fault`` names a mistake."""
    c, w = model.config, {name: torch.tensor(a) for name, a in model.state_dict().items()}
    D, scale_size = c.head_size, c.width // c.heads if fault == "head_dim computed, not read" else c.head_size
    place = torch.arange(ids.shape[1])
    back = place[:, None] - place
    place = place % 3 if fault == "positions start at 0 after the cache" else place
    window = (c.window or T) + {"window one too wide": 1, "window one too narrow": -1}.get(fault, 0)
    allow = (back >= 0) & (back < window)

    def norm(x, name, kind):
        if kind == "layer_norm":
            return TF.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w.get(f"{name}.bias"), c.norm_eps)
        if fault == "eps outside the root":
            return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + c.norm_eps) * w[f"{name}.weight"]
        return TF.rms_norm(x, x.shape[-1:], w[f"{name}.weight"], c.norm_eps)

    def affine(x, name):
        return x @ w[f"{name}.weight"] + w.get(f"{name}.bias", 0)

    def normed(x, name):
        return norm(x, name, "rms_norm") if c.qk_norm else x

    def rotate(x, _):
        if not c.rotary:
            return x
        speed = c.rope_theta ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
        if c.rope_scaling:
            factor, low, high, original = c.rope_scaling
            kept = ((original * speed / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
            speed = torch.lerp(speed / factor, speed, kept)
        angle = place[:, None] * speed  # (T, D/2)
        interleaved = fault == "neighbours as pairs"
        a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., : D // 2], x[..., D // 2 :])
        turned = torch.complex(a, b) * torch.polar(torch.ones_like(angle), angle)
        both = [turned.real, turned.imag]
        return torch.stack(both, -1).flatten(-2) if interleaved else torch.cat(both, -1)

    def convolved(x, at):
        if not c.conv_kernel:
            return x
        padded = TF.pad(x.mT, (c.conv_kernel - 1, 0))  # (B, C, T), as torch.nn.Conv1d takes it
        return x + TF.conv1d(padded, w[f"{at}.conv.weight"], groups=c.width).mT

    def attention(x, at):
        q, k, v = (affine(x, f"{at}.{n}").unflatten(-1, (-1, D)).transpose(1, 2) for n in ("query", "key", "value"))
        steps = [rotate, normed] if fault == "QK-norm after the rotation" else [normed, rotate]
        for step in steps + [rotate] * (fault == "rotated twice"):
            q, k = step(q, f"{at}.query_norm"), step(k, f"{at}.key_norm")
        times = c.heads // c.key_value_heads
        if fault == "repeat, not repeat_interleave":
            k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
        else:
            k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
        mixed = TF.scaled_dot_product_attention(q, k, v, allow, scale=scale_size**-0.5)
        return affine(mixed.transpose(1, 2).flatten(2), f"{at}.output")

    def mlp(x, at):
        x = convolved(x, at)
        if c.activation != "swiglu":
            up = affine(x, f"{at}.up")
            return affine(TF.relu(up) if c.activation == "relu" else TF.gelu(up, approximate="tanh"), f"{at}.down")
        gate, up = affine(x, f"{at}.gate"), affine(x, f"{at}.up")
        gate, up = (up, gate) if fault == "gate and up exchanged" else (gate, up)
        return affine(TF.silu(gate) * up, f"{at}.down")

    x = w["token.weight"][torch.tensor(ids)]
    if c.embedding_norm:  # the token's vector, before its position is added; a tied head reads the table as it is
        x = TF.rms_norm(x, x.shape[-1:], eps=c.norm_eps)
    x = x + w["position"][: ids.shape[1]] if "position" in w else x
    for i in range(c.layers):
        for name, layer in (("attention", attention), ("mlp", mlp)):
            x = x + layer(norm(x, f"blocks.{i}.{name}.norm", c.norm_layer), f"blocks.{i}.{name}.layer")
    x = norm(x, "norm", c.norm_layer)
    return x @ w["token.weight"].T if c.tied else affine(x, "head")


@every_setting
@both_tracks
def test_the_formulas(track, options):
    model, ids = made(track, **options), some_ids(3, T)
    assert_same(logits_of(model, ids), reference(model, ids))
    assert_close(interventions.run(model, ids[0]).logits, reference(model, ids[:1])[0], 1e-9)


FAULTS = [
    "head_dim computed, not read", "positions start at 0 after the cache", "window one too wide",
    "window one too narrow", "eps outside the root", "neighbours as pairs", "QK-norm after the rotation",
    "rotated twice", "repeat, not repeat_interleave", "gate and up exchanged",
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_usual_mistake_shows(fault):
    """In each track, and it is not a matter of rounding."""
    for track in (NUMPY, TORCH):
        model, ids = made(track, **LLAMA), some_ids(3, T)
        wrong = np.abs(logits_of(model, ids) - reference(model, ids, fault).numpy()).max()
        assert wrong > 1e-3, f"{track}: {fault} changes the logits by only {wrong:.2g}"


# ------------------------------------------------------------------ three forms, the same numbers
@every_setting
def test_outputs_and_gradients_agree(options):
    mine, other = made(NUMPY, **options), made(TORCH, **options)
    x, y = some_ids(3, T), some_ids(3, T, seed=1)
    module = load_raw(GPT(mine.config), mine.state_dict())
    outs = [mine(x, y), other(x, y), module(torch.tensor(x), torch.tensor(y))]
    for logits, loss in outs:
        assert_same(logits, outs[0][0])
        assert_same(loss, outs[0][1])
        loss.backward()
    assert_parameters_agree(mine, other)
    named, found = dict(mine.named_parameters()), dict(module.named_parameters())
    assert [raw for _, raw, _ in pairs(module)] == list(named) and len(found) == len(named)
    for name, raw, turned in pairs(module):
        assert_same(grad(named[raw]), found[name].grad.T if turned else found[name].grad, raw)


def test_training_agrees():
    """Thirty steps with dropout, and the weights after them."""
    text = load_corpus("hello").text
    tokenizer, models, losses = CharTokenizer.from_text(text), [], []
    for track in (NUMPY, TORCH):
        models.append(made(track, vocab_size=len(tokenizer), dropout=0.2, **LLAMA))
        optimizer = track.optim.AdamW(models[-1].parameters(), 0.01)
        batches = Batches(tokenizer.encode(text), T, 4, seed=1)
        losses.append(train(models[-1], optimizer, batches, steps=30, progress=False).losses)
    assert_same(*map(np.array, losses))
    assert np.mean(losses[0][-5:]) < np.mean(losses[0][:5]) - 1
    for name, value in models[0].state_dict().items():
        assert_same(value, models[1].state_dict()[name], name)


@pytest.mark.parametrize("options", [LLAMA, SWITCHES["grouped queries"]], ids=["as Qwen3", "grouped queries"])
def test_in_float32_too(options):
    mine, other = (made(track, dtype="float32", **options) for track in (NUMPY, TORCH))
    ids = some_ids(3, T)
    assert_same(logits_of(mine, ids), logits_of(other, ids))
    assert_same(logits_of(mine, ids), logits_of(made(NUMPY, **options), ids).astype("float32"))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda F, x, w: F.rms_norm(x, (6,), w, 0.1), [(2, 3, 6), (6,)]),
        (lambda F, x: F.silu(x * 3), [(4, 5)]),
        (lambda F, x: F.rotary(x, *rotary_angles(2, 3, 6, 10.0)), [(2, 3, 6)]),
        (lambda F, x: F.repeat_interleave(x, 3, 1), [(2, 2, 3)]),
        (lambda F, x, w: F.causal_conv1d(x, w), [(2, 5, 3), (3, 1, 2)]),
        (lambda F, x, w: F.causal_conv1d(x, w, np.ones((2, 3, 3))), [(2, 2, 3), (3, 1, 4)]),
    ],
    ids=["rms_norm", "silu", "rotary", "repeat_interleave", "causal_conv1d", "causal_conv1d after something"],
)
def test_gradients_of_the_functions(function, shapes):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    assert gradient_check(lambda *x: function(NUMPY.F, *x), *(NUMPY.leaf(a) for a in arrays)) < 1e-6


@both_tracks
def test_functions_against_pytorch(track):
    x, w = np.random.default_rng(0).standard_normal((2, 5, 6)), np.linspace(0.5, 2, 6)
    theirs = TF.rms_norm(torch.tensor(x), (6,), torch.tensor(w), 0.1)
    assert_same(track.F.rms_norm(track.constant(x), (6,), track.constant(w), 0.1), theirs)
    assert_same(track.F.silu(track.constant(x)), TF.silu(torch.tensor(x)))
    with np.errstate(all="raise"):
        assert_close(track.F.silu(track.constant([-1e4, 0.0, 1e4])), [0, 0, 1e4])
    with pytest.raises(ValueError, match="only the last axis is normalised, here of size 6"):
        track.F.rms_norm(track.constant(x), (5,), track.constant(w), 0.1)
    assert_same(track.F.repeat_interleave(track.constant([1.0, 2.0]), 2, 0), np.array([1.0, 1, 2, 2]))


@both_tracks
def test_only_distances_count(track):
    """A rotation keeps lengths, and the product of two rotated vectors depends on how far apart they are."""
    q, k = np.random.default_rng(0).standard_normal((2, 1, 6))

    def at(x, position):
        return array(track.F.rotary(track.constant(x), *rotary_angles(position, 1, 6, 100.0)))[0]

    assert_close(at(q, 0), q[0], 0)
    assert_close(np.linalg.norm(at(q, 77)), np.linalg.norm(q), 1e-12)
    assert_close(at(q, 9) @ at(k, 5), at(q, 104) @ at(k, 100), 1e-12)
    assert abs(at(q, 9) @ at(k, 5) - at(q, 10) @ at(k, 5)) > 1e-3
    # weights made for neighbours as pairs serve with their columns sorted: even ones first
    even_first = [0, 2, 4, 1, 3, 5]
    cos, sin = (a[0] for a in rotary_angles(3, 1, 6, 100.0))
    x, y = q[0, 0::2], q[0, 1::2]
    neighbours = np.stack([x * cos - y * sin, y * cos + x * sin], axis=-1).reshape(-1)
    assert_close(at(q[:, even_first], 3), neighbours[even_first], 1e-12)


# ------------------------------------------------------------------ the cache
@every_setting
@both_tracks
def test_the_cache_gives_the_same_logits(track, options):
    model, ids = made(track, **options), some_ids(2, T)
    expected = logits_of(model, ids)
    for pieces in ([1] * T, [3, 1, 4], [T]):
        cache, start = model.new_cache(2), 0
        with model.evaluating():
            for size in pieces:
                logits = array(model(ids[:, start : start + size], cache=cache)[0])
                assert_same(logits, np.ascontiguousarray(expected[:, start : start + size]))
                start += size
    assert cache.keys.nbytes + cache.values.nbytes == kv_cache_bytes(model.config, 2)


@pytest.mark.parametrize("window", [1, 3, T])
@both_tracks
def test_the_cache_goes_on_beyond_the_context(track, window):
    """The numbers are those of a long context; where the last T tokens are all that counts, also those without."""
    options = {**LLAMA, "window": window, "conv_kernel": min(window, 3)}
    model, long = made(track, **options), made(track, **options, context_length=5 * T)
    ids = some_ids(1, 5 * T)
    cache, found = model.new_cache(), []
    with model.evaluating():
        for size in (T - 1, 1, *[1] * (2 * T), T - window + 1):
            start = cache.position
            found.append(array(model(ids[:, start : start + size], cache=cache)[0]).copy())
            assert cache.position == start + size and cache.length <= T
    found = np.concatenate(found, axis=1)
    assert_close(found, logits_of(long, ids[:, : found.shape[1]]), 1e-9)
    for prompt in (ids[0, :3], ids[0, : 2 * T + 3]):
        expected = list(generate_ids(long, prompt, 2 * T))
        assert list(generate_ids(model, prompt, 2 * T)) == expected and len(set(expected)) > 1
        if 2 * (window - 1) + 1 <= T:
            assert list(generate_ids(model, prompt, 2 * T, cache=False)) == expected


@both_tracks
def test_when_the_cache_cannot_go_on(track):
    """With a table of positions, or without a window, every token counts: the context ends."""
    for options in ({"window": 3}, {"positions": "rotary"}, {"positions": "rotary", "window": T + 1}):
        model = made(track, **options)
        cache, ids = model.new_cache(), some_ids(1, T)
        with model.evaluating():
            model(ids, cache=cache)
            with pytest.raises(ValueError, match=f"the cache holds {T} tokens, and 1 more do not fit"):
                model(ids[:, :1], cache=cache)
        plain, kept = (list(generate_ids(model, ids[0], 5, temperature=0, cache=c)) for c in (False, True))
        assert plain == kept


@pytest.mark.parametrize("cached", [False, True])
@both_tracks
def test_who_notices_a_token(track, cached):
    """One layer and a window of 3: a changed token moves its own position and the next two, no other."""
    model, ids = made(track, **LLAMA | {"window": 3}, layers=1), some_ids(1, T)

    def run(ids):
        if not cached:
            return logits_of(model, ids)
        cache = model.new_cache()
        with model.evaluating():
            return np.concatenate([array(model(ids[:, i : i + 1], cache=cache)[0]).copy() for i in range(T)], axis=1)

    for position in range(T):
        changed = ids.copy()
        changed[0, position] = (ids[0, position] + 1) % V
        moved = np.abs(run(changed) - run(ids))[0].max(axis=-1) > 1e-9
        assert np.flatnonzero(moved).tolist() == [t for t in range(position, position + 3) if t < T]


# ------------------------------------------------------------------ counted, stored, refused
@every_setting
def test_counts(options):
    model = made(NUMPY, **options)
    matrices = sum(math.prod(p.shape) for name, p in model.named_parameters() if "blocks" in name and p.ndim == 2)
    assert parameter_count(model.config) == model.num_parameters() == model.summary().total
    assert matrix_numbers(model.config) == matrices + model.config.width * V


@every_setting
def test_a_checkpoint_brings_the_settings_back(options, tmp_path):
    model, ids = made(NUMPY, **options), some_ids(2, T)
    save_checkpoint(tmp_path / "today", model, CharTokenizer("abcdefghijk"))
    for track in ("numpy", "torch"):
        found = load_checkpoint(tmp_path / "today", track).model
        assert found.config == model.config
        assert_same(logits_of(found, ids), logits_of(model, ids))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kv_heads": 3}, "4 query heads cannot share 3 key and value heads equally"),
        ({"kv_heads": 0}, "kv_heads must be a whole number, at least 1, not 0"),
        ({"positions": "rotary", "head_dim": 5}, "the head size 5 must be even"),
        ({"positions": "rope"}, "positions must be one of True, False, rotary; not 'rope'"),
        ({"norm_layer": "rms"}, "norm_layer must be one of layer_norm, rms_norm; not 'rms'"),
        ({"window": 0}, "window must be a whole number, at least 1, not 0"),
        ({"conv_kernel": 0}, "conv_kernel must be a whole number, at least 1, not 0"),
        ({"conv_kernel": 4, "causal": False}, "a conv_kernel of 4 looks back, before an MLP: it needs both"),
        ({"conv_kernel": 4, "activation": "none"}, "a conv_kernel of 4 looks back, before an MLP: it needs both"),
        ({"conv_kernel": 4, "window": 3}, "a window of 3 is shorter than the conv_kernel of 4"),
        ({"window": 3, "causal": False}, "a window of 3 looks back only: it needs causal=True"),
        ({"norm_eps": 0}, "norm_eps must be above 0, not 0"),
        ({"rope_theta": -1.0}, "rope_theta must be above 0, not -1.0"),
        ({"rope_scaling": (8.0, 4.0, 1.0, 100)}, r"rope_scaling must be \(factor, low, high, original\), all above 0"),
        ({"embedding_std": 0}, "embedding_std must be above 0, not 0"),
        ({"embedding_std": math.inf}, "embedding_std must be above 0, not inf"),
        ({"width": 10}, "width 10 is not divisible by 4 heads"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(BASE, **options)


@both_tracks
def test_the_initial_scale_of_the_token_table_is_its_own(track):
    """The other weights are those of a model without the setting, number for number."""
    size = {"vocab_size": 64, "width": 32, "init": "small"}
    plain, own = (
        track.models.GPT(dataclasses.replace(BASE, **size, embedding_std=std), seed=3).state_dict()
        for std in (None, 0.5)
    )
    assert abs(plain["token.weight"].std() - 0.02) < 0.001 and abs(own["token.weight"].std() - 0.5) < 0.02
    assert_close(own.pop("token.weight"), 25 * plain.pop("token.weight"), 1e-12)
    for name, value in plain.items():
        np.testing.assert_array_equal(own[name], value, name)


@both_tracks
def test_a_normalised_embedding_has_one_size(track):
    table = track.today.NormalizedEmbedding(V, 16, init=0, std=7.0, eps=1e-12)
    out, rows = array(table(some_ids(2, T))), array(table.weight)[some_ids(2, T)]
    assert_close((out**2).mean(-1), np.ones((2, T)), 1e-6)
    assert_close(out * np.sqrt((rows**2).mean(-1, keepdims=True)), rows, 1e-4)  # the direction is the row's
    assert [name for name, _ in table.named_parameters()] == ["weight"]


def test_the_size_of_the_gated_mlp():
    """8/3 C, up to the next multiple of 8: as many elements in three matrices as in two with 4C."""
    sizes = {C: GPTConfig(V, width=C, heads=1, activation="swiglu").hidden_units for C in (1, 3, 48, 128, 4096)}
    assert sizes == {1: 8, 3: 8, 48: 128, 128: 344, 4096: 10928}
