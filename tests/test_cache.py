"""The key/value cache: the same numbers as without, one token or several at a time; and what it refuses."""

import numpy as np
import pytest
from test_models import EVERY_GPT, T, V, first_gpt, gpt, logits_of, some_ids
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, both_tracks

from course_lib.experiments.bench import generation as bench_generation

PIECES = [[T], [1] * T, [3, 1, 1, 1], [2, 4], [1, 4, 1]]  # how the tokens of one context come, piece by piece


def cached_logits(model, ids, pieces, cache=None):
    """Logits (B, T, V), computed piece by piece with a cache."""
    cache = model.new_cache(len(ids)) if cache is None else cache
    start, found = 0, []
    with model.evaluating():
        for size in pieces:
            found.append(array(model(ids[:, start : start + size], cache=cache)[0]).copy())
            start += size
    return np.concatenate(found, axis=1)


# ------------------------------------------------------------------ the same numbers


@both_tracks
@pytest.mark.parametrize("options", EVERY_GPT, ids=str)
def test_logits_are_those_without_a_cache(track, options):
    model, ids = gpt(track, **options), some_ids(2, T)
    expected = logits_of(model, ids)
    for pieces in PIECES:
        assert_same(cached_logits(model, ids, pieces), expected, f"in pieces {pieces}")


@both_tracks
@pytest.mark.parametrize("options", [{}, {"norm": "post"}, {"tied": True, "activation": "gelu"}], ids=str)
def test_in_float32_too(track, options):
    model, ids = gpt(track, dtype="float32", **options), some_ids(2, T)
    assert_same(cached_logits(model, ids, [1] * T), logits_of(model, ids))


def test_parity_of_the_tracks():
    models, ids = [gpt(NUMPY), gpt(TORCH)], some_ids(2, T)
    caches = [model.new_cache(2) for model in models]
    one, other = (cached_logits(model, ids, [2, 1, 3], cache) for model, cache in zip(models, caches, strict=True))
    assert_same(one, other)
    for name in ("keys", "values"):
        assert_same(getattr(caches[0], name), getattr(caches[1], name), name)
        assert getattr(caches[0], name).shape == (2, 2, 3, T, 4)  # (L, B, H, T, D)


@both_tracks
def test_it_holds_the_keys_and_values_of_each_layer(track):
    model, ids = gpt(track), some_ids(1, T)
    cache = model.new_cache()
    cached_logits(model, ids, [2, 1], cache)
    assert cache.length == 3
    attention = model.blocks[0].attention
    with model.evaluating():
        normed = attention.norm(model.token(ids) + model.position[:T])
        keys, values = (track.F.split_heads(f(normed), 3) for f in (attention.layer.key, attention.layer.value))
    for kept, expected in ((cache.keys[0], keys), (cache.values[0], values)):
        assert_close(kept[:, :, :3], array(expected)[:, :, :3], 1e-12)
        assert (kept[:, :, 3:] == 0).all() and kept.any()


@both_tracks
def test_a_step_reuses_the_memory(track):
    model, ids = gpt(track), some_ids(1, T)
    cache = model.new_cache()
    arrays = cache.keys, cache.values
    cached_logits(model, ids, [3, 1], cache)
    assert cache.keys is arrays[0] and cache.values is arrays[1]
    with model.evaluating():
        kept, _ = cache.extend(0, *(track.constant(np.ones((1, 3, 1, 4))) for _ in range(2)))
    assert np.shares_memory(array(kept), cache.keys) and kept.shape == (1, 3, 5, 4)


@both_tracks
def test_weights_after_a_step_are_its_rows(track):
    """Rows are queries, columns are keys: the row of the new position, over all positions so far."""
    model, ids = gpt(track), some_ids(1, T)
    maps = model.attention_maps(ids[0])
    cache = model.new_cache()
    for start, size in ((0, 2), (2, 1), (3, 3)):
        with model.evaluating():
            model(ids[:, start : start + size], cache=cache)
        for block, expected in zip(model.blocks, maps, strict=True):
            assert_close(block.attention.layer.weights[0], expected[:, start : start + size, : start + size], 1e-12)


# ------------------------------------------------------------------ who sees what, and the batch


@both_tracks
@pytest.mark.parametrize("pieces", [[1] * T, [2, 4], [3, 1, 2]], ids=str)
def test_M08_nobody_sees_the_future(track, pieces):
    model, ids = gpt(track), some_ids(2, T)
    before = cached_logits(model, ids, pieces)
    for k in range(T):
        changed = ids.copy()
        changed[:, k] = (changed[:, k] + 1) % V
        moved = np.abs(cached_logits(model, changed, pieces) - before).max(-1)
        assert (moved[:, :k] == 0).all(), f"a position before {k} saw the token at {k}"
        assert (moved[:, k:] > 1e-9).all(), f"a position from {k} on does not see the token at {k}"


@both_tracks
def test_X04_batched_is_one_by_one(track):
    model, ids = gpt(track), some_ids(3, T)
    alone = np.concatenate([cached_logits(model, ids[i : i + 1], [2, 1, 3]) for i in range(3)])
    assert_close(cached_logits(model, ids, [2, 1, 3]), alone, 1e-12)


@both_tracks
def test_two_caches_do_not_meet(track):
    model, ids = gpt(track), some_ids(2, T)
    caches = model.new_cache(), model.new_cache()
    with model.evaluating():
        found = [
            [array(model(ids[i : i + 1, t : t + 1], cache=caches[i])[0])[0, 0].copy() for i in (0, 1)] for t in range(T)
        ]
    assert_close(np.array(found).swapaxes(0, 1), logits_of(model, ids), 1e-12)


@both_tracks
def test_without_a_cache_nothing_is_kept(track):
    model, ids = gpt(track), some_ids(2, T)
    cache = model.new_cache(2)
    before = logits_of(model, ids)
    cached_logits(model, ids, [T], cache)
    np.testing.assert_array_equal(logits_of(model, ids), before)
    assert model.state_dict().keys() == gpt(track).state_dict().keys()
    model(ids, ids)[1].backward()  # training goes on as ever
    assert all(p.grad is not None for p in model.parameters())


@both_tracks
def test_a_step_that_fails_leaves_no_trace(track):
    model, ids = gpt(track), some_ids(1, T)
    cache = model.new_cache()
    cached_logits(model, ids, [2], cache)
    mlp, model.blocks[1].mlp = model.blocks[1].mlp, lambda x: 1 / 0
    with pytest.raises(ZeroDivisionError), model.evaluating():
        model(ids[:, 2:4] * 0, cache=cache)
    model.blocks[1].mlp = mlp
    with model.evaluating():
        rest = model(ids[:, 2:], cache=cache)[0]
    assert_close(rest, logits_of(model, ids)[:, 2:], 1e-12)


# ------------------------------------------------------------------ what it refuses


@both_tracks
def test_more_tokens_than_the_context(track):
    model, ids = gpt(track), some_ids(1, T)
    cache = model.new_cache()
    with model.evaluating():
        model(ids[:, :4], cache=cache)
        with pytest.raises(ValueError, match=rf"\b4 tokens.*\b3 more\b.*context of {T}\b"):
            model(ids[:, :3], cache=cache)
        with pytest.raises(ValueError, match=rf"\b{T + 1}\b.*\b{T}\b"):
            model(some_ids(1, T + 1), cache=model.new_cache())
        assert cache.length == 4
        model(ids[:, 4:], cache=cache)  # up to the last place
        with pytest.raises(ValueError, match=rf"\b{T} tokens.*\b1 more\b"):
            model(ids[:, :1], cache=cache)


@both_tracks
def test_another_batch_or_another_model(track):
    model = gpt(track)
    with model.evaluating():
        with pytest.raises(ValueError, match=r"batch of 2.*batch of 3"):
            model(some_ids(3, 1), cache=model.new_cache(2))
        with pytest.raises(ValueError, match=r"another model.*layers=3.*layers=2"):
            model(some_ids(1, 1), cache=gpt(track, layers=3).new_cache())
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"batch of 1 or more, not {wrong}"):
            model.new_cache(wrong)


@both_tracks
def test_targets_graphs_and_dropout(track):
    model, ids = gpt(track, dropout=0.25), some_ids(1, 2)
    cache = model.new_cache()
    with model.evaluating(), pytest.raises(ValueError, match="no targets"):
        model(ids, ids, cache=cache)
    with track.tensor.no_grad(), pytest.raises(ValueError, match=r"dropout 0\.25.*model\.evaluating"):
        model(ids, cache=cache)
    model.eval()
    with pytest.raises(ValueError, match=r"graph.*model\.evaluating"):
        model(ids, cache=cache)
    assert cache.length == 0 and not cache.keys.any()
    with track.tensor.no_grad():
        model(ids, cache=cache)  # evaluation mode and no graph: by hand as well
        gpt(track)(ids, cache=gpt(track).new_cache())  # without dropout training mode changes nothing
    assert cache.length == 2


@both_tracks
def test_a_model_that_sees_the_future_has_none(track):
    with pytest.raises(ValueError, match="not causal.*keys and values of all earlier"):
        gpt(track, causal=False).new_cache()
    for model in (first_gpt(track), track.models.Bigram(V)):
        assert not hasattr(model, "new_cache")


# ------------------------------------------------------------------ what it buys:
# course_lib.experiments.bench.generation


def test_the_speed_up_is_measured_for_both_tracks(capsys):
    bench_generation.report([3, 5], rounds=1, threads=1)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[:2] for row in rows] == [[n, track] for n in "35" for track in ("numpy", "torch")]
    for *_, cached, plain, ratio in rows:
        assert float(cached) > 0 and float(plain) > 0 and float(ratio) > 0


def test_each_step_is_measured_once_or_stands_for_its_neighbours(monkeypatch):
    seen, model = [], gpt(NUMPY, context_length=200)
    monkeypatch.setattr(model, "forward", lambda ids, cache=None: seen.append((ids.shape[1], cache is not None)))
    ids = [1] * 200
    bench_generation.seconds_cached(model, ids)
    assert seen == [(1, True)] * 200
    seen.clear()
    bench_generation.seconds_uncached(model, ids)
    lengths = [n for n, cached in seen if not cached]
    assert len(lengths) == bench_generation.STEPS and (lengths[0], lengths[-1]) == (1, 200)
    assert abs(np.mean(lengths) - 100.5) < 1
