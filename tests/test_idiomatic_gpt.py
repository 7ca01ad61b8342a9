"""The GPT as an nn.Module: the raw tracks' numbers, the same training loop, devices and mixed precision."""

import dataclasses

import numpy as np
import pytest
import torch
from track_tools import NUMPY, TORCH, array, assert_same, both_tracks, grad

from course_lib.common import config as configs
from course_lib.common.config import GPTConfig
from course_lib.idiomatic.gpt import ACTIVATIONS, GPT
from course_lib.idiomatic.training import AdamW, OnDevice, as_raw
from course_lib.idiomatic.weights import load_raw, pairs, raw_state
from course_lib.text import Batches, CharTokenizer, load_corpus
from course_lib.training import WarmupCosine, evaluate, load_checkpoint, save_checkpoint, train

V, T, C, H, L = 17, 6, 12, 3, 2
SMALL = GPTConfig(V, T, C, H, L, activation="gelu", init="uniform", dtype="float64")
SHAPES = pytest.mark.parametrize(
    "options",
    [{}, {"activation": "relu"}, {"tied": True, "attention_bias": True}, {"layers": 0}],
    ids=["gelu", "relu", "as GPT-2", "no blocks"],
)


def ids(*shape, seed=0):
    return np.random.default_rng(seed).integers(V, size=shape)


def the_two(track, seed=0, **options):
    """A raw model whose weights are all stirred, and the same as an nn.Module."""
    raw, rng = track.models.GPT(dataclasses.replace(SMALL, **options), seed), np.random.default_rng(seed)
    for p in raw.parameters():
        array(p)[...] += 0.1 * rng.standard_normal(tuple(p.shape))
    return raw, load_raw(GPT(raw.config), raw.state_dict())


# ------------------------------------------------------------------ the raw track's numbers
@SHAPES
@both_tracks
def test_outputs_and_gradients_are_the_raw_ones(track, options):
    raw, model = the_two(track, **options)
    x, y = ids(3, T), ids(3, T, seed=1)
    (logits, loss), (their_logits, their_loss) = raw(x, y), model(torch.tensor(x), torch.tensor(y))
    assert_same(logits, their_logits)
    assert_same(loss, their_loss)
    assert_same(raw(x[:, :1])[0], model(torch.tensor(x[:, :1]))[0])
    loss.backward()
    their_loss.backward()
    mine, theirs = dict(raw.named_parameters()), dict(model.named_parameters())
    assert [name for _, name, _ in pairs(model)] == list(mine) and len(theirs) == len(mine)
    for name, raw_name, turned in pairs(model):
        found = theirs[name].grad
        assert_same(grad(mine[raw_name]), found.T if turned else found, raw_name)


def test_a_new_activation_needs_no_change_here():
    """Every name that a config may give is known in both tracks; here the raw track's function stands in."""
    assert set(configs.ACTIVATIONS) == set(NUMPY.F.ACTIVATIONS) == set(TORCH.F.ACTIVATIONS) == set(ACTIVATIONS)


@both_tracks
def test_weights_go_back(track):
    torch.manual_seed(0)
    model, raw = GPT(SMALL), track.models.GPT(SMALL, seed=1)
    raw.load_state_dict(raw_state(model))
    assert_same(raw(ids(2, T))[0], model(torch.tensor(ids(2, T)))[0])


def test_what_it_refuses():
    for options in ({"norm": "post"}, {"causal": False}, {"positions": False}, {"activation": "none"}):
        with pytest.raises(ValueError, match="this form is causal and pre-norm, with positions and an MLP"):
            GPT(dataclasses.replace(SMALL, **options))
    for size in (0, T + 1):
        with pytest.raises(ValueError, match=f"a window of {size} tokens: the model takes 1 to {T} "):
            GPT(SMALL)(torch.zeros(1, size, dtype=torch.int64))


def test_dropout_knows_train_and_eval():
    model, x = GPT(dataclasses.replace(SMALL, dropout=0.5)), torch.tensor(ids(1, T))
    assert not torch.equal(model(x)[0], model(x)[0])
    model.eval()
    assert torch.equal(model(x)[0], model(x)[0])


# ------------------------------------------------------------------ the same loop
def batches(seed=1):
    corpus = CharTokenizer.from_text(load_corpus("hello").text)
    return corpus, Batches(corpus.encode(load_corpus("hello").text), T, 4, seed=seed)


def options_of(steps):
    return {"steps": steps, "schedule": WarmupCosine(0.01, 2, 8, 0.001), "clip": 0.5, "progress": False}


@both_tracks
def test_training_is_that_of_the_raw_track(track):
    raw, model = the_two(track, attention_bias=False)
    optimizer = track.optim.AdamW(raw.parameters(), 0.01, weight_decay=0.1)
    expected = train(raw, optimizer, batches()[1], **options_of(8))
    found = train(OnDevice(model), mine := AdamW(model, 0.01, weight_decay=0.1), batches()[1], **options_of(8))
    assert max(expected.norms) > 0.5  # clipping was at work
    for name in ("losses", "norms", "lrs"):
        assert_same(np.array(getattr(found, name)), np.array(getattr(expected, name)), name)
    for name, value in raw.state_dict().items():
        assert_same(raw_state(model)[name], value, name)
    state, other = mine.state_dict(), optimizer.state_dict()
    assert (state["steps"], state["decayed"]) == (other["steps"], other["decayed"]) == (8, mine.decayed)
    for name in ("mean", "square"):
        assert_same(state[name], other[name], name)


@both_tracks
def test_a_checkpoint_changes_form_and_training_goes_on(track, tmp_path):
    """Half of the run as an nn.Module, the other half in a raw track, and the other way round."""
    (_, model), (tokenizer, whole) = the_two(track), batches()
    optimizer = AdamW(model, 0.01)
    assert optimizer.state_dict()["steps"] == 0 and not optimizer.state_dict()["mean"].any()
    train(OnDevice(model), optimizer, whole, **options_of(4))
    converted, copy = as_raw(model, optimizer)
    save_checkpoint(tmp_path / "half", converted, tokenizer, copy, whole)
    kept = load_checkpoint(tmp_path / "half", track.name)
    rest = batches(seed=5)[1]
    rest.load_state_dict(kept.batches_state)
    theirs = track.optim.AdamW(kept.model.parameters(), 0.01)
    theirs.load_state_dict(kept.optimizer_state)
    again = AdamW(resumed := load_raw(GPT(SMALL), kept.model.state_dict()), 0.5)
    again.load_state_dict(kept.optimizer_state)
    second = batches(seed=6)[1]
    second.load_state_dict(kept.batches_state)
    for one, its, where in ((kept.model, theirs, rest), (OnDevice(resumed), again, second)):
        train(one, its, where, **options_of(4))
    train(OnDevice(model), optimizer, whole, **options_of(4))
    for name, value in raw_state(model).items():
        assert_same(kept.model.state_dict()[name], value, name)
        assert (raw_state(resumed)[name] == value).all(), name


def test_a_state_of_another_model():
    state = AdamW(GPT(SMALL), 0.1).state_dict()
    with pytest.raises(ValueError, match="this state is for .* parameters of which .* decay, not for"):
        AdamW(GPT(dataclasses.replace(SMALL, layers=1)), 0.1).load_state_dict(state)


# ------------------------------------------------------------------ devices and precision
def test_devices():
    with pytest.raises(ValueError, match="device must be one of cpu, cuda, mps, not 'meta'"):
        OnDevice(GPT(SMALL), "meta")


@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_training_on_a_device(device):
    if device != "cpu" and not getattr(torch, device).is_available():
        pytest.skip(f"no {device} on this machine")
    config = dataclasses.replace(SMALL, dtype="float32")
    raw = TORCH.models.GPT(config)
    model = OnDevice(load_raw(GPT(config), raw.state_dict()), device)
    assert {p.device.type for p in model.parameters()} == {device}
    found = train(model, AdamW(model.model, 0.01), batches()[1], **options_of(5))
    expected = train(raw, TORCH.optim.AdamW(raw.parameters(), 0.01), batches()[1], **options_of(5))
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-3)
    x, y = batches()[1].x[:9], batches()[1].y[:9]
    assert abs(evaluate(model, x, y, 4) - evaluate(raw, x, y)) < 1e-2
    assert model.training and model.model.training and torch.is_grad_enabled()  # as they were


def test_mixed_precision():
    """Products in bfloat16 (8 bits of mantissa), weights and loss in float32; the loss falls as in float32."""
    config = dataclasses.replace(SMALL, dtype="float32")
    state, runs = NUMPY.models.GPT(config).state_dict(), {}
    for mixed in (False, True):
        model = OnDevice(load_raw(GPT(config), state), mixed=mixed)
        logits, loss = model(*next(batches()[1]))
        assert logits.dtype == (torch.bfloat16 if mixed else torch.float32) and loss.dtype == torch.float32
        runs[mixed] = train(model, AdamW(model.model, 0.01), batches()[1], **options_of(8)).losses
        assert {p.dtype for p in model.parameters()} == {p.grad.dtype for p in model.parameters()} == {torch.float32}
    assert 0 < np.abs(np.subtract(runs[True], runs[False])).max() < 0.05
    assert runs[True][-1] < runs[True][0]
