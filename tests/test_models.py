"""Whole models of both tracks: shapes, counts, first losses, and that no position sees a later one."""

import math

import numpy as np
import pytest
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, both_tracks, grad

from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.text import CharTokenizer, load_corpus

V, T = 11, 6
EVERY_GPT = [
    {}, {"activation": "gelu"}, {"activation": "none"}, {"norm": "post"}, {"norm": None},
    {"norm": None, "residual": False}, {"positions": False}, {"tied": True}, {"residual_scaled": True},
    {"heads": 1}, {"heads": 12}, {"layers": 1}, {"attention_bias": True},
]  # fmt: skip


def gpt(track, seed=0, **options):
    size = {"context_length": T, "width": 12, "heads": 3, "layers": 2}
    return track.models.GPT(GPTConfig(V, **{**size, "init": "uniform", "dtype": "float64", **options}), seed)


def first_gpt(track, seed=0, **options):
    options = {"context_length": T, "width": 12, "init": "uniform", "dtype": "float64", **options}
    return track.models.FirstGPT(FirstGPTConfig(V, **options), seed)


def some_ids(*shape, seed=0):
    return np.random.default_rng(seed).integers(V, size=shape)


def logits_of(model, ids):
    with model.evaluating():
        return array(model(ids)[0]).copy()


# ------------------------------------------------------------------ the figures of the course


@both_tracks
def test_the_model_of_system_c_has_39153_parameters(track):
    tokenizer = CharTokenizer.from_text(load_corpus("hello").text)
    model = track.models.GPT(GPTConfig(len(tokenizer)))
    assert model.num_parameters() == 39_153
    parts = {
        "token": 17 * 32, "position": 8 * 32, "norm": 2 * 32, "head": 32 * 17 + 17,
        "blocks": 3 * (4 * 32 * 32 + 2 * 2 * 32 + 32 * 128 + 128 + 128 * 32 + 32),
    }  # fmt: skip
    for part, size in parts.items():
        named = model.named_parameters()
        assert sum(math.prod(p.shape) for name, p in named if name.split(".")[0] == part) == size, part


@both_tracks
@pytest.mark.parametrize("tied", [False, True])
def test_P04_the_first_loss_is_that_of_a_guess(track, tied):
    ids, targets = (np.random.default_rng(i).integers(65, size=(8, 16)) for i in (0, 1))
    for seed in range(3):
        config = GPTConfig(65, context_length=16, width=64, tied=tied)
        loss = track.models.GPT(config, seed)(ids, targets)[1].item()
        assert abs(loss - math.log(65)) < 0.1
    first = track.models.FirstGPT(FirstGPTConfig(65, context_length=16, init="small"))(ids, targets)[1].item()
    assert abs(first - math.log(65)) < 0.1
    assert abs(track.models.Bigram(65)(ids, targets)[1].item() - math.log(65)) < 0.1


@both_tracks
def test_P03_a_tied_head_is_the_token_table(track):
    bare = {"context_length": 4, "heads": 1, "layers": 0, "norm": None, "residual": False, "positions": False}
    model = track.models.GPT(GPTConfig(65, width=8, tied=True, **bare))
    assert model.num_parameters() == 520
    assert list(dict(model.named_parameters())) == ["token.weight"] == list(model.state_dict())
    tied = track.models.GPT(GPTConfig(2, width=2, tied=True, dtype="float64", **bare))
    tied.load_state_dict({"token.weight": [[1, 2], [3, 4]]})
    tied(np.array([[0]]))[0].sum().backward()  # logits = W[0] Wᵀ: the table is used twice
    assert_close(grad(tied.token.weight), [[5, 8], [1, 2]])
    assert_close(tied(np.array([[0]]))[0], [[[5, 11]]])


# ------------------------------------------------------------------ shapes and errors


@both_tracks
@pytest.mark.parametrize(
    "make", [gpt, first_gpt, lambda track: track.models.Bigram(V)], ids=["GPT", "FirstGPT", "Bigram"]
)
def test_L05_logits_have_the_same_shape_with_and_without_targets(track, make):
    model, ids = make(track), some_ids(2, 3)
    logits, loss = model(ids, ids)
    assert tuple(logits.shape) == tuple(model(ids)[0].shape) == (2, 3, V)
    assert tuple(loss.shape) == () and model(ids)[1] is None
    assert_same(logits, model(ids)[0])


@both_tracks
@pytest.mark.parametrize("make", [gpt, first_gpt], ids=["GPT", "FirstGPT"])
def test_wrong_ids_are_named(track, make):
    model = make(track)
    for ids, message in (
        (some_ids(2, T + 1), rf"\b{T + 1}\b.*\b{T}\b"), (np.zeros((2, 0), int), r"\b0\b"), (some_ids(3), r"\(3,\)")
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model(ids)
    for wrong in (-1, V):
        with pytest.raises(IndexError, match=rf"{wrong}\b.*\b{V}\b"):
            model(np.array([[0, wrong]]))
        with pytest.raises(IndexError, match=rf"{wrong}\b.*\b{V}\b"):
            model(np.array([[0, 1]]), np.array([[0, wrong]]))
    with pytest.raises(TypeError, match="float64"):
        model(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"\b4\b.*\b2\b"):
        model(some_ids(2, 2), some_ids(2))


@both_tracks
def test_a_model_does_not_change_its_inputs(track):
    ids, targets = some_ids(2, T), some_ids(2, T, seed=1)
    before = ids.copy(), targets.copy()
    gpt(track)(ids, targets)[1].backward()
    np.testing.assert_array_equal((ids, targets), before)


@both_tracks
def test_read_only_windows_of_the_text_are_taken(track):
    """Windows are read-only views of the text; neither track may complain or write into them."""
    text = np.arange(20) % V
    text.flags.writeable = False
    view = np.lib.stride_tricks.sliding_window_view(text, T)
    gpt(track)(view, view)[1].backward()


# ------------------------------------------------------------------ who sees what


def assert_nobody_sees_the_future(model):
    """Change the token at k: nothing may move before k, and k itself must."""
    ids = some_ids(2, T)
    before = logits_of(model, ids)
    for k in range(T):
        changed = ids.copy()
        changed[:, k] = (changed[:, k] + 1) % V
        after = logits_of(model, changed)
        np.testing.assert_array_equal(
            after[:, :k], before[:, :k], err_msg=f"a position before {k} saw the token at {k}"
        )
        assert (np.abs(after[:, k] - before[:, k]).max(-1) > 1e-9).all(), f"position {k} does not see itself"
    return True


def sees_the_future(model):
    ids = some_ids(2, T)
    changed = ids.copy()
    changed[:, -1] = (changed[:, -1] + 1) % V
    return bool(np.abs(logits_of(model, changed) - logits_of(model, ids))[:, :-1].max() > 1e-6)


@both_tracks
@pytest.mark.parametrize("options", EVERY_GPT, ids=str)
def test_M08_no_gpt_sees_the_future(track, options):
    assert_nobody_sees_the_future(gpt(track, **options))


@both_tracks
@pytest.mark.parametrize("output_projection", [True, False])
def test_M08_nor_does_a_causal_first_gpt(track, output_projection):
    assert_nobody_sees_the_future(first_gpt(track, causal=True, output_projection=output_projection))
    assert_nobody_sees_the_future(track.models.Bigram(V))


@both_tracks
def test_M08_without_a_mask_they_do(track):
    assert sees_the_future(first_gpt(track, causal=False))
    assert sees_the_future(gpt(track, causal=False))
    assert not sees_the_future(gpt(track, causal=True))


@both_tracks
def test_every_position_sees_all_of_its_past(track):
    model, ids = gpt(track), some_ids(1, T)
    before = logits_of(model, ids)[:, -1]
    for k in range(T):
        changed = ids.copy()
        changed[:, k] = (changed[:, k] + 1) % V
        assert np.abs(logits_of(model, changed)[:, -1] - before).max() > 1e-9, k


@both_tracks
def test_X04_a_window_does_not_know_its_neighbours_in_the_batch(track):
    for make in (gpt, first_gpt):
        model, ids = make(track), some_ids(3, T)
        alone = np.concatenate([logits_of(model, ids[i : i + 1]) for i in range(3)])
        assert_close(logits_of(model, ids), alone, 1e-12)


@both_tracks
def test_positions_matter_only_if_the_model_has_them(track):
    """Without a mask and without positions, attention is blind to order: exchanging two tokens exchanges two rows."""
    ids = some_ids(1, T)
    swapped = ids[:, [1, 0, *range(2, T)]]
    for positions in (False, True):
        model = gpt(track, causal=False, positions=positions)
        one, other = logits_of(model, ids), logits_of(model, swapped)[:, [1, 0, *range(2, T)]]
        assert np.allclose(one, other, atol=1e-12) != positions


# ------------------------------------------------------------------ dropout and maps


@both_tracks
@pytest.mark.parametrize("p", [0.5, 1.0])
def test_T06_evaluation_is_not_random(track, p):
    model, ids = gpt(track, dropout=p), some_ids(2, T)
    one, other = logits_of(model, ids), logits_of(model, ids)
    np.testing.assert_array_equal(one, other)
    assert_close(one, logits_of(gpt(track), ids), 0)  # and the same as without dropout
    in_training = [array(model(ids)[0]).copy() for _ in range(2)]
    assert np.isfinite(in_training).all()
    assert np.array_equal(*in_training) == (p == 1.0)


@both_tracks
def test_attention_maps(track):
    ids = some_ids(4)
    for model, shape in ((gpt(track, dropout=0.5), (2, 3, 4, 4)), (first_gpt(track, causal=True), (2, 1, 4, 4))):
        maps = model.attention_maps(ids)
        assert type(maps) is np.ndarray and maps.shape == shape
        assert_close(maps.sum(-1), np.ones(shape[:-1]), 1e-6)
        assert (np.triu(np.ones((4, 4)), 1) * maps == 0).all()  # rows are queries, columns are keys
        np.testing.assert_array_equal(maps, model.attention_maps(ids))
        assert all(module.training for module in model.modules())
    one, other = (model.attention_maps(ids) for model in (gpt(NUMPY), gpt(TORCH)))
    assert_same(one, other)


@both_tracks
def test_the_modules_inside_share_one_dropout_and_its_generator(track):
    model = gpt(track, dropout=0.5)
    assert len([m for m in model.modules() if isinstance(m, track.modules.Dropout)]) == 1
    one, other = gpt(track, seed=3, dropout=0.5), gpt(track, seed=3)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(array(a), array(b))  # dropout draws from its own Generator


# ------------------------------------------------------------------ sizes at the edge, and beyond


@pytest.mark.parametrize("kind", [GPTConfig, FirstGPTConfig])
@pytest.mark.parametrize("name", ["vocab_size", "context_length", "width", "layers"])
def test_sizes_are_whole_numbers(kind, name):
    for wrong in (-1, 1.5, 2.0, "2", None):
        with pytest.raises(ValueError, match=f"{name} must be a whole number, at least [01], not {wrong}"):
            kind(**{"vocab_size": V, name: wrong})
    kind(**{"vocab_size": V, name: np.int64(8)})


@both_tracks
def test_a_bigram_needs_a_vocabulary(track):
    with pytest.raises(ValueError, match=r"nothing to train.*\(0, 0\)"):
        track.models.Bigram(0)


@both_tracks
def test_a_model_without_layers_has_no_attention_maps(track):
    ids = some_ids(T)
    assert gpt(track, layers=0).attention_maps(ids).shape == (0, 3, T, T)
    assert first_gpt(track, layers=0).attention_maps(ids).shape == (0, 1, T, T)
    assert gpt(track, layers=2).attention_maps(ids).shape == (2, 3, T, T)
