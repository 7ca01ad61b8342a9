"""What a parameter is and who may change it: cleared, frozen, shared, moved, resumed, in any order, in both tracks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from track_tools import NUMPY, TORCH, array, assert_close, both_tracks, give, grad

from course_lib import get_track
from course_lib.common.config import GPTConfig, TransformerConfig
from course_lib.text import PairBatches, encode_numbers, ignore_padding, shift
from course_lib.training import WarmupCosine, evaluate, train

CLEAR = {
    "zero_grad": lambda model, optimizer: optimizer.zero_grad(),
    "of the model": lambda model, optimizer: model.zero_grad(),
    "None": lambda model, optimizer: [setattr(p, "grad", None) for p in model.parameters()],
    "zeros": lambda model, optimizer: give(model.parameters(), [0.0] * len(model.parameters())),
}


def library(track):
    return get_track(track.name)


def small_model(track, p=2.0, **more):
    model = track.modules.Module()
    for name, value in {"p": p, **more}.items():
        setattr(model, name, track.leaf(value))
    return model


# ------------------------------------------------------------------ cleared, unreached, moved


@both_tracks
@pytest.mark.parametrize("way", CLEAR)
def test_gradients_may_be_cleared_in_any_way(track, way):
    """p² from 2 at rate 0.1: 1.6, 1.28. From 1, the loss 2p once and then -7p twice: 0.8, 1.5, 2.2."""
    for start, losses, wanted in (
        (2.0, [lambda p: p * p] * 2, [1.6, 1.28]),
        (1.0, [lambda p: 2 * p, lambda p: -7 * p, lambda p: -7 * p], [0.8, 1.5, 2.2]),
    ):
        model, found = small_model(track, start), []
        optimizer = track.optim.SGD(model.parameters(), 0.1)
        for loss in losses:
            CLEAR[way](model, optimizer)
            loss(model.p).backward()
            optimizer.step()
            found.append(round(float(model.p.detach()), 12))
        assert found == wanted


@both_tracks
def test_gradients_may_be_set_to_zero_as_in_pytorch(track):
    """With set_to_none=False a gradient that was there becomes 0, so that decay acts; one that was not stays None."""
    ps = [track.leaf(np.ones((2, 2))) for _ in range(3)]
    for make in (lambda: track.optim.AdamW(ps, 0.1), lambda: library(track).Muon(ps, 0.1, ps[:2])):
        optimizer = make()
        (ps[0] * ps[2]).sum().backward()
        optimizer.zero_grad(set_to_none=False)
        assert ps[1].grad is None and not grad(ps[0]).any() and not grad(ps[2]).any()
        optimizer.zero_grad()
        assert all(p.grad is None for p in ps)


@both_tracks
def test_what_no_gradient_reaches_stays_as_it_is(track):
    """Neither decay nor an old mean moves it; a gradient of zeros, which has arrived, lets both act."""
    for make in (
        lambda ps: track.optim.AdamW(ps, 0.1, weight_decay=0.1), lambda ps: track.optim.SGD(ps, 0.1),
        lambda ps: library(track).Muon(ps, 0.1, ps[:2], weight_decay=0.1),
    ):  # fmt: skip
        ps = [track.leaf(np.ones((2, 2))) for _ in range(3)]
        optimizer = make(ps)
        ps[0].sum().backward()
        optimizer.step()
        assert (array(ps[0]) < 1).all() and (array(ps[1]) == 1).all() and (array(ps[2]) == 1).all()
        sum(p.sum() for p in ps).backward()
        optimizer.step()
        optimizer.zero_grad()
        ps[1].requires_grad = False  # frozen after the optimiser was made
        before = [array(p).copy() for p in ps]
        (ps[0] * ps[1]).sum().backward()
        optimizer.step()
        assert [bool((array(p) == b).all()) for p, b in zip(ps, before)] == [False, True, True]
        assert optimizer.clip_grad_norm_(1e9) == pytest.approx(np.linalg.norm(before[1]))


@both_tracks
@pytest.mark.parametrize("between", ["a step", "a step of Muon", "new weights"])
def test_a_step_between_forward_and_backward_is_refused(track, between):
    """Losses p² and p³ from p = 2: after a step, the gradient 3 p² of the second would use the new p."""
    model = small_model(track, [[2.0]], other=[1.0])
    optimizer = track.optim.SGD(model.parameters(), 0.1)
    if between == "a step of Muon":
        optimizer = library(track).Muon(model.parameters(), 0.1, [model.p])
    square, cube = (model.p * model.p).sum(), (model.p * model.p * model.p).sum()
    square.backward()
    model.load_state_dict(model.state_dict()) if between == "new weights" else optimizer.step()
    optimizer.zero_grad()
    with pytest.raises(RuntimeError, match="changed after this loss|modified by an inplace operation"):
        cube.backward()
    assert model.p.grad is None
    (model.p * model.p).sum().backward()  # a new forward is as good as ever
    assert_close(model.p.grad, 2 * array(model.p))


@both_tracks
def test_a_parameter_that_has_left_is_noticed(track):
    p = track.leaf([2.0])
    optimizer = track.optim.SGD([p], 0.1)
    p.data = p.data * 1
    with pytest.raises(RuntimeError, match=r"has left this optimiser.*write p.data\[...\] = array"):
        optimizer.step()


@both_tracks
@pytest.mark.parametrize("names", [(1, "1"), ("1", 1), ("a.weight", "a")])
def test_two_parameters_with_one_name_are_refused(track, names):
    model = track.modules.Module()
    model.d = {
        names[0]: track.modules.Linear(2, 3),
        names[1]: {"weight": track.leaf([1.0])} if "a" in names else track.modules.Linear(3, 2),
    }
    if "a" in names:
        model.d["a.weight"] = track.leaf([2.0])
    with pytest.raises(ValueError, match="two parameters are named 'd.(1|a).weight'"):
        model.state_dict()


# ------------------------------------------------------------------ random sequences, beside a plain reference

A, B = np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([4.0, -1.0])
LOSSES = {
    "p alone": (lambda p, q, a, b: (p * p * a).sum(), lambda p, q: (2 * p * A, None)),
    "both": (
        lambda p, q, a, b: (p * q + q * q * q).sum(),
        lambda p, q: (np.tile(q, (2, 1)), p.sum(axis=0) + 2 * 3 * q * q),
    ),
    "q alone": (lambda p, q, a, b: (q * b).sum(), lambda p, q: (None, B)),
}
OPERATIONS = (*LOSSES, *CLEAR, *["step"] * 4, "freeze p", "freeze q", "save and load", "change track")


class Plain:
    """AdamW on two arrays, written out: the reference."""

    def __init__(self):
        self.values = [A + 1, B + 1]
        self.means, self.squares, self.steps = [A * 0, B * 0], [A * 0, B * 0], 0
        self.grads, self.trained = [None, None], [True, True]

    def backward(self, loss):
        for i, g in enumerate(LOSSES[loss][1](*self.values)):
            if g is not None and self.trained[i]:
                self.grads[i] = g + (0 if self.grads[i] is None else self.grads[i])

    def step(self, lr=0.1, beta1=0.8, beta2=0.9, decay=0.3):
        self.steps += 1
        for i, g in enumerate(self.grads):
            if g is not None:
                self.means[i] = beta1 * self.means[i] + (1 - beta1) * g
                self.squares[i] = beta2 * self.squares[i] + (1 - beta2) * g * g
                mean, square = self.means[i] / (1 - beta1**self.steps), self.squares[i] / (1 - beta2**self.steps)
                self.values[i] = self.values[i] * (1 - lr * decay * (i == 0)) - lr * mean / (np.sqrt(square) + 1e-8)


def fresh(track, values):
    model = small_model(track, values[0], q=values[1])
    return model, track.optim.AdamW(model.parameters(), 0.1, (0.8, 0.9), weight_decay=0.3)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(OPERATIONS), max_size=25))
def test_any_sequence_of_operations_is_that_of_the_reference(operations):
    track, plain = NUMPY, Plain()
    model, optimizer = fresh(track, plain.values)
    for operation in operations:
        ps = [model.p, model.q]
        if operation in LOSSES:
            if operation == "both" and any(plain.trained) or plain.trained[operation == "q alone"]:
                LOSSES[operation][0](*ps, track.constant(A), track.constant(B)).backward()
                plain.backward(operation)
        elif operation in CLEAR:
            CLEAR[operation](model, optimizer)
            plain.grads = [v * 0 for v in plain.values] if operation == "zeros" else [None, None]
        elif operation == "step":
            optimizer.step()
            plain.step()
        elif operation.startswith("freeze"):
            i = "pq".index(operation[-1])
            plain.trained[i] = ps[i].requires_grad = not plain.trained[i]
        else:
            track = (TORCH if track is NUMPY else NUMPY) if operation == "change track" else track
            weights, state, values = model.state_dict(), optimizer.state_dict(), [v * 0 for v in plain.values]
            model, optimizer = fresh(track, values)
            model.load_state_dict(weights)
            optimizer.load_state_dict(state)
            model.p.requires_grad, model.q.requires_grad = plain.trained
            plain.grads = [None, None]
        for p, value, wanted in zip([model.p, model.q], plain.values, plain.grads):
            np.testing.assert_allclose(array(p), value, rtol=1e-10, atol=1e-12)
            assert (p.grad is None) == (wanted is None), operation
            if wanted is not None:
                np.testing.assert_allclose(array(p.grad), wanted, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------ states, configurations, shapes that do not fit


@both_tracks
@pytest.mark.parametrize("name", ["mean", "square", "steps", "lr", "decayed"])
def test_a_state_that_does_not_fit_is_refused_and_nothing_is_loaded(track, name):
    ps = [track.leaf(np.ones((2, 2))), track.leaf(np.ones((2, 3))), track.leaf([1.0])]
    muon = library(track).Muon(ps, 0.1, ps[:1])
    for optimizer in (track.optim.AdamW(ps[1:], 0.1), muon):
        inside = getattr(optimizer, "others", optimizer)
        before = array(inside.mean).copy()
        state = {**optimizer.state_dict(), "mean": before + 1}
        with pytest.raises(ValueError, match=f"cannot resume: {name} not in this state"):
            optimizer.load_state_dict({key: value for key, value in state.items() if key != name})
        if name in ("mean", "square"):
            for wrong in (np.ones(1), np.ones((7, 1)), np.float64(1.0)):
                with pytest.raises(ValueError, match=rf"{name} has shape \(.*\) in this state, not \(7,\)"):
                    optimizer.load_state_dict({**state, name: wrong})
        assert (array(inside.mean) == before).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "double", np.float16])
def test_configurations_take_two_precisions(dtype):
    for make in (lambda: GPTConfig(3, dtype=dtype), lambda: TransformerConfig(3, 3, dtype=dtype)):
        with pytest.raises(ValueError, match="dtype must be one of float32, float64; not "):
            make()


@both_tracks
def test_layers_refuse_what_would_be_broadcast(track):
    x = track.constant
    with pytest.raises(ValueError, match=r"normalized_shape is .*4.*of size 1"):
        track.modules.LayerNorm(4)(x(np.ones((3, 1)), "float32"))
    for context_length in (1, 2):
        short = GPTConfig(3, context_length=context_length, width=4, heads=2)
        for layer in (track.modules.SelfAttention(short), track.modules.SimpleAttention(context_length, causal=True)):
            with pytest.raises(ValueError, match=r"allow has shape .* but the scores \(.*3, 3\)"):
                layer(x(np.ones((1, 3, 4)), "float32"))
    q = x(np.ones((3, 3, 5, 2)))  # as many samples as heads
    for shape in ((3, 5, 5), (5,), (5, 1), (1, 1), (2, 1, 5, 5), (3, 3, 5, 4)):
        with pytest.raises(ValueError, match=r"one mask for each sample is \(B, 1, T, S\)"):
            track.F.attention(q, q, q, np.ones(shape, bool))
    for shape in ((5, 5), (1, 5), (3, 1, 5, 5), (1, 3, 5, 5), (3, 1, 1, 5), (3, 3, 5, 5)):
        assert track.F.attention(q, q, q, np.ones(shape, bool))[0].shape == q.shape


# ------------------------------------------------------------------ one ignored id


@both_tracks
def test_accumulation_and_evaluation_do_not_count_padding(track):
    """Two batches of numbers of different lengths are the six at once; one that is all padding counts nothing."""
    batches = []
    for numbers in ([7, 4, 999999], [12, 30, 15], [7, 4, 999999, 12, 30, 15]):
        source, target = encode_numbers(numbers)
        inputs, labels = shift(target)
        batches.append(((source, inputs), ignore_padding(labels)))
    nothing = (batches[0][0], np.full_like(batches[0][1], -100))
    config = TransformerConfig(
        11, 33, width=16, heads=2, layers=1, d_ff=32, context_length=16, dropout=0.0, dtype="float64"
    )
    found = []
    for group in ([batches[2]], batches[:2], [batches[1], nothing, batches[0]]):
        taught = library(track).TeacherForcing(library(track).Transformer(config, seed=0))
        optimizer = track.optim.SGD(taught.parameters(), 0.0)
        history = train(taught, optimizer, group, 1, accumulate=len(group), progress=False)
        found.append((history.losses[0], history.norms[0]))
    np.testing.assert_allclose(found, [found[0]] * 3, rtol=1e-12)
    total = sum(evaluate(taught, *batch) * int((batch[1] != -100).sum()) for batch in batches[:2])
    assert total / int((batches[2][1] != -100).sum()) == pytest.approx(found[0][0], rel=1e-12)
    assert (next(PairBatches([np.array([7, 123456])], encode_numbers, 8, seed=0))[1] != 0).all()


@pytest.mark.parametrize(
    "settings_and_message",
    [((3e-4, 200, 150, 3e-5), "200 steps is longer than the run of 150"), ((-1e-3, 2, 9), "lr must be 0 or a positive"),
     ((float("nan"), 2, 9), "lr must be"), ((1e-3, 2, 9, float("inf")), "min_lr must be"),
     ((1e-3, -1, 9), "warmup_steps must be"), ((1e-3, 2, 9.5), "total_steps must be")],
)  # fmt: skip
def test_a_schedule_that_cannot_be_kept_is_refused(settings_and_message):
    wrong, message = settings_and_message
    with pytest.raises(ValueError, match=message):
        WarmupCosine(*wrong)
