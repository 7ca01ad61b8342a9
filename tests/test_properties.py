"""What must hold for the whole GPT however it is wired: each property for each wiring, tied or not, with dropout."""

import math
from functools import partial

import numpy as np
import pytest
from track_tools import array, assert_close, assert_states_equal, both_tracks

from course_lib.common.config import GPTConfig
from course_lib.inference import generate
from course_lib.text import Batches, CharTokenizer, load_corpus, windows
from course_lib.training import WarmupCosine, evaluate, load_checkpoint, save_checkpoint, train

TOKENIZER = CharTokenizer.from_text(load_corpus("hello").text)
IDS = TOKENIZER.encode(load_corpus("hello").text)
V, T = len(TOKENIZER), 8
X, Y = windows(IDS, T)
GPTS = [
    {"dropout": 0.3},
    {"norm": "post", "dropout": 0.3},
    {"norm": None, "activation": "gelu", "dropout": 0.3},
    {"norm": None, "residual": False, "dropout": 0.3},
    {"tied": True, "residual_scaled": True, "activation": "gelu", "dropout": 0.3},
    {"tied": True, "norm": "post", "positions": False, "activation": "none", "dropout": 0.3},
    {"tied": True, "norm": None, "attention_bias": True},
]
every_gpt = pytest.mark.parametrize("options", GPTS, ids=str)


def gpt(track, options, **more):
    size = {"context_length": T, "width": 12, "heads": 3, "layers": 2, "init": "uniform", "dtype": "float64"}
    return track.models.GPT(GPTConfig(V, **{**size, **options, **more}), seed=1)


def logits_of(model, ids):
    with model.evaluating():
        return array(model(ids)[0]).copy()


@both_tracks
@every_gpt
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_M08_no_position_sees_a_later_one(track, options, training):
    """In training too: with equal dropout masks, the past does not move when the future does."""

    def logits(ids):
        model = gpt(track, options)
        return array(model.train(training)(ids)[0])

    before = logits(X[:2])
    for k in range(T):
        changed = X[:2].copy()
        changed[:, k] = (changed[:, k] + 1) % V
        after = logits(changed)
        np.testing.assert_array_equal(after[:, :k], before[:, :k], err_msg=f"a position before {k} saw it")
        assert training or (np.abs(after[:, k] - before[:, k]).max(-1) > 1e-9).all(), f"{k} does not see itself"


@both_tracks
@every_gpt
def test_T01_heads_put_side_by_side_again_are_what_was_cut(track, options):
    """In every layer of the model: merge(split(x)) = x, and so for query, key and value, which are cut together."""
    F, model = track.F, gpt(track, options)
    x = track.constant(np.random.default_rng(0).standard_normal((2, T, 12)))
    for block in model.blocks:
        layer = block.attention.layer
        np.testing.assert_array_equal(array(F.merge_heads(F.split_heads(x, layer.heads))), array(x))
        layers = (layer.query, layer.key, layer.value)
        pieces = F.linear_heads(x, [f.weight for f in layers], [f.bias for f in layers], layer.heads)
        for f, piece in zip(layers, pieces, strict=True):
            assert tuple(piece.shape) == (2, 3, T, 4)
            assert_close(F.merge_heads(piece), array(f(x)), 1e-12)


@both_tracks
@every_gpt
def test_T06_evaluating_twice_gives_the_same(track, options):
    model = gpt(track, options)
    one, other = logits_of(model, X[:3]), logits_of(model, X[:3])
    np.testing.assert_array_equal(one, other)
    assert_close(one, logits_of(gpt(track, options, dropout=0.0), X[:3]), 0)


@both_tracks
@every_gpt
def test_X04_a_batch_is_its_windows_one_by_one(track, options):
    model = gpt(track, options)
    alone = np.concatenate([logits_of(model, X[i : i + 1]) for i in range(5)])
    assert_close(logits_of(model, X[:5]), alone, 1e-12)


@both_tracks
@every_gpt
def test_P04_the_first_loss_is_that_of_a_guess(track, options):
    model = gpt(track, options, init="small", dtype="float32", width=48)
    assert abs(evaluate(model, X, Y) - math.log(V)) < 0.1
    assert abs(model(X, Y)[1].item() - math.log(V)) < 0.1


@both_tracks
@every_gpt
def test_O10_evaluation_does_not_depend_on_the_batch_size(track, options):
    model = gpt(track, options)
    losses = [evaluate(model, X, Y, batch_size) for batch_size in (1, 7, 49, 50, 1000)]
    assert_close(losses, [losses[0]] * 5, 1e-12)


@both_tracks
@every_gpt
def test_O14_evaluating_and_sampling_do_not_change_training(track, options):
    results = []
    for looks in (False, True):
        model, batches = gpt(track, options), Batches(IDS, T, 4, seed=0)
        optimizer = track.optim.AdamW(model.parameters(), 1e-3)
        if looks:

            def look(step, model=model):
                generate(model, TOKENIZER, "hello", 3)

            more = {"evaluate": partial(evaluate, model, X, Y), "evaluate_every": 1, "after_step": look}
        else:
            more = {}
        history = train(model, optimizer, batches, 4, progress=False, **more)
        results.append((history.losses, model.state_dict()))
    assert results[0][0] == results[1][0]
    assert_states_equal(results[0][1], results[1][1])


@both_tracks
@every_gpt
def test_O15_n_and_n_steps_are_2n_steps_across_a_file(track, options, tmp_path):
    schedule = WarmupCosine(lr=0.01, warmup_steps=2, total_steps=6, min_lr=0.001)

    def run(model, optimizer, batches, steps, history=None):
        more = {"schedule": schedule, "clip": 0.5, "accumulate": 2, "history": history, "progress": False}
        return train(model, optimizer, batches, steps, **more)

    model, batches = gpt(track, options, dtype="float32"), Batches(IDS, T, 4, seed=3)
    whole = run(model, track.optim.AdamW(model.parameters(), 0.5), batches, 6)
    expected = model.state_dict()

    model, batches = gpt(track, options, dtype="float32"), Batches(IDS, T, 4, seed=3)
    optimizer = track.optim.AdamW(model.parameters(), 0.5)
    history = run(model, optimizer, batches, 3)
    save_checkpoint(tmp_path / "half", model, TOKENIZER, optimizer, batches, history=history)
    found, batches = load_checkpoint(tmp_path / "half", track.name), Batches(IDS, T, 4, seed=99)
    optimizer = track.optim.AdamW(found.model.parameters(), 9.0)
    optimizer.load_state_dict(found.optimizer_state)
    batches.load_state_dict(found.batches_state)
    history = run(found.model, optimizer, batches, 3, found.history)  # nothing but the file is needed
    assert history.lrs == whole.lrs and history.losses == whole.losses and history.norms == whole.norms
    assert_states_equal(found.model.state_dict(), expected)
