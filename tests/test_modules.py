"""Layers of both tracks: how they find parameters, switch modes, draw weights; PyTorch's own layers as baselines."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, both_tracks, grad, normal

from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.common.initializer import SCHEMES, Initializer
from course_lib.numpy_track.gradcheck import gradient_check


def init(scheme="uniform", dtype="float64", seed=0):
    return Initializer(seed, scheme, dtype)


def no_dropout(track):
    return track.modules.Dropout(0.0, np.random.default_rng(0))


# ------------------------------------------------------------------ parameters by name


@both_tracks
def test_names_follow_the_attributes_in_order_of_definition(track):
    M = track.modules

    class Net(M.Module):
        def __init__(self):
            self.second = M.Linear(2, 3, init=init())
            self.first = [M.LayerNorm(3, init=init()), {"deep": (M.Linear(3, 1, init=init(), bias=False),)}]
            self.number, self.name, self.nothing = 3, "x", None
            self.fixed = track.constant(np.ones(2))

    net = Net()
    assert list(dict(net.named_parameters())) == [
        "second.weight", "second.bias", "first.0.weight", "first.0.bias", "first.1.deep.0.weight",
    ]  # fmt: skip
    assert net.num_parameters() == 6 + 3 + 3 + 3 + 3
    assert all(a is b for a, b in zip(net.parameters(), dict(net.named_parameters()).values(), strict=True))
    assert [type(m).__name__ for m in net.modules()] == ["Net", "Linear", "LayerNorm", "Linear"]


@both_tracks
def test_a_parameter_is_one_whether_it_is_trained_or_frozen_and_no_other_tensor_is(track):
    layer, Parameter = track.modules.Linear(2, 3, init()), track.tensor.Parameter
    layer.weight.requires_grad = False
    layer.scale, layer.other = Parameter(np.ones(1), requires_grad=False), layer.bias * 1
    layer.leaf = track.constant(np.ones(2))
    layer.leaf.requires_grad = True
    assert list(dict(layer.named_parameters())) == ["weight", "bias", "scale"] == list(layer.state_dict())
    assert layer.num_parameters() == 10 and layer.num_parameters(trained=True) == 3
    assert all(isinstance(p, Parameter) for p in layer.parameters())
    layer.load_state_dict({"weight": np.zeros((2, 3)), "bias": np.ones(3), "scale": np.zeros(1)})
    assert not array(layer.weight).any() and isinstance(layer.weight, Parameter)


@both_tracks
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_of_a_layer_has_its_own_parameters(track, copied):
    layer = track.modules.Sequential(*[track.modules.Linear(2, 2, init())] * 2)
    track.optim.SGD(layer.parameters(), 0.1)  # now they are views of one vector
    layer.layers[0].bias.requires_grad = False
    other = copied(layer)
    assert [name for name, _ in other.named_parameters()] == [name for name, _ in layer.named_parameters()]
    for p, q in zip(layer.parameters(), other.parameters(), strict=True):
        assert_same(p, q)
        assert p.requires_grad == q.requires_grad and not np.shares_memory(array(p), array(q))


@both_tracks
def test_P03_a_shared_parameter_counts_once(track):
    M = track.modules
    one = M.Linear(2, 2, init=init(), bias=False)
    net = M.Sequential(one, one, M.Sequential(one))
    assert len(net.parameters()) == 1 and len(net.modules()) == 3
    net(track.constant(np.eye(2))).sum().backward()
    W = array(one.weight)
    ones = np.ones((2, 2))
    expected = ones @ (W @ W).T + W.T @ ones @ W.T + (W @ W).T @ ones  # one term for each of its three uses
    assert_close(grad(one.weight), expected, 1e-12)


@both_tracks
def test_N04_gain_and_bias_are_trained(track):
    norm = track.modules.LayerNorm(4, init=init())
    assert list(dict(norm.named_parameters())) == ["weight", "bias"]
    optimizer = track.optim.SGD(norm.parameters(), 0.1)
    track.project(norm(track.constant([1, 2, 3, 4])), [1, 0, 0, 0]).backward()
    optimizer.step()
    assert array(norm.weight)[0] != 1 and array(norm.bias)[0] != 0


@both_tracks
def test_state_is_a_copy_and_comes_back(track):
    layer, other = track.modules.Linear(2, 3, init=init(seed=0)), track.modules.Linear(2, 3, init=init(seed=1))
    state = layer.state_dict()
    assert {name: type(value) for name, value in state.items()} == {"weight": np.ndarray, "bias": np.ndarray}
    other.load_state_dict(state)
    state["weight"][...] = 99
    assert_same(other.weight, layer.weight)
    assert not np.shares_memory(layer.state_dict()["weight"], array(layer.weight))


@both_tracks
def test_load_state_names_everything_that_does_not_fit_and_changes_nothing(track):
    layer = track.modules.Linear(2, 3, init=init())
    before = layer.state_dict()
    with pytest.raises(ValueError) as caught:
        layer.load_state_dict({"weight": np.zeros((3, 2)), "extra": np.zeros(1)})
    for part in ("bias is missing", "extra is unknown", "weight has shape (3, 2), not (2, 3)"):
        assert part in str(caught.value)
    with pytest.raises(ValueError):
        layer.load_state_dict({"weight": np.zeros((2, 3)), "bias": np.zeros(4)})
    for name, value in layer.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


@both_tracks
def test_loading_reaches_the_memory_that_an_optimiser_holds(track):
    layer = track.modules.Linear(2, 3, init=init())
    optimizer = track.optim.SGD(layer.parameters(), 1.0)
    layer.load_state_dict({"weight": np.full((2, 3), 5.0), "bias": np.full(3, 7.0)})
    layer(track.constant([[1.0, 0.0]])).sum().backward()
    optimizer.step()
    assert_close(layer.weight, [[4, 4, 4], [5, 5, 5]])
    assert_close(layer.bias, [6, 6, 6])


# ------------------------------------------------------------------ modes


@both_tracks
def test_O13_evaluating_restores_every_mode(track):
    M = track.modules
    net = M.Sequential(M.Dropout(0.5, np.random.default_rng(0)), M.Sequential(M.Dropout(0.5, np.random.default_rng(0))))
    assert [m.training for m in net.modules()] == [True] * 4
    net.layers[0].eval()  # somebody froze one
    with net.evaluating() as same:
        assert same is net and not any(m.training for m in net.modules())
        with net.evaluating():
            pass
        assert not any(m.training for m in net.modules())
    assert [m.training for m in net.modules()] == [True, False, True, True]
    with pytest.raises(KeyError), net.evaluating():
        raise KeyError
    assert [m.training for m in net.modules()] == [True, False, True, True]
    assert (track.leaf([1.0]) * 1).requires_grad  # and recording is on again
    assert net.eval() is net and not any(m.training for m in net.modules())
    with net.evaluating():
        pass
    assert not any(m.training for m in net.modules())
    assert all(m.training for m in net.train().modules())


@both_tracks
def test_O18_dropout_is_the_identity_in_evaluation_and_draws_nothing(track):
    rng = np.random.default_rng(0)
    drop, before = track.modules.Dropout(0.5, rng), rng.bit_generator.state
    x = track.leaf(np.ones((4, 4)))
    drop.eval()
    assert drop(x) is x and drop.mask((4, 4)) is None
    assert rng.bit_generator.state == before
    drop.train()
    assert set(array(drop(x)).ravel().tolist()) == {0, 2}
    assert set(drop.mask((4, 4)).ravel().tolist()) == {0, 2}


# ------------------------------------------------------------------ initial weights


def test_initial_weights_of_equal_seeds_are_equal_in_both_tracks():
    for scheme in SCHEMES:
        for track in (NUMPY, TORCH):
            again = track.models.GPT(GPTConfig(11, init=scheme), seed=4)
            for name, value in NUMPY.models.GPT(GPTConfig(11, init=scheme), seed=4).state_dict().items():
                np.testing.assert_array_equal(value, again.state_dict()[name])
    one, other = (NUMPY.models.GPT(GPTConfig(11), seed=seed).state_dict() for seed in (0, 1))
    assert not np.array_equal(one["token.weight"], other["token.weight"])


@pytest.mark.parametrize(
    ("scheme", "matrix", "table", "bias"),
    [
        ("small", 0.02, 0.02, 0),
        ("scaled", math.sqrt(2 / 100), 0.1, 0),
        ("uniform", 0.1 / math.sqrt(3), 1.0, 0.1 / math.sqrt(3)),
    ],
)
def test_initial_schemes(scheme, matrix, table, bias):
    draw = init(scheme)
    weights = draw.matrix(100, 400)
    assert weights.shape == (100, 400)
    assert weights.std() == pytest.approx(matrix, rel=0.03) and abs(weights.mean()) < 0.03 * matrix
    assert draw.table(400, 100).std() == pytest.approx(table, rel=0.03)
    assert draw.bias(100, 4000).std() == pytest.approx(bias, rel=0.05)
    if scheme == "uniform":
        assert np.abs(weights).max() <= 0.1
    with pytest.raises(ValueError, match="small, scaled, uniform; not 'big'"):
        Initializer(0, "big")


@both_tracks
def test_N06_matrices_that_write_into_the_residual_path_start_smaller(track):
    config = GPTConfig(17, width=128, heads=4, layers=12, residual_scaled=True)
    state = track.models.GPT(config).state_dict()
    small = {name for name, value in state.items() if value.ndim == 2 and value.std() < 0.01}
    assert small == {
        name for name in state if name.endswith(("attention.layer.output.weight", "mlp.layer.down.weight"))
    }
    assert len(small) == 24
    for name, value in state.items():
        if value.ndim == 2:
            assert value.std() == pytest.approx(0.0040825 if name in small else 0.02, rel=0.05), name
    plain = track.models.GPT(GPTConfig(17, width=128, layers=12)).state_dict()
    assert min(value.std() for value in plain.values() if value.ndim == 2) > 0.018


# ------------------------------------------------------------------ layers against PyTorch's


def compare(layer, other, names, x, track):
    """Output, gradient of x and of every parameter; ``names`` leads from a parameter to its baseline's gradient."""
    mine, theirs = track.leaf(x), torch.tensor(x, requires_grad=True)
    out, expected = layer(mine), other(theirs)
    expected = expected[0] if isinstance(expected, tuple) else expected
    assert_same(out, expected)
    r = normal(*expected.shape, seed=9)
    track.project(out, r).backward()
    (expected * torch.tensor(r)).sum().backward()
    assert_same(grad(mine), grad(theirs))
    parameters = dict(layer.named_parameters())
    assert parameters.keys() == names.keys()
    for name, p in parameters.items():
        assert_same(grad(p), names[name]().numpy().copy(), name)


@both_tracks
def test_linear_is_pytorchs(track):
    layer, other = track.modules.Linear(3, 5, init=init()), nn.Linear(3, 5, dtype=torch.float64)
    other.weight.data, other.bias.data = torch.tensor(array(layer.weight).T), torch.tensor(array(layer.bias))
    compare(
        layer, other, {"weight": lambda: other.weight.grad.T, "bias": lambda: other.bias.grad}, normal(2, 4, 3), track
    )


@both_tracks
def test_layer_norm_is_pytorchs(track):
    layer, other = track.modules.LayerNorm(5, init=init()), nn.LayerNorm(5, dtype=torch.float64)
    layer.load_state_dict({"weight": normal(5), "bias": normal(5, seed=1)})
    other.weight.data, other.bias.data = torch.tensor(array(layer.weight)), torch.tensor(array(layer.bias))
    compare(
        layer, other, {"weight": lambda: other.weight.grad, "bias": lambda: other.bias.grad}, normal(2, 4, 5), track
    )


@both_tracks
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_mlp_is_pytorchs(track, activation):
    layer = track.modules.MLP(3, activation=activation, init=init())
    bend = nn.ReLU() if activation == "relu" else nn.GELU(approximate="tanh")
    other = nn.Sequential(nn.Linear(3, 12), bend, nn.Linear(12, 3)).double()
    names = {}
    for mine, theirs, name in ((layer.up, other[0], "up"), (layer.down, other[2], "down")):
        theirs.weight.data, theirs.bias.data = torch.tensor(array(mine.weight).T), torch.tensor(array(mine.bias))
        names[f"{name}.weight"] = lambda theirs=theirs: theirs.weight.grad.T
        names[f"{name}.bias"] = lambda theirs=theirs: theirs.bias.grad
    compare(layer, other, names, normal(2, 4, 3), track)


@both_tracks
@pytest.mark.parametrize("causal", [True, False])
def test_self_attention_is_pytorchs(track, causal):
    """nn.MultiheadAttention has the opposite mask: True = blocked."""
    config = GPTConfig(7, context_length=6, width=12, heads=3, causal=causal)
    layer = track.modules.SelfAttention(config, init(), no_dropout(track))
    mha = nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
    mine = layer.state_dict()
    mha.in_proj_weight.data = torch.tensor(np.concatenate([mine[f"{n}.weight"].T for n in ("query", "key", "value")]))
    mha.out_proj.weight.data = torch.tensor(mine["output.weight"].T)
    blocked = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1) if causal else None
    names = {
        f"{n}.weight": lambda i=i: mha.in_proj_weight.grad.chunk(3)[i].T
        for i, n in enumerate(("query", "key", "value"))
    }
    names["output.weight"] = lambda: mha.out_proj.weight.grad.T
    weights = []

    def other(x):
        out, w = mha(x, x, x, attn_mask=blocked, average_attn_weights=False)
        weights.append(w)
        return out

    compare(layer, other, names, normal(2, 5, 12), track)
    assert_same(layer.weights, weights[0])


@both_tracks
def test_simple_attention_mixes_the_input_with_itself(track):
    x = normal(2, 5, 4)
    for causal in (True, False):
        layer = track.modules.SimpleAttention(8, causal)
        assert layer.parameters() == []
        t = torch.tensor(x)
        assert_same(layer(track.leaf(x)), nn.functional.scaled_dot_product_attention(t, t, t, is_causal=causal))
        assert layer.weights.shape == (2, 5, 5)
        assert_close(array(layer.weights).sum(-1), np.ones((2, 5)), 1e-12)


@both_tracks
def test_T04_stored_weights_are_those_before_dropout_in_any_mode(track):
    config = GPTConfig(7, context_length=6, width=12, heads=3)
    layer = track.modules.SelfAttention(config, init(), track.modules.Dropout(0.5, np.random.default_rng(0)))
    for _ in range(2):
        layer(track.leaf(normal(2, 6, 12)))
        weights = array(layer.weights)
        assert weights.shape == (2, 3, 6, 6) and (weights >= 0).all() and (weights <= 1).all()
        assert_close(weights.sum(-1), np.ones((2, 3, 6)), 1e-6)
        assert not getattr(layer.weights, "requires_grad", False)
        layer.eval()


def test_gradients_of_layers_by_differences():
    M, x = NUMPY.modules, NUMPY.leaf(normal(1, 4, 6))
    config = GPTConfig(7, context_length=4, width=6, heads=2)
    layers = {
        "linear": M.Linear(6, 3, init=init()),
        "norm": M.LayerNorm(6, init=init()),
        "mlp": M.MLP(6, activation="gelu", init=init()),
        "simple": M.SimpleAttention(4, causal=True),
        "attention": M.SelfAttention(config, init(), no_dropout(NUMPY)),
        "sequential": M.Sequential(M.Linear(6, 6, init=init()), M.LayerNorm(6, init=init())),
    }
    for name, layer in layers.items():
        assert gradient_check(lambda *_, layer=layer: layer(x), x, *layer.parameters()) < 1e-6, name


# ------------------------------------------------------------------ where the norm sits


@both_tracks
@pytest.mark.parametrize(
    ("norm", "residual", "expected"),
    [
        ("pre", True, [1, 3]),
        ("post", True, [-0.999995, 0.999995]),
        (None, True, [1, 3]),
        (None, False, [0, 0]),
        ("pre", False, [0, 0]),
        ("post", False, [0, 0]),
    ],
)
def test_N05_pre_and_post_norm(track, norm, residual, expected):
    """A sublayer that gives 0: pre-norm returns x, post-norm its normalised form."""
    config = GPTConfig(7, width=2, heads=1, norm=norm, residual=residual)

    class Silent(track.modules.Module):
        def forward(self, x):
            self.saw = array(x).copy()
            return x * 0

    silent = Silent()
    block = track.models.Sublayer(silent, config, init(), no_dropout(track))
    assert_close(block(track.constant([[1, 3]])), [expected], 1e-6)
    assert_close(silent.saw, [[-0.999995, 0.999995]] if norm == "pre" else [[1, 3]], 1e-6)


@both_tracks
def test_N05_only_pre_norm_ends_with_a_norm(track):
    for norm in ("pre", "post", None):
        names = dict(track.models.GPT(GPTConfig(7, norm=norm)).named_parameters())
        assert ("norm.weight" in names) == (norm == "pre")
        assert sum(name.endswith("norm.weight") for name in names) == {"pre": 7, "post": 6, None: 0}[norm]


# ------------------------------------------------------------------ configurations


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"width": 30, "heads": 4}, "30.*4"),
        ({"heads": 0}, "heads.*0"),
        ({"context_length": 0}, "context.*0"),
        ({"vocab_size": 0}, "vocab_size.*0"),
        ({"dropout": 1.5}, "1.5"),
        ({"dropout": math.nan}, "nan"),
        ({"activation": "tanh"}, "relu, gelu.*'tanh'"),
        ({"norm": "both"}, "pre, post, None; not 'both'"),
        ({"init": "x"}, "small.*'x'"),
    ],
)
def test_wrong_configurations_are_refused_with_the_numbers(wrong, said):
    with pytest.raises(ValueError, match=said):
        GPTConfig(**{"vocab_size": 5, **wrong})


def test_wrong_configurations_of_the_first_gpt():
    for wrong, said in (({"width": 0}, "width.*0"), ({"init": "x"}, "'x'")):
        with pytest.raises(ValueError, match=said):
            FirstGPTConfig(5, **wrong)
