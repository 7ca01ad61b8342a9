"""What a PyTorch user types first in either track: it works, or the error says what to write."""

import numpy as np
import pytest

from course_lib import get_track
from course_lib.numpy_track import Parameter, Tensor, from_numpy

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=["numpy", "torch"])
def L(request):
    return get_track(request.param)


def test_layers_need_no_more_than_their_sizes(L):
    layers = L.Sequential(L.Linear(3, 4), L.LayerNorm(4), L.Dropout(0.1), L.MLP(4), L.Linear(4, 2, bias=False))
    assert len(layers) == 5 and layers[1].weight.shape == (4,)
    assert tuple(layers(L.from_numpy(X)).shape) == (2, 2) and L.Embedding(5, 4)(np.array([1, 4])).shape == (2, 4)


def test_a_seed_is_an_init(L):
    one, same, other = (L.Linear(3, 4, init=seed).weight.detach().numpy() for seed in (0, 0, 1))
    assert (one == same).all() and (one != other).any()
    assert (one == L.Linear(3, 4, init=L.Initializer(0)).weight.detach().numpy()).all()
    assert (L.Linear(3, 4).weight != L.Linear(3, 4).weight).any()  # without one, weights are drawn anew


def test_a_parameter_is_not_lost_to_a_tensor(L):
    layer = L.Linear(3, 4)
    with pytest.raises(TypeError, match="weight is a parameter.*never be trained"):
        layer.weight = L.from_numpy(X)
    layer.weight, layer.bias = L.Parameter(X[:, :2].copy()), None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


@pytest.mark.parametrize("made", [lambda L: L.Linear(3, 4), lambda L: L.LayerNorm(3), lambda L: L.MLP(3)])
def test_an_array_in_place_of_a_tensor_is_named(made):
    with pytest.raises(TypeError, match=r"takes a Tensor, not a NumPy array: from_numpy\(x\)"):
        made(get_track("numpy"))(X)


def test_a_missing_method_says_what_there_is():
    with pytest.raises(AttributeError, match=r"no attribute 'relu': write F.relu\(x\)"):
        from_numpy(X).relu()
    with pytest.raises(AttributeError, match=r"no attribute 'cumsum': see dir\(Tensor\)"):
        from_numpy(X).cumsum(0)
    assert not hasattr(Tensor(1.0), "is_parameter") and Parameter(X).is_parameter


def test_an_optimiser_says_what_it_takes(L):
    layer = L.Linear(3, 4)
    for wrong in (layer.named_parameters(), [{"params": layer.parameters()}], [X]):
        with pytest.raises(TypeError, match="an optimiser takes parameters of this track"):
            L.AdamW(wrong, lr=0.1)


def test_a_square_weight_of_pytorch_would_be_transposed(L):
    with pytest.raises(ValueError, match="PyTorch's nn.Linear keeps the transpose"):
        L.Linear(3, 4).load_state_dict({"weight": np.zeros((4, 3)), "bias": np.zeros(4)})
