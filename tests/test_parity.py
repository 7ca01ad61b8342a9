"""The same numbers in both tracks: every function, layer and model, forward and backward, and 200 steps of training."""

import inspect

import numpy as np
import pytest
from track_tools import NUMPY, TORCH, array, assert_parameters_agree, assert_same, grad, normal

from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.common.dropout import draw_dropout_mask
from course_lib.common.initializer import Initializer
from course_lib.common.positions import rotary_angles
from course_lib.experiments.reproduce.trajectories import KINDS, largest_difference, trajectory
from course_lib.training import evaluate

DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])
V, T = 11, 6


def compare(run, arrays, dtype):
    """``run(track, *leaves)`` in both tracks: output, and the gradient of every leaf under a random projection."""
    outs, leaves = [], []
    for track in (NUMPY, TORCH):
        mine = [track.leaf(a, dtype) for a in arrays]
        out = run(track, *mine)
        track.project(out, normal(*out.shape, seed=99)).backward()
        outs.append(out)
        leaves.append(mine)
    assert_same(*outs, "output")
    for i, pair in enumerate(zip(*leaves, strict=True)):
        assert_same(*map(grad, pair), f"gradient of input {i}")


# ------------------------------------------------------------------ functions

IDS = np.array([[1, 1, 0], [2, 1, 4]])
SOME_IGNORED = np.array([[1, -100, 0], [2, 1, -100]])
PADDING = np.array([[True, True, False, False, True], [True] * 5])[:, None, None, :]
ROWS_BLOCKED = np.tril(np.ones((4, 5), bool), -2)
QKV = [(2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 6)]


def attention(allow=None, scale=None, dropout_mask=None):
    return lambda track, q, k, v: track.F.attention(q, k, v, allow, scale, dropout_mask)[0]


FUNCTIONS = {
    "linear 1-D": (lambda t, x, w, b: t.F.linear(x, w, b), [(4,), (4, 3), (3,)]),
    "linear 2-D": (lambda t, x, w, b: t.F.linear(x, w, b), [(5, 4), (4, 3), (3,)]),
    "linear batch": (lambda t, x, w, b: t.F.linear(x, w, b), [(2, 5, 4), (4, 3), (3,)]),
    "linear no bias": (lambda t, x, w: t.F.linear(x, w), [(2, 5, 4), (4, 3)]),
    "relu": (lambda t, x: t.F.relu(x), [(2, 5, 4)]),
    "gelu tanh": (lambda t, x: t.F.gelu(x, "tanh"), [(2, 5, 4)]),
    "gelu exact": (lambda t, x: t.F.gelu(x), [(2, 5, 4)]),
    "silu": (lambda t, x: t.F.silu(x), [(2, 5, 4)]),
    "softmax 1-D": (lambda t, x: t.F.softmax(x), [(4,)]),
    "softmax": (lambda t, x: t.F.softmax(x), [(2, 5, 4)]),
    "softmax axis 1": (lambda t, x: t.F.softmax(x, dim=1), [(2, 5, 4)]),
    "log_softmax": (lambda t, x: t.F.log_softmax(x), [(2, 5, 4)]),
    "log_softmax axis 0": (lambda t, x: t.F.log_softmax(x, dim=0), [(2, 5, 4)]),
    "layer_norm 1-D": (lambda t, x, g, b: t.F.layer_norm(x, (6,), g, b), [(6,), (6,), (6,)]),
    "layer_norm": (lambda t, x, g, b: t.F.layer_norm(x, (6,), g, b, 1e-3), [(2, 5, 6), (6,), (6,)]),
    "causal_conv1d": (lambda t, x, w: t.F.causal_conv1d(x, w), [(2, 5, 3), (3, 1, 4)]),
    "causal_conv1d longer than x": (lambda t, x, w: t.F.causal_conv1d(x, w), [(2, 2, 3), (3, 1, 5)]),
    "rms_norm": (lambda t, x, w: t.F.rms_norm(x, (6,), w, 1e-3), [(2, 5, 6), (6,)]),
    "rms_norm 1-D": (lambda t, x, w: t.F.rms_norm(x, (6,), w, 1e-3), [(6,), (6,)]),
    "cross_entropy 1-D": (lambda t, x: t.F.cross_entropy(x, np.array([1])), [(5,)]),
    "cross_entropy": (lambda t, x: t.F.cross_entropy(x, IDS), [(2, 3, 5)]),
    "cross_entropy ignored": (lambda t, x: t.F.cross_entropy(x, SOME_IGNORED), [(2, 3, 5)]),
    "cross_entropy index": (lambda t, x: t.F.cross_entropy(x, IDS, ignore_index=1), [(2, 3, 5)]),
    "embedding 1-D": (lambda t, table: t.F.embedding(IDS[0], table), [(5, 3)]),
    "embedding": (lambda t, table: t.F.embedding(IDS, table), [(5, 3)]),
    "dropout": (lambda t, x: t.F.dropout(x, 0.3, rng=np.random.default_rng(0)), [(2, 5, 4)]),
    "dropout off": (lambda t, x: t.F.dropout(x, 0.3, training=False) * 1, [(2, 5, 4)]),
    "attention 2-D": (attention(), [(4, 6), (5, 6), (5, 3)]),
    "attention": (attention(), QKV),
    "attention scaled": (attention(scale=0.7), QKV),
    "attention rows blocked": (attention(ROWS_BLOCKED), QKV),
    "attention padding": (attention(PADDING), QKV),
    "attention dropout": (
        attention(ROWS_BLOCKED, dropout_mask=draw_dropout_mask((2, 3, 4, 5), 0.4, np.random.default_rng(0))),
        QKV,
    ),
    "split_heads": (lambda t, x: t.F.split_heads(x, 3), [(2, 5, 6)]),
    "linear_heads": (
        lambda t, x, q, k, a, b: t.tensor.concatenate(t.F.linear_heads(x, (q, k), (a, b), 3)),
        [(2, 5, 6), (6, 6), (6, 6), (6,), (6,)],
    ),
    "merge_heads": (lambda t, x: t.F.merge_heads(x), [(2, 3, 5, 2)]),
    "rotary": (lambda t, x: t.F.rotary(x, *rotary_angles(7, 5, 6, 10.0)), [(2, 3, 5, 6)]),
    "repeat_interleave": (lambda t, x: t.F.repeat_interleave(x, 3, 1), [(2, 2, 5, 3)]),
    "repeat_interleave last axis": (lambda t, x: t.F.repeat_interleave(x, 2, -1), [(2, 3)]),
}


@DTYPES
@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions(case, dtype):
    run, shapes = FUNCTIONS[case]
    compare(run, [normal(*shape, seed=i) for i, shape in enumerate(shapes)], dtype)


def test_no_function_is_forgotten():
    public = {
        name
        for name, f in vars(NUMPY.functional).items()
        if inspect.isfunction(f) and f.__module__.endswith("functional")
    }
    tested = {case.split()[0] for case in FUNCTIONS}
    assert {name for name in public if not name.startswith("_")} - tested == {
        "causal_mask",
        "check_allow",
        "softmax_allowed",
        "window_mask",
    }
    assert (array(NUMPY.F.causal_mask(5)) == array(TORCH.F.causal_mask(5))).all()
    assert (array(NUMPY.F.window_mask(5, 2)) == array(TORCH.F.window_mask(5, 2))).all()


@DTYPES
def test_attention_weights(dtype):
    pairs = []
    for track in (NUMPY, TORCH):
        q, k, v = (track.leaf(normal(*shape, seed=i), dtype) for i, shape in enumerate(QKV))
        pairs.append(track.F.attention(q, k, v, ROWS_BLOCKED)[1])
    assert_same(*pairs)


# ------------------------------------------------------------------ layers


def layer_of(track, name, dtype):
    M, init = track.modules, Initializer(0, "uniform", dtype)
    config = GPTConfig(V, context_length=5, width=6, heads=2)
    drop = M.Dropout(0.4, np.random.default_rng(0))
    return {
        "Linear": lambda: M.Linear(6, 3, init=init),
        "Linear no bias": lambda: M.Linear(6, 3, init=init, bias=False, gain=0.5),
        "LayerNorm": lambda: M.LayerNorm(6, init=init),
        "Dropout": lambda: drop,
        "Sequential": lambda: M.Sequential(M.Linear(6, 6, init=init), M.LayerNorm(6, init=init), drop),
        "SimpleAttention": lambda: M.SimpleAttention(5, causal=False),
        "SimpleAttention causal": lambda: M.SimpleAttention(5, causal=True),
        "SelfAttention": lambda: M.SelfAttention(config, init, M.Dropout(0.0, None)),
        "SelfAttention dropout": lambda: M.SelfAttention(config, init, drop),
        "MLP": lambda: M.MLP(6, init=init),
        "MLP relu": lambda: M.MLP(6, activation="relu", init=init, gain=0.1),
        "Block": lambda: track.models.Block(config, init, drop),
        "FirstBlock": lambda: track.models.FirstBlock(FirstGPTConfig(V, context_length=5, width=6), init),
    }[name]()


LAYERS = ["Linear", "Linear no bias", "LayerNorm", "Dropout", "Sequential", "SimpleAttention", "SimpleAttention causal",
          "SelfAttention", "SelfAttention dropout", "MLP", "MLP relu", "Block", "FirstBlock"]  # fmt: skip


@DTYPES
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, dtype):
    layers = [layer_of(track, name, dtype) for track in (NUMPY, TORCH)]
    compare(lambda track, x: layers[track is TORCH](x), [normal(2, 5, 6)], dtype)
    assert_parameters_agree(*layers)


# ------------------------------------------------------------------ models

GPTS = [
    {},
    {"activation": "gelu", "norm": "post"},
    {"activation": "none", "norm": None},
    {"norm": None, "residual": False, "init": "uniform"},
    {"tied": True, "residual_scaled": True},
    {"tied": True, "norm": "post", "positions": False},
    {"causal": False, "positions": False, "heads": 1},
    {"dropout": 0.3},
    {"dropout": 0.3, "norm": "post", "tied": True, "init": "uniform", "activation": "gelu"},
    {"init": "uniform", "attention_bias": True, "tied": True, "activation": "gelu"},
    {"init": "scaled", "heads": 12},
    {"init": "uniform"},
]
FIRST_GPTS = [
    {"init": init, "causal": causal, "output_projection": projection}
    for init in ("small", "scaled", "uniform")
    for causal in (False, True)
    for projection in (True, False)
]


def models_of(kind, options, dtype):
    size = {"context_length": T, "width": 12, "layers": 2, "dtype": dtype}
    if kind == "Bigram":
        return [track.models.Bigram(V, seed=3, dtype=dtype) for track in (NUMPY, TORCH)]
    if kind == "FirstGPT":
        return [track.models.FirstGPT(FirstGPTConfig(V, **size, **options), seed=3) for track in (NUMPY, TORCH)]
    return [track.models.GPT(GPTConfig(V, **size, **{"heads": 3, **options}), seed=3) for track in (NUMPY, TORCH)]


@DTYPES
@pytest.mark.parametrize(
    ("kind", "options"),
    [("Bigram", {})] + [("FirstGPT", o) for o in FIRST_GPTS] + [("GPT", o) for o in GPTS],
    ids=lambda value: value if isinstance(value, str) else ",".join(f"{k}={v}" for k, v in value.items()) or "default",
)
def test_models(kind, options, dtype):
    rng = np.random.default_rng(0)
    mine, other = models_of(kind, options, dtype)
    for shape in ((3, T), (1, 2)):  # a full window and a short one; twice, so that the next dropout masks agree too
        ids, targets = rng.integers(V, size=shape), rng.integers(V, size=shape)
        results = [model(ids, targets) for model in (mine, other)]
        for name, pair in zip(("logits", "loss"), zip(*results, strict=True), strict=True):
            assert_same(*pair, name)
        for model in (mine, other):
            for p in model.parameters():
                p.grad = None
        for _, loss in results:
            loss.backward()
        assert_parameters_agree(mine, other)
    if kind != "Bigram":
        assert_same(mine.attention_maps(ids[0]), other.attention_maps(ids[0]))


# ------------------------------------------------------------------ training


@pytest.mark.parametrize("kind", KINDS)
def test_200_steps_of_training(kind):
    (mine, model, batches), (other, twin, _) = (trajectory(track.name, kind) for track in (NUMPY, TORCH))
    loss, twin_loss = (evaluate(m, batches.x, batches.y) for m in (model, twin))
    assert mine.steps == other.steps == 200
    assert largest_difference(mine.losses, other.losses) <= 1e-8
    np.testing.assert_allclose(mine.norms, other.norms, rtol=1e-8)
    assert mine.lrs == other.lrs
    assert loss == pytest.approx(twin_loss, rel=1e-8)
    assert np.mean(mine.losses[-20:]) < 0.9 * np.mean(mine.losses[:5])  # the run is not trivial
    if "clipped" in kind:
        assert 20 < sum(norm > 0.5 for norm in mine.norms), "clipping never happened"
    for name, value in model.state_dict().items():
        expected = twin.state_dict()[name]
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-8 * np.abs(expected).max(), err_msg=name)
