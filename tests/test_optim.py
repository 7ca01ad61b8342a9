"""Gradient descent, AdamW and clipping in both tracks, with PyTorch's optimisers as baselines."""

import importlib
import math

import numpy as np
import pytest
import torch
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, both_tracks, give, grad, normal

from course_lib.common.config import GPTConfig
from course_lib.training import WarmupCosine

INF, NAN = math.inf, math.nan


def parameters(track, *arrays, dtype="float64"):
    return [track.leaf(a, dtype) for a in arrays]


def muon(track, *settings):
    return importlib.import_module(f"course_lib.{track}_track").Muon(*settings)


# ------------------------------------------------------------------ one step, by hand


@both_tracks
@pytest.mark.parametrize(("g", "expected"), [(0.1, 0.89), (0.0, 0.99)])
def test_O01_decay_is_decoupled_and_of_the_old_value(track, g, expected):
    (p,) = parameters(track, [[1.0]])
    optimizer = track.optim.AdamW([p], 0.1, weight_decay=0.1)
    give([p], [g])
    optimizer.step()
    assert_close(p, [[expected]], 1e-6)


@both_tracks
def test_O02_one_counter_for_all_parameters(track):
    ps = parameters(track, [1.0], [1.0], [[1.0]])
    optimizer = track.optim.AdamW(ps, 0.1, weight_decay=0)
    give(ps, [0.1, 0.1, 0.1])
    optimizer.step()
    for p in ps:
        assert_close(array(p).ravel(), [0.9], 1e-6)
    assert optimizer.steps == 1


@both_tracks
def test_O03_matrices_decay_and_vectors_do_not(track):
    model = track.models.GPT(GPTConfig(7, width=8, heads=2, layers=1))
    optimizer = track.optim.AdamW(model.parameters(), 0.1, weight_decay=0.1)
    before = model.state_dict()
    give(model.parameters(), [0.0] * len(before))
    optimizer.step()
    for name, value in model.state_dict().items():
        assert_close(value, before[name] * (0.99 if value.ndim >= 2 else 1), 1e-7)
    matrices = sum(value.size for value in before.values() if value.ndim >= 2)
    vectors = sum(value.size for value in before.values() if value.ndim < 2)
    assert optimizer.decayed == matrices and matrices + vectors == model.num_parameters() == array(optimizer.flat).size
    everything = track.optim.AdamW(model.parameters(), 0.1, weight_decay=0.1, decay_all=True)
    before = model.state_dict()
    give(model.parameters(), [0.0] * len(before))
    everything.step()
    for name, value in model.state_dict().items():
        assert_close(value, before[name] * 0.99, 1e-7)


@both_tracks
def test_sgd_is_one_line(track):
    (p,) = parameters(track, [1.0, 2.0])
    optimizer = track.optim.SGD([p], 0.5)
    give([p], [[2.0, -1.0]])
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
    "SGD": lambda ps, lr: torch.optim.SGD(ps, lr),
    "AdamW": lambda ps, lr: torch.optim.AdamW(decay_of_matrices(ps, 0.1), lr, betas=(0.8, 0.95), eps=1e-6),
    "AdamW decay_all": lambda ps, lr: torch.optim.AdamW(ps, lr, weight_decay=0.1),
}
OURS = {
    "SGD": lambda optim, ps, lr: optim.SGD(ps, lr),
    "AdamW": lambda optim, ps, lr: optim.AdamW(ps, lr, (0.8, 0.95), 1e-6, weight_decay=0.1),
    "AdamW decay_all": lambda optim, ps, lr: optim.AdamW(ps, lr, weight_decay=0.1, decay_all=True),
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
    schedule = WarmupCosine(lr=0.05, warmup_steps=5, total_steps=30)
    rng = np.random.default_rng(5)
    for step in range(30):
        grads = [(rng.standard_normal(shape) * 10 ** rng.uniform(-3, 1)).astype(dtype) for shape in SHAPES]
        grads = [g * 0 for g in grads] if step == 7 else grads
        give(ps, grads)
        for p, g in zip(theirs, grads, strict=True):
            p.grad = torch.tensor(np.array(g))
        mine.lr = schedule(step)
        for group in other.param_groups:
            group["lr"] = schedule(step)
        norms = mine.clip_grad_norm_(1.0), float(torch.nn.utils.clip_grad_norm_(theirs, 1.0))
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
                optimizer.load_state_dict(state)
            for i in range(3):
                give(ps, [normal(*shape, seed=10 * i) for shape in SHAPES])
                optimizer.step()
            state, values = optimizer.state_dict(), [array(p).copy() for p in ps]
        assert state["steps"] == 6 and type(state["lr"]) is float
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
            state, value = optimizer.state_dict(), array(p).copy()
            (p,) = parameters(track, value)
            optimizer = track.optim.AdamW([p], 0.7, weight_decay=0)
            optimizer.load_state_dict(state)
        give([p], [array(p).copy()])
        optimizer.step()
    assert_close(p, [[expected]], 1e-6)


@both_tracks
def test_a_state_of_another_size_or_kind_is_refused(track):
    optimizer = track.optim.AdamW(parameters(track, np.ones(3)), 0.1)
    other = track.optim.AdamW(parameters(track, np.ones(4)), 0.1)
    with pytest.raises(ValueError, match="4.*3"):
        optimizer.load_state_dict(other.state_dict())
    plain = track.optim.SGD(parameters(track, np.ones(3)), 0.1)
    with pytest.raises(ValueError, match="AdamW"):
        optimizer.load_state_dict(plain.state_dict())
    everything = track.optim.AdamW(parameters(track, np.ones(3)), 0.1, decay_all=True)
    with pytest.raises(ValueError, match="3 elements decay, here 0"):  # the vector would be in another order
        optimizer.load_state_dict(everything.state_dict())
    state = other.state_dict()
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
    assert all(np.shares_memory(array(p), array(optimizer.flat)) for p in ps)
    (ps[1] * ps[1]).sum().backward()
    assert optimizer.clip_grad_norm_(INF) == math.sqrt(6 * 4 + 4 * 16)
    assert_close(grad(optimizer.flat)[10:], [4] * 4)  # collected, and from now on a view
    (ps[1] * ps[1]).sum().backward()
    assert_close(grad(optimizer.flat)[10:], [8] * 4)
    optimizer.zero_grad()
    assert all(p.grad is None for p in ps)


@both_tracks
def test_optimisers_refuse_what_they_cannot_train(track):
    p, q = parameters(track, [1.0]) + parameters(track, [1.0], dtype="float32")
    for wrong in ([], [p, p]):
        with pytest.raises(ValueError, match="different parameters"):
            track.optim.SGD(wrong, 0.1)
    with pytest.raises(ValueError, match="float32.*float64"):
        track.optim.SGD([p, q], 0.1)


@both_tracks
def test_frozen_parameters_stay_as_they_are(track):
    frozen, trained, other = parameters(track, [1.0], [1.0], np.ones((2, 2)))
    frozen.requires_grad = False
    for make in (
        lambda ps: track.optim.SGD(ps, 0.1), lambda ps: track.optim.AdamW(ps, 0.1, decay_all=True),
        lambda ps: muon(track, ps, 0.1, [other]),
    ):  # fmt: skip
        optimizer, before = make([frozen, trained, other]), array(trained).copy()
        assert [id(p) for p in optimizer.parameters if p is frozen] == [] and len(optimizer.parameters) == 2
        ((frozen * trained).sum() + other.sum()).backward()
        optimizer.step()
        assert frozen.grad is None and array(frozen) == 1 and array(trained) < before
    with pytest.raises(ValueError, match="at least one of them trained"):
        track.optim.SGD([frozen], 0.1)


@both_tracks
def test_forgotten_zero_grad_adds_up(track):
    (p,) = parameters(track, [3.0])
    optimizer = track.optim.SGD([p], 0.1)
    for times in (1, 2):
        (p * 2).sum().backward()
        assert_close(grad(p), [2 * times])
    optimizer.zero_grad()
    assert p.grad is None


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
    returned = track.optim.clip_grad_norm_(ps, 1.0)
    assert type(returned) is float and returned == pytest.approx(norm)
    for p, g in zip(ps, after, strict=False):
        assert_close(grad(p), g, 1e-12)
    assert ps[2].grad is None


@both_tracks
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_O05_a_norm_that_is_not_finite_changes_nothing(track, bad):
    ps = parameters(track, [0.0], [0.0])
    optimizer = track.optim.SGD(ps, 0.1)
    give(ps, [[bad], [4.0]])
    assert not math.isfinite(optimizer.clip_grad_norm_(1.0))
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
        optimizer.clip_grad_norm_(np.float64(0.01))
        optimizer.lr = np.float64(0.01)
        optimizer.step()
    for value in (logits, loss, optimizer.flat, optimizer.mean, optimizer.square, *model.parameters()):
        assert array(value).dtype == dtype
    for p in model.parameters():
        assert grad(p).dtype == dtype
        assert np.shares_memory(array(p), array(optimizer.flat))
    state = optimizer.state_dict()
    assert state["mean"].dtype == dtype and type(state["lr"]) is float


@both_tracks
def test_a_second_optimiser_takes_over_and_the_first_says_so(track):
    p = track.leaf(np.ones((2, 2)))
    first = track.optim.SGD([p], 0.1)
    second = track.optim.AdamW([p], 0.1)
    with pytest.raises(RuntimeError, match="another one"):
        first.step()
    second.step()


# ------------------------------------------------------------------ settings that make no sense


@both_tracks
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lr": -0.1}, "lr must be .*not -0.1"),
        ({"lr": NAN}, "lr must be .*not nan"),
        ({"lr": INF}, "lr must be .*not inf"),
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
    for kind in (track.optim.AdamW, track.optim.SGD) if "lr" in wrong else (track.optim.AdamW,):
        with pytest.raises(ValueError, match=message):
            kind(ps, **{"lr": 0.1, **wrong})
    owner.step()  # still the one whose steps arrive
    track.optim.AdamW(ps, 0, (0, 0), weight_decay=0)


@both_tracks
@pytest.mark.parametrize("max_norm", [0, -1.0, NAN])
def test_a_largest_norm_that_is_not_positive_is_refused(track, max_norm):
    ps = parameters(track, [3.0, 4.0])
    optimizer = track.optim.SGD(ps, 0.1)
    give(ps, [[3.0, 4.0]])
    for clip in (optimizer.clip_grad_norm_, lambda norm: track.optim.clip_grad_norm_(ps, norm)):
        with pytest.raises(ValueError, match=f"max_norm must be positive, not {max_norm}"):
            clip(max_norm)
    assert optimizer.clip_grad_norm_(INF) == 5 and grad(ps[0]).tolist() == [3, 4]
