"""Gradient descent, AdamW and clipping in both tracks, with PyTorch's optimisers as referees."""

import math

import numpy as np
import pytest
import torch
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, both_tracks, grad

from course_lib.config import GPTConfig
from course_lib.training import WarmupCosine

INF, NAN = math.inf, math.nan


def parameters(track, *arrays, dtype="float64"):
    return [track.leaf(a, dtype) for a in arrays]


def give(optimizer, ps, grads):
    """Write ``grads`` into the gradients, as backward would: into the memory that is there."""
    optimizer.zero_grad()
    for p, g in zip(ps, grads, strict=True):
        array(p.grad)[...] = g


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# ------------------------------------------------------------------ one step, by hand


@both_tracks
@pytest.mark.parametrize(("g", "expected"), [(0.1, 0.89), (0.0, 0.99)])
def test_O01_decay_is_decoupled_and_of_the_old_value(track, g, expected):
    (p,) = parameters(track, [[1.0]])
    optimizer = track.optim.AdamW([p], 0.1, weight_decay=0.1)
    give(optimizer, [p], [g])
    optimizer.step()
    assert_close(p, [[expected]], 1e-6)


@both_tracks
def test_O02_one_counter_for_all_parameters(track):
    ps = parameters(track, [1.0], [1.0], [[1.0]])
    optimizer = track.optim.AdamW(ps, 0.1, weight_decay=0)
    give(optimizer, ps, [0.1, 0.1, 0.1])
    optimizer.step()
    for p in ps:
        assert_close(array(p).ravel(), [0.9], 1e-6)
    assert optimizer.steps == 1


@both_tracks
def test_O03_matrices_decay_and_vectors_do_not(track):
    model = track.models.GPT(GPTConfig(7, width=8, heads=2, layers=1))
    optimizer = track.optim.AdamW(model.parameters(), 0.1, weight_decay=0.1)
    before = model.state()
    optimizer.step()  # all gradients are 0
    for name, value in model.state().items():
        assert_close(value, before[name] * (0.99 if value.ndim >= 2 else 1), 1e-7)
    matrices = sum(value.size for value in before.values() if value.ndim >= 2)
    vectors = sum(value.size for value in before.values() if value.ndim < 2)
    assert (
        optimizer.decayed == matrices
        and matrices + vectors == model.number_of_parameters() == array(optimizer.flat).size
    )
    everything = track.optim.AdamW(model.parameters(), 0.1, weight_decay=0.1, decay_all=True)
    before = model.state()
    everything.step()
    for name, value in model.state().items():
        assert_close(value, before[name] * 0.99, 1e-7)


@both_tracks
def test_sgd_is_one_line(track):
    (p,) = parameters(track, [1.0, 2.0])
    optimizer = track.optim.SGD([p], 0.5)
    give(optimizer, [p], [[2.0, -1.0]])
    optimizer.step()
    assert_close(p, [0.0, 2.5])


# ------------------------------------------------------------------ many steps, beside PyTorch

SHAPES = [(3, 4), (4,), (2, 3, 2), ()]


def decay_of_matrices(ps, decay):
    """The two groups that a PyTorch user would write."""
    groups = {True: [], False: []}
    for p in ps:
        groups[p.ndim >= 2].append(p)
    return [{"params": groups[True], "weight_decay": decay}, {"params": groups[False], "weight_decay": 0}]


REFEREES = {
    "SGD": lambda ps, rate: torch.optim.SGD(ps, rate),
    "AdamW": lambda ps, rate: torch.optim.AdamW(decay_of_matrices(ps, 0.1), rate, betas=(0.8, 0.95), eps=1e-6),
    "AdamW decay_all": lambda ps, rate: torch.optim.AdamW(ps, rate, weight_decay=0.1),
}
OURS = {
    "SGD": lambda optim, ps, rate: optim.SGD(ps, rate),
    "AdamW": lambda optim, ps, rate: optim.AdamW(ps, rate, (0.8, 0.95), 1e-6, weight_decay=0.1),
    "AdamW decay_all": lambda optim, ps, rate: optim.AdamW(ps, rate, weight_decay=0.1, decay_all=True),
}


@both_tracks
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", OURS)
def test_trajectories_are_pytorchs(track, kind, dtype):
    """30 steps with random gradients, a changing rate and clipping; some gradients are large, some 0."""
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    ps, theirs = (
        parameters(track, *arrays, dtype=dtype),
        [torch.tensor(np.array(a, dtype), requires_grad=True) for a in arrays],
    )
    mine, other = OURS[kind](track.optim, ps, 0.01), REFEREES[kind](theirs, 0.01)
    schedule = WarmupCosine(peak=0.05, warmup=5, total=30)
    rng = np.random.default_rng(5)
    for step in range(30):
        grads = [(rng.standard_normal(shape) * 10 ** rng.uniform(-3, 1)).astype(dtype) for shape in SHAPES]
        grads = [g * 0 for g in grads] if step == 7 else grads
        give(mine, ps, grads)
        for p, g in zip(theirs, grads, strict=True):
            p.grad = torch.tensor(np.array(g))
        mine.rate = schedule(step)
        for group in other.param_groups:
            group["lr"] = schedule(step)
        norms = mine.clip_grad_norm(1.0), float(torch.nn.utils.clip_grad_norm_(theirs, 1.0))
        assert norms[0] == pytest.approx(norms[1], rel=1e-9 if dtype == "float64" else 1e-5)
        for a, b in zip(ps, theirs, strict=True):
            np.testing.assert_allclose(grad(a), array(b.grad), rtol=1e-5)  # torch divides by norm + 1e-6
            array(a.grad)[...] = array(b.grad)
        mine.step()
        other.step()
        for a, b in zip(ps, theirs, strict=True):
            assert_same(a, b, f"step {step}")


def test_a_state_from_one_track_goes_on_in_the_other():
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    results = []
    for tracks in ((NUMPY, NUMPY), (NUMPY, TORCH), (TORCH, NUMPY)):
        values, state = arrays, None
        for track in tracks:
            ps = parameters(track, *values)
            optimizer = track.optim.AdamW(ps, 0.1)
            if state is not None:
                optimizer.load_state(state)
            for i in range(3):
                give(optimizer, ps, [normal(*shape, seed=10 * i) for shape in SHAPES])
                optimizer.step()
            state, values = optimizer.state(), [array(p).copy() for p in ps]
        assert state["steps"] == 6 and type(state["rate"]) is float
        results.append(values)
    for values in results[1:]:
        for a, b in zip(values, results[0], strict=True):
            assert_same(a, b)


@both_tracks
@pytest.mark.parametrize(("forgets", "expected"), [(False, 0.414236), (True, 0.404320)])
def test_O15_moments_are_part_of_the_state(track, forgets, expected):
    (p,) = parameters(track, [[1.0]])
    optimizer = track.optim.AdamW([p], 0.1, weight_decay=0)
    for i in range(6):
        if i == 3 and forgets:
            optimizer = track.optim.AdamW([p], 0.1, weight_decay=0)
        elif i == 3:
            state, value = optimizer.state(), array(p).copy()
            (p,) = parameters(track, value)
            optimizer = track.optim.AdamW([p], 0.7, weight_decay=0)
            optimizer.load_state(state)
        give(optimizer, [p], [array(p).copy()])
        optimizer.step()
    assert_close(p, [[expected]], 1e-6)


@both_tracks
def test_a_state_of_another_size_or_kind_is_refused(track):
    optimizer = track.optim.AdamW(parameters(track, np.ones(3)), 0.1)
    other = track.optim.AdamW(parameters(track, np.ones(4)), 0.1)
    with pytest.raises(ValueError, match="4.*3"):
        optimizer.load_state(other.state())
    plain = track.optim.SGD(parameters(track, np.ones(3)), 0.1)
    with pytest.raises(ValueError, match="AdamW"):
        optimizer.load_state(plain.state())
    everything = track.optim.AdamW(parameters(track, np.ones(3)), 0.1, decay_all=True)
    with pytest.raises(ValueError, match="3 numbers decay, here 0"):  # the vector would be in another order
        optimizer.load_state(everything.state())
    state = other.state()
    state["mean"][...] = 5
    assert (array(other.mean) == 0).all()  # a copy


# ------------------------------------------------------------------ one vector for all


@both_tracks
def test_parameters_become_views_of_one_vector(track):
    ps = parameters(track, np.ones((2, 3)), np.full(4, 2.0), np.full((2, 2), 3.0))
    (ps[0] * 2).sum().backward()
    optimizer = track.optim.AdamW(ps, 0.1)
    assert_close(optimizer.flat, [1] * 6 + [3] * 4 + [2] * 4)  # what decays comes first
    assert_close(grad(ps[0]), np.full((2, 3), 2))  # a gradient that was there stays
    for p in ps:
        assert np.shares_memory(array(p), array(optimizer.flat)) and np.shares_memory(
            array(p.grad), array(optimizer.flat.grad)
        )
    (ps[1] * ps[1]).sum().backward()
    assert_close(grad(optimizer.flat)[10:], [4] * 4)  # backward writes into the vector
    optimizer.zero_grad()
    for p in ps:
        assert_close(grad(p), np.zeros(p.shape))


@both_tracks
def test_optimisers_refuse_what_they_cannot_train(track):
    p, q = parameters(track, [1.0]) + parameters(track, [1.0], dtype="float32")
    for wrong in ([], [p, p]):
        with pytest.raises(ValueError, match="different parameters"):
            track.optim.SGD(wrong, 0.1)
    with pytest.raises(ValueError, match="float32.*float64"):
        track.optim.SGD([p, q], 0.1)


@both_tracks
def test_forgotten_zero_grad_adds_up(track):
    (p,) = parameters(track, [3.0])
    optimizer = track.optim.SGD([p], 0.1)
    for times in (1, 2):
        (p * 2).sum().backward()
        assert_close(grad(p), [2 * times])
    optimizer.zero_grad()
    assert_close(grad(p), [0])


# ------------------------------------------------------------------ clipping


@both_tracks
@pytest.mark.parametrize(
    ("grads", "norm", "after"),
    [([[3.0], [4.0]], 5, [[0.6], [0.8]]), ([[0.3], [0.4]], 0.5, [[0.3], [0.4]]), ([[0.0], [0.0]], 0, [[0], [0]]),
     ([[0.6], [0.8]], 1, [[0.6], [0.8]])],
)  # fmt: skip
def test_O05_the_norm_is_that_of_the_whole_gradient(track, grads, norm, after):
    ps = parameters(track, [0.0], [0.0], [[0.0]])
    for p, g in zip(ps, grads, strict=False):  # the third parameter has no gradient
        (p * track.constant(g)).sum().backward()
    returned = track.optim.clip_grad_norm(ps, 1.0)
    assert type(returned) is float and returned == pytest.approx(norm)
    for p, g in zip(ps, after, strict=False):
        assert_close(grad(p), g, 1e-12)
    assert ps[2].grad is None


@both_tracks
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_O05_a_norm_that_is_not_finite_changes_nothing(track, bad):
    ps = parameters(track, [0.0], [0.0])
    optimizer = track.optim.SGD(ps, 0.1)
    give(optimizer, ps, [[bad], [4.0]])
    assert not math.isfinite(optimizer.clip_grad_norm(1.0))
    np.testing.assert_array_equal(grad(ps[0]), [bad])
    assert_close(grad(ps[1]), [4])


@both_tracks
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_O21_a_step_keeps_the_precision(track, dtype):
    """After backward, clipping and an AdamW step every parameter, gradient and mean is what it was."""
    model = track.models.GPT(GPTConfig(7, width=8, heads=2, layers=1, dropout=0.1, dtype=dtype))
    optimizer = track.optim.AdamW(model.parameters(), np.float64(0.1), betas=(np.float64(0.9), np.float64(0.99)))
    for _ in range(2):
        optimizer.zero_grad()
        logits, loss = model(np.array([[1, 2, 3]]), np.array([[2, 3, 4]]))
        loss.backward()
        optimizer.clip_grad_norm(np.float64(0.01))
        optimizer.rate = np.float64(0.01)
        optimizer.step()
    for value in (logits, loss, optimizer.flat, optimizer.mean, optimizer.square, *model.parameters()):
        assert array(value).dtype == dtype
    for p in model.parameters():
        assert grad(p).dtype == dtype
        assert np.shares_memory(array(p), array(optimizer.flat))
    state = optimizer.state()
    assert state["mean"].dtype == dtype and type(state["rate"]) is float


@both_tracks
def test_a_second_optimiser_takes_over_and_the_first_says_so(track):
    p = track.leaf(np.ones((2, 2)))
    first = track.optim.SGD([p], 0.1)
    second = track.optim.AdamW([p], 0.1)
    with pytest.raises(RuntimeError, match="another optimiser"):
        first.step()
    second.step()


# ------------------------------------------------------------------ settings that make no sense


@both_tracks
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": -0.1}, "rate must be .*not -0.1"),
        ({"rate": NAN}, "rate must be .*not nan"),
        ({"rate": INF}, "rate must be .*not inf"),
        ({"betas": (1.0, 0.9)}, r"betas must be .*not \(1.0, 0.9\)"),
        ({"betas": (0.9, -0.1)}, "betas must be "),
        ({"betas": (NAN, 0.9)}, "betas must be "),
        ({"weight_decay": -0.1}, "weight_decay must be .*not -0.1"),
        ({"weight_decay": NAN}, "weight_decay must be "),
    ],
)
def test_wrong_settings_are_refused_and_the_parameters_left_alone(track, wrong, message):
    ps = parameters(track, [[1.0]], [2.0])
    owner = track.optim.SGD(ps, 0.1)
    for kind in (track.optim.AdamW, track.optim.SGD) if "rate" in wrong else (track.optim.AdamW,):
        with pytest.raises(ValueError, match=message):
            kind(ps, **{"rate": 0.1, **wrong})
    owner.step()  # still the one whose steps arrive
    track.optim.AdamW(ps, 0, (0, 0), weight_decay=0)


@both_tracks
@pytest.mark.parametrize("max_norm", [0, -1.0, NAN])
def test_a_largest_norm_that_is_not_positive_is_refused(track, max_norm):
    ps = parameters(track, [3.0, 4.0])
    optimizer = track.optim.SGD(ps, 0.1)
    give(optimizer, ps, [[3.0, 4.0]])
    for clip in (optimizer.clip_grad_norm, lambda norm: track.optim.clip_grad_norm(ps, norm)):
        with pytest.raises(ValueError, match=f"max_norm must be positive, not {max_norm}"):
            clip(max_norm)
    assert optimizer.clip_grad_norm(INF) == 5 and grad(ps[0]).tolist() == [3, 4]
