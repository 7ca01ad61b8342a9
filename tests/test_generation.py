"""Sampling, the same for both tracks. Names like G01 are those of known faults."""

import gc
import re
import weakref
from functools import partial

import numpy as np
import pytest
from track_tools import NUMPY, TORCH, array, assert_close, both_tracks

from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.inference import generate, generate_ids, next_probabilities
from course_lib.inference import sampling as generation
from course_lib.text import CharTokenizer, load_corpus

TOKENIZER = CharTokenizer.from_text(load_corpus("hello").text)
V = len(TOKENIZER)
LOGITS = np.array([1.0, 3.0, 2.0])


def gpt(track, **options):
    config = GPTConfig(V, **{"context_length": 8, "width": 8, "heads": 2, "layers": 1, "init": "uniform", **options})
    return track.models.GPT(config)


# ------------------------------------------------------------------ probabilities


def test_G01_temperature():
    for cold in (0, 0.0, 1e-6, 1e-3, 1e-200, 5e-324):
        assert_close(next_probabilities(LOGITS, cold), [0, 1, 0], 1e-12)
    for wrong in (-1, -1e-9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=str(wrong)):
            next_probabilities(LOGITS, wrong)
    exps = np.exp(LOGITS / 2)
    assert_close(next_probabilities(LOGITS, 2.0), exps / exps.sum(), 1e-12)
    assert_close(next_probabilities(LOGITS, 1e9), [1 / 3] * 3, 1e-8)
    assert_close(next_probabilities(np.array([1000.0, 0.0, -1000.0])), [1, 0, 0], 1e-12)


def test_top_k():
    p = next_probabilities(LOGITS)
    assert_close(next_probabilities(LOGITS, top_k=1), [0, 1, 0])
    assert_close(next_probabilities(LOGITS, top_k=2), np.array([0, p[1], p[2]]) / (p[1] + p[2]), 1e-12)
    for all_of_them in (3, 4, 10**9, np.int64(3)):  # more than V means V
        assert_close(next_probabilities(LOGITS, top_k=all_of_them), p, 0)
    assert_close(next_probabilities(np.zeros(4), top_k=2), [0.5, 0.5, 0, 0])  # exactly k, also where there is a tie
    assert_close(next_probabilities(LOGITS, 0, top_k=2), [0, 1, 0])
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match=f"top_k.*{wrong}"):
            next_probabilities(LOGITS, top_k=wrong)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_G05_probabilities_sum_to_one_in_float64(dtype):
    rng = np.random.default_rng(0)
    for _ in range(300):
        logits = (5 * rng.standard_normal(65)).astype(dtype)
        p = next_probabilities(logits, 0.8, top_k=rng.integers(1, 70))
        assert p.dtype == np.float64 and abs(p.sum() - 1) < 1e-12
        rng.choice(65, p=p)
        rng.multinomial(1, p)


def test_G05_why_the_sum_matters():
    """A float32 softmax misses 1 by more than NumPy's samplers allow; in float64, divided by its sum, it does not."""
    rng, p = np.random.default_rng(0), np.array([1 / 3, 1 / 3, 1 / 3, 0], np.float32)
    with pytest.raises(ValueError, match="sum"):
        rng.multinomial(1, p)
    with pytest.raises(ValueError, match="sum"):
        rng.choice(4, p=p.tolist())
    ours = next_probabilities(np.log(p, where=p > 0, out=np.full(4, -np.inf, np.float32)))
    rng.multinomial(1, ours)
    rng.choice(4, p=ours.tolist())


def test_samples_follow_the_probabilities():
    class Constant:
        vocab_size, context_length = 3, 5

        def evaluating(self):
            return NUMPY.modules.Module().evaluating()

        def __call__(self, ids):
            return NUMPY.constant(np.broadcast_to(LOGITS, (*ids.shape, 3))), None

    ids = list(generate_ids(Constant(), [0], 4000, rng=np.random.default_rng(0)))
    assert_close(np.bincount(ids, minlength=3) / 4000, next_probabilities(LOGITS), 0.03)


# ------------------------------------------------------------------ one token after the other


@both_tracks
def test_greedy_takes_the_most_likely_token_each_time(track):
    model, ids = gpt(track), [3, 1]
    for new in generate_ids(model, ids, 5, temperature=0):
        assert new == array(model(np.array([ids])[:, -8:])[0])[0, -1].argmax()
        ids.append(new)


@both_tracks
@pytest.mark.parametrize("kind", ["GPT", "GPT without cache", "FirstGPT", "Bigram"])
def test_G04_the_model_sees_its_context_and_the_text_stays_whole(track, kind):
    write = partial(generate, cache=False if kind == "GPT without cache" else None)
    model = {
        "GPT": lambda: gpt(track),
        "FirstGPT": lambda: track.models.FirstGPT(FirstGPTConfig(V, context_length=8, width=8, layers=1)),
        "Bigram": lambda: track.models.Bigram(V),
    }[kind.split()[0]]()
    prompt = "transformer learns l"
    text = write(model, TOKENIZER, prompt, 3, temperature=0)
    assert len(text) == 23 and text.startswith(prompt)
    assert text[20] == write(model, TOKENIZER, prompt[-8:], 1, temperature=0)[-1]
    ids = TOKENIZER.encode(prompt).tolist()
    seen = generation.next_logits(model, ids)
    np.testing.assert_array_equal(seen, generation.next_logits(model, ids[-8:]))
    assert not np.array_equal(seen, generation.next_logits(model, ids[:8])), "the first tokens would do as well"
    assert len(write(model, TOKENIZER, "h", 30)) == 31


@both_tracks
def test_G06_dropout_is_off_and_modes_and_generators_stay(track):
    model = gpt(track, dropout=0.5)
    state = model.dropout.rng.bit_generator.state
    one, other = (generate(model, TOKENIZER, "hello", 12, temperature=0) for _ in range(2))
    assert one == other
    assert model.dropout.rng.bit_generator.state == state
    assert all(module.training for module in model.modules())
    model.eval()
    generate(model, TOKENIZER, "hello", 2)
    assert not any(module.training for module in model.modules())


@both_tracks
def test_G06_no_graph_is_built_and_none_is_kept(track):
    seen = []

    class Watched(track.models.GPT):
        def forward(self, ids, targets=None, cache=None):
            logits, loss = super().forward(ids, targets, cache)
            seen.append((logits.requires_grad, weakref.ref(logits)))
            return logits, loss

    generate(Watched(GPTConfig(V, context_length=8, width=8, heads=2, layers=1)), TOKENIZER, "hello", 3)
    gc.collect()
    assert [(tracked, logits() is None) for tracked, logits in seen] == [(False, True)] * 3


@both_tracks
@pytest.mark.parametrize("cache", [True, False])
def test_A18_between_two_tokens_nothing_is_switched_off(track, cache):
    model = gpt(track, dropout=0.5)
    paused = generate_ids(model, [1, 2], 9, cache=cache)
    for _ in paused:  # on past the context
        assert all(module.training for module in model.modules()) and (track.leaf([1.0]) * 1).requires_grad
    with track.tensor.no_grad():
        next(generate_ids(model, [1, 2], 9, cache=cache))
        assert not (track.leaf([1.0]) * 1).requires_grad


@both_tracks
@pytest.mark.parametrize("cache", [True, False])
def test_O13_modes_come_back_after_an_error_too(track, cache):
    model = gpt(track, dropout=0.5)
    model.blocks[0].mlp = lambda x: 1 / 0
    for mode in (True, False):
        model.train(mode)
        with pytest.raises(ZeroDivisionError):
            generate(model, TOKENIZER, "hello", 2, cache=cache)
        assert {module.training for module in model.modules()} == {mode} and (track.leaf([1.0]) * 1).requires_grad


def test_equal_seeds_give_equal_text_in_both_tracks():
    models = gpt(NUMPY, dtype="float64"), gpt(TORCH, dtype="float64")
    for options in ({}, {"temperature": 0.5, "top_k": 3}, {"temperature": 0}):
        one, other = (generate(model, TOKENIZER, "hello", 30, seed=4, **options) for model in models)
        assert one == other
    assert generate(models[0], TOKENIZER, "hello", 30, seed=5) != generate(models[0], TOKENIZER, "hello", 30, seed=4)


@both_tracks
def test_sampling_leaves_every_global_generator_alone(track):
    import random

    before = random.getstate(), np.random.get_state()[1].tolist()
    generate(gpt(track), TOKENIZER, "hello", 3)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


@both_tracks
def test_wrong_prompts_and_lengths_are_named(track):
    model = gpt(track)
    for prompt, length, message in (("", 3, "prompt is empty"), ("hello X", 3, "'X'"), ("h", -1, "-1")):
        with pytest.raises(ValueError, match=message):
            generate(model, TOKENIZER, prompt, length)
    assert generate(model, TOKENIZER, "h", 0) == "h"
    for wrong in ([V], [-1], [V, *[0] * 20]):  # also where the context would crop it away
        with pytest.raises(IndexError, match=rf"{wrong[0]}\b.*\b{V}\b"):
            list(generate_ids(model, wrong, 1))
    with pytest.raises(TypeError, match="float64"):
        list(generate_ids(model, [1.5], 1))


# ------------------------------------------------------------------ with and without a cache


WAYS = [{"temperature": 0}, {"temperature": 1.0}, {"temperature": 1.5, "top_k": 5}]


@both_tracks
@pytest.mark.parametrize(("norm", "residual"), [("pre", True), ("post", True), (None, True), (None, False)])
@pytest.mark.parametrize("options", [{}, {"positions": False}, {"tied": True}, {"dropout": 0.5}], ids=str)
def test_the_text_is_the_same(track, norm, residual, options):
    """Token for token: within the context, at its end and beyond, also when the prompt alone is longer."""
    model = gpt(track, norm=norm, residual=residual, layers=2, dtype="float64", **options)
    for prompt in ("h", "hello", "hello wo", "hello transformer"):
        for way in WAYS:
            one, other, usual = (
                generate(model, TOKENIZER, prompt, 20, seed=3, cache=cache, **way) for cache in (True, False, None)
            )
            assert one == other == usual


class Counting:
    """How many tokens each call of a model was given, and whether a cache came along."""

    def __init__(self, model):
        self.calls, self.forward = [], model.forward
        model.forward = self

    def __call__(self, ids, targets=None, cache=None):
        self.calls.append((ids.shape[1], cache is not None))
        return self.forward(ids, targets, cache)


@both_tracks
def test_a_step_with_a_cache_computes_one_position(track):
    for cache in (True, None):
        model = gpt(track)
        counting = Counting(model)
        list(generate_ids(model, [1, 2, 3], 8, cache=cache))
        assert counting.calls == [(3, True)] + [(1, True)] * 5 + [(8, False)] * 2  # beyond the context: the window
    counting.calls.clear()
    list(generate_ids(model, [1, 2, 3], 8, cache=False))
    assert counting.calls == [(n, False) for n in (3, 4, 5, 6, 7, 8, 8, 8)]
    counting.calls.clear()
    list(generate_ids(model, [1] * 9, 2))
    assert counting.calls == [(8, False)] * 2


@both_tracks
def test_in_float32_the_logits_stay_close(track):
    model = gpt(track, layers=2, width=32, context_length=32)
    ids = np.random.default_rng(0).integers(V, size=32).tolist()
    cache, worst, largest = model.new_cache(), 0, 0
    for n in range(1, 33):
        one, other = generation.next_logits(model, ids[:n], cache), generation.next_logits(model, ids[:n])
        worst, largest = max(worst, np.abs(one - other).max()), max(largest, np.abs(other).max())
    assert one.dtype == np.float32 and 0 <= worst <= 1e-5 * largest


@both_tracks
def test_models_without_a_cache(track):
    first, bigram = track.models.FirstGPT(FirstGPTConfig(V, context_length=8, width=8)), track.models.Bigram(V)
    open_eyed = gpt(track, causal=False)
    for model in (first, bigram, open_eyed):
        assert generate(model, TOKENIZER, "hello", 9) == generate(model, TOKENIZER, "hello", 9, cache=False)
    for model in (first, bigram):
        with pytest.raises(ValueError, match=rf"a {type(model).__name__} has no cache"):
            generate(model, TOKENIZER, "hello", 0, cache=True)
    with pytest.raises(ValueError, match="not causal"):
        generate(open_eyed, TOKENIZER, "hello", 1, cache=True)


@both_tracks
def test_two_texts_at_a_time(track):
    """Each generator has a cache of its own."""
    model = gpt(track, dtype="float64")
    one, other = generate_ids(model, [1], 12), generate_ids(model, [2, 3], 12)
    together = list(zip(one, other, strict=True))
    for n, prompt in enumerate(([1], [2, 3])):
        assert [pair[n] for pair in together] == list(generate_ids(model, prompt, 12, cache=False))


# ------------------------------------------------------------------ requests that make no sense


@both_tracks
def test_several_prompts_are_refused(track):
    model = gpt(track)
    for shape in ((2, 3), (3, 1)):
        with pytest.raises(ValueError, match=f"one prompt at a time.*{re.escape(str(shape))}"):
            list(generate_ids(model, np.zeros(shape, int), 2))
    assert list(generate_ids(model, np.array([[1, 2]]), 3)) == list(generate_ids(model, [1, 2], 3))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_logits_that_are_not_numbers(wrong, temperature):
    with pytest.raises(ValueError, match="1 of 3 logits are nan or infinite"):
        next_probabilities(np.array([1.0, wrong, 2.0]), temperature)
    with pytest.raises(ValueError, match="2 of 2 logits are nan or infinite"):
        next_probabilities(np.array([-np.inf, -np.inf]), temperature)
    assert_close(next_probabilities(np.array([-np.inf, 1.0])), [0, 1], 0)


@both_tracks
@pytest.mark.parametrize("length", [0, 1])
def test_temperature_and_top_k_are_checked_at_every_length(track, length):
    for temperature in ("warm", None, -1, np.nan, np.inf, [1.0]):
        with pytest.raises(ValueError, match="temperature must be 0 or a positive number, not "):
            generate(gpt(track), TOKENIZER, "hello", length, temperature=temperature)
    for top_k in (0, 1.5, np.nan, np.inf, "x", "2"):
        with pytest.raises(ValueError, match="top_k must be a whole number from 1 up, not "):
            generate(gpt(track), TOKENIZER, "hello", length, top_k=top_k)
