"""The functions of both tracks: values, gradients, PyTorch as baseline. Names like S01 are those of known faults."""

import functools
import inspect
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as baseline
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, both_tracks, grad, normal

from course_lib.common.dropout import draw_dropout_mask
from course_lib.common.positions import rotary_angles
from course_lib.numpy_track.gradcheck import gradient_check

INF = math.inf


def assert_pytorchs(mine, other, *arrays, dtype="float64", slope=1e-7):
    """``mine(F, *leaves)`` is ``other(*tensors)`` in both tracks, and so is the gradient of every one of ``arrays``.

    Finite differences of track one must agree with its backward up to ``slope``, unless that is None.
    """
    tensors = [torch.tensor(a.astype(dtype), requires_grad=True) for a in arrays]
    expected = other(*tensors)
    r = np.asarray(normal(*expected.shape, seed=9), dtype)
    (expected * torch.tensor(r)).sum().backward()
    for track in (NUMPY, TORCH):
        leaves = [track.leaf(a, dtype) for a in arrays]
        out = mine(track.F, *leaves)
        assert_same(out, expected)
        track.project(out, r).backward()
        for a, b in zip(leaves, tensors, strict=True):
            assert_same(grad(a), grad(b))
    if slope is not None:
        assert gradient_check(lambda *leaves: mine(NUMPY.F, *leaves), *map(NUMPY.leaf, arrays)) < slope


# ------------------------------------------------------------------ softmax


@both_tracks
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("x", "expected"),
    [([-1000, -1000], [0.5, 0.5]), ([1000, 0], [1, 0]), ([[0, 0], [1000, 1000]], [[0.5, 0.5], [0.5, 0.5]])],
)
def test_S01_the_shift_is_per_row(track, name, x, expected):
    out = array(getattr(track.F, name)(track.leaf(x, "float32")))
    assert_close(np.exp(out) if name == "log_softmax" else out, expected)


@both_tracks
def test_T03_rows_sum_to_one(track):
    scores = track.leaf([[0, math.log(3)], [0, 0]])
    assert_close(track.F.softmax(scores), [[0.25, 0.75], [0.5, 0.5]])
    q, k, v = track.leaf(np.eye(2)), track.leaf([[0, 0], [math.log(3), 0]]), track.leaf(np.eye(2))
    assert_close(track.F.attention(q, k, v, scale=1.0)[1], [[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_is_pytorchs(name, axis):
    assert_pytorchs(
        lambda F, x: getattr(F, name)(x, dim=axis), lambda x: getattr(baseline, name)(x, axis), 3 * normal(2, 3, 4)
    )


# ------------------------------------------------------------------ loss


@both_tracks
def test_A23_the_gradient_is_that_of_the_mean(track):
    logits = track.leaf([[1, 2, 3], [1, 1, 1]])
    loss = track.F.cross_entropy(logits, np.array([2, 0]))
    loss.backward()
    assert_close(loss, 0.75311)
    assert_close(grad(logits), [[0.0450, 0.1224, -0.1674], [-0.3333, 0.1667, 0.1667]], 5e-5)


@both_tracks
def test_L01_ignored_targets(track):
    logits = track.leaf(np.zeros((4, 5)))
    loss = track.F.cross_entropy(logits, np.array([0, -100, -100, 1]))
    loss.backward()
    assert_close(loss, math.log(5))
    assert_close(grad(logits)[1:3], np.zeros((2, 5)))
    assert_close(grad(logits)[0], [-0.4, 0.1, 0.1, 0.1, 0.1])
    with pytest.raises(ValueError, match="all 4 targets are -100"):
        track.F.cross_entropy(track.leaf(np.zeros((4, 5))), np.full(4, -100))
    with pytest.raises(ValueError, match="no targets"):
        track.F.cross_entropy(track.constant(np.zeros((0, 5))), np.zeros(0, int))


@both_tracks
def test_L02_ignore_index_is_a_class_not_a_place(track):
    logits, targets = [[1, 2, 3], [3, 0, 0]], np.array([0, 1])
    assert_close(track.F.cross_entropy(track.leaf(logits), targets), 2.7513, 5e-5)
    assert_close(track.F.cross_entropy(track.leaf(logits), targets, ignore_index=0), 3.0949, 5e-5)


@both_tracks
@pytest.mark.parametrize("wrong", [-1, 3, -99])
def test_L03_targets_and_ids_are_range_checked(track, wrong):
    with pytest.raises(IndexError, match=f"{wrong}.* 3\\b"):
        track.F.cross_entropy(track.leaf([[1, 2, 3], [1, 2, 3]]), np.array([2, wrong]))
    with pytest.raises(IndexError, match=f"{wrong}.* 3\\b"):
        track.F.cross_entropy(track.leaf([[1, 2, 3], [1, 2, 3]]), np.array([-100, wrong]))
    with pytest.raises(IndexError, match=f"{wrong}.* 3\\b"):
        track.F.embedding(np.array([[0, wrong]]), track.leaf(np.ones((3, 2))))


@both_tracks
def test_ids_and_targets_must_be_integers_and_fit(track):
    table = track.leaf(np.ones((3, 2)))
    for ids in (np.array([0.0, 1.0]), np.array([True, False])):
        with pytest.raises(TypeError, match=str(ids.dtype)):
            track.F.embedding(ids, table)
        with pytest.raises(TypeError, match=str(ids.dtype)):
            track.F.cross_entropy(table, np.array([*ids, ids[0]]))
    with pytest.raises(ValueError, match=r"\b3\b.*\b2\b"):
        track.F.cross_entropy(table, np.array([0, 1]))
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(2, 3\)"):
        track.F.cross_entropy(track.constant(np.zeros((2, 3, 4))), np.zeros((3, 2), int))


@pytest.mark.parametrize("ignored", [[], [1, 4], [0]])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_cross_entropy_is_pytorchs(shape, ignored):
    targets = np.random.default_rng(0).integers(5, size=6)
    targets[ignored] = -100
    assert_pytorchs(
        lambda F, x: F.cross_entropy(x, targets.reshape(shape)),
        lambda x: baseline.cross_entropy(x.reshape(-1, 5), torch.tensor(targets)),
        3 * normal(*shape, 5),
    )


def test_cross_entropy_of_huge_logits_is_finite():
    for track in (NUMPY, TORCH):
        logits = track.leaf([[1e4, -1e4, 0.0]], "float32")
        loss = track.F.cross_entropy(logits, np.array([1]))
        loss.backward()
        assert loss.item() == 2e4 and np.isfinite(grad(logits)).all()


# ------------------------------------------------------------------ masks and attention


@both_tracks
def test_M01_true_means_may_look(track):
    q, v = track.leaf(np.zeros((3, 1))), track.leaf([[1], [2], [3]])
    context, weights = track.F.attention(q, q, v, track.F.causal_mask(3))
    assert_close(context, [[1], [1.5], [2]])
    assert_close(weights, [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]])
    inverted = np.triu(np.ones((3, 3), bool), 1)
    assert_close(track.F.attention(q, q, v, inverted)[0], [[2.5], [3], [0]])


@both_tracks
def test_M01_the_causal_mask_shows_the_past_and_the_present(track):
    mask = array(track.F.causal_mask(4))
    assert mask.dtype == bool and all(mask[i, j] == (j <= i) for i in range(4) for j in range(4))


@both_tracks
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_M02_masks_of_numbers_are_refused(track, dtype):
    q = track.leaf(np.zeros((2, 1)))
    with pytest.raises(TypeError, match=f"boolean.*{dtype}"):
        track.F.attention(q, q, q, np.array([[1, 0], [1, 1]], dtype))
    allow = np.array([[1, 0], [1, 1]], bool)
    assert_close(track.F.attention(q, q, q, allow)[1], [[1, 0], [0.5, 0.5]])


@both_tracks
def test_M03_a_row_that_may_look_at_nothing_gives_zero(track):
    q, k, v = track.leaf(np.zeros((2, 1))), track.leaf(np.zeros((3, 1))), track.leaf([[1], [2], [3]])
    allow = np.array([[False] * 3, [True, True, False]])
    context, weights = track.F.attention(q, k, v, allow)
    assert_close(context, [[0], [1.5]])
    assert_close(weights, [[0, 0, 0], [0.5, 0.5, 0]])
    context[0].sum().backward()
    for leaf in (q, k, v):
        assert_close(grad(leaf), np.zeros(leaf.shape))


@both_tracks
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_M05_blocked_is_minus_infinity_in_any_precision(track, dtype):
    q, k = track.leaf([[1.0]], dtype), track.leaf([[-1e30], [1e30]], dtype)
    allow = np.array([[True, False]])  # the allowed score lies far below any constant like -1e9
    context, weights = track.F.attention(q, k, k, allow)
    assert weights.tolist() == [[1, 0]] and array(context).dtype == dtype
    half = track.constant(np.zeros((1, 2)), "float16")
    assert track.F.attention(half, half, half, np.array([[True]]))[1].tolist() == [[1]]


@both_tracks
def test_M06_padding_is_blocked_on_the_key_axis(track):
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((2, 2, 4)), rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 4))
    allow = np.array([[True, True, False], [True, True, True]])[:, None, :]  # (B, S) -> (B, 1, S)
    one = array(track.F.attention(track.leaf(q), track.leaf(k), track.leaf(v), allow)[0])
    k[0, 2], v[0, 2] = 99, -99
    other = array(track.F.attention(track.leaf(q), track.leaf(k), track.leaf(v), allow)[0])
    np.testing.assert_array_equal(one, other)
    zero, v = track.leaf(np.zeros((1, 1))), track.leaf([[1], [2], [9]])
    keys = track.leaf(np.zeros((3, 1)))
    assert_close(track.F.attention(zero, keys, v, np.array([[True, True, False]]))[0], [[1.5]])
    assert_close(track.F.attention(zero, keys, v)[0], [[4.0]])


@both_tracks
def test_T01_heads_are_cut_before_axes_are_exchanged(track):
    x = track.leaf(np.arange(8.0).reshape(1, 2, 4))
    heads = track.F.split_heads(x, 2)
    assert_close(heads, [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]])
    assert_close(track.F.merge_heads(heads), array(x))
    x = normal(3, 5, 12)
    for count in (1, 2, 3, 12):
        np.testing.assert_array_equal(array(track.F.merge_heads(track.F.split_heads(track.leaf(x), count))), x)
    with pytest.raises(ValueError, match="12.*5"):
        track.F.split_heads(track.leaf(x), 5)


@both_tracks
def test_linear_heads_is_one_product_and_a_split_for_each_weight(track):
    x, weights = normal(2, 5, 6), [normal(6, 6) for _ in "qkv"]
    pieces = track.F.linear_heads(track.leaf(x), [track.leaf(w) for w in weights], [None] * 3, 3)
    assert len(pieces) == 3
    for piece, w in zip(pieces, weights):
        assert tuple(piece.shape) == (2, 3, 5, 2)
        assert_close(piece, np.stack([(x @ w)[:, :, 2 * h : 2 * h + 2] for h in range(3)], axis=1), 1e-12)


@both_tracks
def test_T02_the_scale_is_of_the_head_size(track):
    x = np.zeros((1, 2, 64))
    x[0, :, :16] = 1  # the first of four heads: q = k = ones(16); its score is 16 / sqrt(16) = 4
    x[0, 1] *= 0
    heads = track.F.split_heads(track.leaf(x), 4)
    weights = array(track.F.attention(heads, heads, heads)[1])
    assert math.log(weights[0, 0, 0, 0] / weights[0, 0, 0, 1]) == pytest.approx(4.0)


SHAPES = {"plain": ((4, 6), (4, 6), (4, 6)), "batch": ((2, 3, 5, 4),) * 3, "cross": ((2, 3, 4), (2, 5, 4), (2, 5, 6))}
MASKS = {
    "none": lambda T, S: None,
    "causal": lambda T, S: np.tril(np.ones((T, S), bool)),
    "empty row": lambda T, S: np.tril(np.ones((T, S), bool), -1),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_is_pytorchs(shapes, mask, scale):
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(SHAPES[shapes])]
    allow = MASKS[mask](arrays[0].shape[-2], arrays[1].shape[-2])
    blocked = None if allow is None else torch.tensor(allow)

    def attention(F, *qkv):
        context, weights = F.attention(*qkv, allow, scale)
        assert not getattr(weights, "requires_grad", False)
        return context

    other = functools.partial(baseline.scaled_dot_product_attention, attn_mask=blocked, scale=scale)
    assert_pytorchs(attention, other, *arrays)


@both_tracks
def test_T04_weights_are_those_before_dropout(track):
    q = track.leaf(normal(2, 4, 3))
    dropout_mask = draw_dropout_mask((2, 4, 4), 0.5, np.random.default_rng(0))
    context, weights = track.F.attention(q, q, q, track.F.causal_mask(4), dropout_mask=dropout_mask)
    weights = array(weights)
    assert_close(weights.sum(-1), np.ones((2, 4)), 1e-12)
    assert (weights >= 0).all() and (weights <= 1).all()
    assert_close(context, (weights * dropout_mask) @ array(q), 1e-12)


def test_dropout_on_the_weights_has_the_right_gradient():
    dropout_mask = draw_dropout_mask((2, 4, 4), 0.5, np.random.default_rng(0))

    def attention(F, *qkv):
        return F.attention(*qkv, F.causal_mask(4), dropout_mask=dropout_mask)[0]

    assert_pytorchs(attention, functools.partial(attention, TORCH.F), *(normal(2, 4, 3, seed=i) for i in range(3)))


@both_tracks
def test_attention_of_one_tensor_with_itself(track):
    """Query, key and value are one tensor in the first GPT: three gradients add up."""
    x = normal(3, 4)
    same, q, k, v = (track.leaf(x) for _ in range(4))
    track.project(track.F.attention(same, same, same)[0], normal(3, 4, seed=1)).backward()
    track.project(track.F.attention(q, k, v)[0], normal(3, 4, seed=1)).backward()
    assert_close(grad(same), grad(q) + grad(k) + grad(v), 1e-12)


@both_tracks
def test_attention_does_not_touch_its_inputs(track):
    arrays, allow = [normal(3, 4, seed=i) for i in range(3)], np.tril(np.ones((3, 3), bool))
    leaves, dropout_mask = [track.leaf(a) for a in arrays], np.full((3, 3), 2.0)
    track.F.attention(*leaves, allow, dropout_mask=dropout_mask)[0].sum().backward()
    for leaf, a in zip(leaves, arrays, strict=True):
        np.testing.assert_array_equal(array(leaf), a)
    assert (dropout_mask == 2).all() and allow.sum() == 6


# ------------------------------------------------------------------ LayerNorm


@both_tracks
def test_N01_variance_is_divided_by_n(track):
    out = track.F.layer_norm(track.leaf([1, 0, 0, 0]), (4,), track.leaf(np.ones(4)), track.leaf(np.zeros(4)))
    assert_close(out, [1.73200, -0.57733, -0.57733, -0.57733])


@both_tracks
def test_N02_epsilon_is_under_the_root(track):
    x, gain, bias = track.leaf([2, 2, 2]), track.leaf(np.ones(3)), track.leaf(np.zeros(3))
    out = track.F.layer_norm(x, (3,), gain, bias)
    assert_close(out, [0, 0, 0])
    track.project(out, [1, 0, 0]).backward()
    assert_close(grad(x), [210.82, -105.41, -105.41], 5e-3)


@both_tracks
def test_A21_layer_norm_with_a_gradient_that_is_not_uniform(track):
    for upstream, expected in [(np.ones(4), [0, 0, 0, 0]), ([1, 0, 0, 0], [0.26833, -0.35777, -0.08944, 0.17888])]:
        x = track.leaf([1, 2, 3, 4])
        track.project(track.F.layer_norm(x, (4,), track.leaf(np.ones(4)), track.leaf(np.zeros(4))), upstream).backward()
        assert_close(grad(x), expected)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (4, 1)])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_layer_norm_is_pytorchs(shape, eps):
    assert_pytorchs(
        lambda F, x, gain, bias: F.layer_norm(x, shape[-1:], gain, bias, eps),
        lambda x, gain, bias: baseline.layer_norm(x, shape[-1:], gain, bias, eps),
        normal(*shape) + 3, normal(shape[-1], seed=1), normal(shape[-1], seed=2), slope=1e-6,
    )  # fmt: skip


# ------------------------------------------------------------------ activations


@both_tracks
@pytest.mark.parametrize(("form", "value", "slope"), [("none", 0.841345, 1.083315), ("tanh", 0.841192, 1.082964)])
def test_P05_gelu_at_one(track, form, value, slope):
    x = track.leaf(1.0)
    out = track.F.gelu(x, approximate=form)
    out.backward()
    assert_close(out, value, 1e-6)
    assert_close(grad(x), slope, 1e-6)


@both_tracks
def test_gelu_is_the_tanh_form_unless_asked(track):
    assert track.F.gelu(track.leaf(1.0), "tanh").item() == pytest.approx(0.841192, abs=1e-6)
    with pytest.raises(ValueError, match="'sigmoid'"):
        track.F.gelu(track.leaf(1.0), approximate="sigmoid")


POINTS = np.concatenate([normal(3, 4).ravel(), [0.0, -0.0, 30, -30, 1e-8]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["none", "tanh", "relu"])
def test_activations_are_pytorchs(form, dtype):
    if form == "relu":  # whose slope at 0 is not one number
        assert_pytorchs(lambda F, x: F.relu(x), baseline.relu, POINTS, dtype=dtype, slope=None)
    else:
        other = functools.partial(baseline.gelu, approximate=form)
        assert_pytorchs(lambda F, x: F.gelu(x, form), other, POINTS, dtype=dtype)


@both_tracks
def test_relu_of_what_overflowed(track):
    """And the gradient at 0 is 0; with and without a graph the same values."""
    for x in (track.leaf([-INF, -1, 0, 2, INF]), track.constant([-INF, -1, 0, 2, INF])):
        assert array(track.F.relu(x)).tolist() == [0, 0, 0, 2, INF]
    x = track.leaf([-1, 0, 2])
    track.F.relu(x).sum().backward()
    assert_close(grad(x), [0, 0, 1])


# ------------------------------------------------------------------ linear, embedding, dropout


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (2, 1, 4, 3)])
def test_linear_is_pytorchs(shape, bias):
    arrays = [normal(*shape), normal(3, 5, seed=1)] + ([normal(5, seed=2)] if bias else [])
    assert_pytorchs(
        lambda F, *leaves: F.linear(*leaves), lambda x, weight, *b: baseline.linear(x, weight.T, *b), *arrays
    )


@both_tracks
def test_linear_and_embedding_of_nothing(track):
    weight, bias, table = track.leaf(normal(3, 5)), track.leaf(normal(5)), track.leaf(normal(4, 3))
    nothing = track.F.embedding(np.zeros((0, 2), int), table)
    assert tuple(track.F.linear(nothing, weight, bias).shape) == (0, 2, 5)
    assert tuple(track.F.linear_heads(nothing, [weight], [bias], 5)[0].shape) == (0, 5, 2, 1)


@both_tracks
def test_what_pytorch_orders_otherwise_is_refused_with_a_sentence(track):
    F, x, weight, ids = track.F, track.leaf(normal(2, 3)), track.leaf(normal(5, 3)), np.array([1, 2])
    for call, error, message in (
        (lambda: F.linear(x, weight), ValueError, r"\(2, 3\) .*\(5, 3\).*\(fan_in, fan_out\)"),
        (lambda: F.embedding(weight, ids), TypeError, r"\(ids, weight\)"),
        (lambda: F.cross_entropy(track.leaf(normal(2, 5, 3)), np.ones((2, 3), int)), ValueError, "axis 1"),
        (lambda: F.dropout(x, 0.5), TypeError, "default_rng"),
        (lambda: track.modules.MLP(3, activation="swish"), ValueError, "relu, gelu; not 'swish'"),
    ):
        with pytest.raises(error, match=message):
            call()


@both_tracks
def test_A08_repeated_ids_add_up(track):
    table, ids = track.leaf(np.ones((3, 2))), np.array([[1, 1, 0], [1, 2, 1]])
    out = track.F.embedding(ids, table)
    assert tuple(out.shape) == (2, 3, 2)
    out.sum().backward()
    assert_close(grad(table), [[1, 1], [4, 4], [1, 1]])


def test_embedding_is_pytorchs():
    ids = np.array([[1, 1, 0], [1, 2, 1]], np.uint8)
    other = functools.partial(baseline.embedding, torch.tensor(ids.astype(int)))
    assert_pytorchs(lambda F, table: F.embedding(ids, table), other, normal(3, 2), slope=1e-8)


@both_tracks
def test_O18_dropout(track):
    x = track.leaf(np.ones((100, 100)))
    out = track.F.dropout(x, 0.5, rng=np.random.default_rng(0))
    assert set(array(out).ravel().tolist()) == {0, 2}
    assert array(out).mean() == pytest.approx(1, abs=0.05)
    out.sum().backward()
    np.testing.assert_array_equal(grad(x), array(out))  # the same mask both ways
    quarter = array(track.F.dropout(x, 0.25, rng=np.random.default_rng(0)))  # p is what goes, not what stays
    assert (quarter == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert quarter.max() == pytest.approx(4 / 3)
    assert (array(track.F.dropout(x, 1, rng=np.random.default_rng(0))) == 0).all()
    for same in (track.F.dropout(x, 0, rng=None), track.F.dropout(x, 0.5, training=False)):
        np.testing.assert_array_equal(array(same), array(x))
    for p in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=str(p)):
            track.F.dropout(x, p, rng=np.random.default_rng(0))


def test_dropout_masks_are_drawn_by_numpy_in_both_tracks():
    results = []
    for track in (NUMPY, TORCH):
        rng = np.random.default_rng(5)
        results.append([array(track.F.dropout(track.leaf(normal(3, 4)), 0.3, rng=rng)) for _ in range(3)])
    np.testing.assert_array_equal(*results)


# ------------------------------------------------------------------ one precision, every function


def call(track, name, dtype):
    """Function ``name`` on small inputs of ``dtype``: (result, leaves)."""
    F, rng = track.F, np.random.default_rng(0)
    x, w, b, g = (track.leaf(normal(*shape), dtype) for shape in ((2, 4), (4, 4), (4,), (4,)))
    ids = np.array([1, 0])
    calls = {
        "linear": (lambda: F.linear(x, w, b), (x, w, b)),
        "relu": (lambda: F.relu(x), (x,)),
        "gelu": (lambda: F.gelu(x, "tanh") + F.gelu(x), (x,)),
        "softmax": (lambda: F.softmax(x), (x,)),
        "log_softmax": (lambda: F.log_softmax(x), (x,)),
        "layer_norm": (lambda: F.layer_norm(x, g.shape, g, b), (x, g, b)),
        "cross_entropy": (lambda: F.cross_entropy(x, ids), (x,)),
        "embedding": (lambda: F.embedding(ids, w), (w,)),
        "dropout": (lambda: F.dropout(x, 0.5, rng=rng), (x,)),
        "attention": (lambda: F.attention(x, w, w, np.ones((2, 4), bool), np.float64(0.5), np.ones((2, 4)))[0], (x, w)),
        "split_heads": (lambda: F.split_heads(x.reshape(1, 2, 4), 2), (x,)),
        "linear_heads": (lambda: sum(F.linear_heads(x.reshape(1, 2, 4), (w, w), (b, b), 2)), (x, w, b)),
        "merge_heads": (lambda: F.merge_heads(x.reshape(1, 2, 2, 2)), (x,)),
        "silu": (lambda: F.silu(x), (x,)),
        "rms_norm": (lambda: F.rms_norm(x, g.shape, g, 0.1), (x, g)),
        "causal_conv1d": (lambda: F.causal_conv1d(x.reshape(1, 2, 4), b.reshape(4, 1, 1)), (x, b)),
        "rotary": (lambda: F.rotary(x, *rotary_angles(1, 2, 4)), (x,)),
        "repeat_interleave": (lambda: F.repeat_interleave(x, 2, 0), (x,)),
    }
    function, leaves = calls[name]
    return function(), leaves


FUNCTIONS = sorted(
    name
    for name, value in vars(NUMPY.functional).items()
    if inspect.isfunction(value) and value.__module__ == NUMPY.functional.__name__ and not name.startswith("_")
)
WITHOUT_GRADIENT = {"causal_mask", "window_mask", "check_allow", "softmax_allowed"}  # the last: a part of attention


@both_tracks
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - WITHOUT_GRADIENT))
def test_O21_A07_every_function_is_tracked_and_keeps_the_precision(track, name, dtype):
    """A new public function without a line in ``call`` fails here."""
    out, leaves = call(track, name, dtype)
    assert out.requires_grad and array(out).dtype == dtype
    track.project(out, normal(*out.shape, seed=1)).backward()
    for leaf in leaves:
        assert np.abs(grad(leaf)).max() > 0
        assert grad(leaf).dtype == dtype


# ------------------------------------------------------------------ operands that are broadcast


@pytest.mark.parametrize("shape", [(1,), (3,)])
def test_one_bias_or_gain_for_all_channels(shape):
    x, weight, r = normal(2, 4, 3), normal(3, 3, seed=1), normal(2, 4, 3, seed=3)
    results = []
    for track in (NUMPY, TORCH):
        gain, bias, shift = (track.leaf(normal(*shape, seed=s)) for s in (4, 5, 6))
        out = track.F.linear(track.F.layer_norm(track.constant(x), (3,), gain, shift), track.constant(weight), bias)
        track.project(out, r).backward()
        results.append([grad(p) for p in (gain, shift, bias)])
    for mine, other in zip(*results, strict=True):
        assert_same(mine, other)


def test_attention_refuses_a_gradient_of_another_shape_than_its_operand():
    """In silence the gradient of a query that meets several rows of keys would have their shape."""
    key, value = (NUMPY.constant(normal(4, 5, 2, seed=s)) for s in (1, 2))
    query = NUMPY.leaf(normal(3, 2))
    out, _ = NUMPY.F.attention(query, key, value)
    with pytest.raises(ValueError, match=r"attention made .*\(4, 3, 2\).*\(3, 2\)"):
        out.sum().backward()
    assert query.grad is None
