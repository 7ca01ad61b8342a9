"""Exercises of notebook 11: the optimiser, its rate, and clipping."""

import functools
import math

import numpy as np

from ..numpy_track import AdamW
from ..training import WarmupCosine
from . import mending, watch, words
from .exercise import Mistake, arrays, drawn, exercise, varied


def _right_adamw(p, grad, m, v, step, lr, decay):
    m = 0.9 * m + 0.1 * grad
    v = 0.999 * v + 0.001 * grad * grad
    shrunk = p * (1 - lr * decay)
    return shrunk - lr * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8), m, v


@exercise(
    "11.1",
    "One step of AdamW",
    minutes=20,
    difficulty="harder",
    hints=(
        "m ← 0.9 m + 0.1 g and v ← 0.999 v + 0.001 g².",
        "Both start at 0, so they are too small at first: divide m by 1 - 0.9ᵗ and v by 1 - 0.999ᵗ, t = step. The state"
        " that you return is the one before this correction.",
        "p ← p - lr · decay · p - lr · m̂ / (√v̂ + ε).",
    ),
    next_thought="In the first step m̂ / √v̂ is ±1, whatever the size of the gradient. Why is a warm-up good, then?",
    cases=lambda: [
        (*arrays(0, (2, 3), (2, 3)), np.zeros((2, 3)), np.zeros((2, 3)), 1, 0.1, 0.0),
        (*arrays(1, (4,), (4,)), np.zeros(4), np.zeros(4), 1, 0.1, 0.5),
        (*arrays(2, (3,), (3,), (3,)), np.abs(*arrays(3, (3,))), 5, 0.01, 0.1),
        (*arrays(4, (3,)), np.full(3, 1e-9), np.zeros(3), np.zeros(3), 1, 0.1, 0.1),
        tuple(a.astype("float32") for a in (*arrays(5, (3,), (3,), (3,)), np.abs(*arrays(6, (3,))))) + (2, 0.1, 0.1),
        (np.ones(3), np.array([30.0, -40.0, 50.0]), np.zeros(3), np.zeros(3), 2, 0.1, 0.1),
        *varied(*arrays(7, (2,), (2,), (2,)), np.ones(2), 3, 0.1, 0.2, by=[9, 0.4, 0.0]),
    ],
    more=lambda rng: [
        (p, g, m * (step > 1), np.abs(v) * (step > 1), step, float(rng.uniform(0.01, 1)), decay)
        for turn, step in enumerate((1, 2, 7, 300, 5000))
        for decay in (0.0, 0.1)
        for p, g, m, v in [drawn(rng, "...c ...c ...c ...c", turn, (1, 1, 1, 30)[turn % 4])]
    ],
    right=_right_adamw,
    forbids=("*adam*", "Optimizer"),
    mistakes=(
        Mistake(
            "the means are not corrected for their start at 0: m̂ = m / (1 - 0.9ᵗ)",
            "m_hat = m / (1 - 0.9**step)\n    v_hat = v / (1 - 0.999**step)",
            "m_hat, v_hat = m, v",
        ),
        Mistake(
            "the decay is added to the gradient (that is Adam with L2): it acts on p directly",
            "    m = 0.9",
            "    grad, decay = grad + decay * p, 0\n    m = 0.9",
        ),
        Mistake("the ε is added after the root, not under it", "(np.sqrt(v_hat) + 1e-8)", "np.sqrt(v_hat + 1e-8)"),
        Mistake("the decay is scaled by the rate: lr · decay · p", "lr * decay * p", "decay * p"),
        Mistake("the corrections count from 1 and use `step` as it is: 1 - 0.9**step", "**step", "**(step + 1)"),
        Mistake(
            "return the running means themselves; the correction is only for this step",
            "return p, m, v",
            "return p, m_hat, v_hat",
        ),
    ),
)
def adamw_step(p, grad, m, v, step, lr, decay):
    """Take one step of AdamW; return the new p, m and v, arrays of the shape of p."""
    m = 0.9 * m + 0.1 * grad
    v = 0.999 * v + 0.001 * grad**2
    m_hat = m / (1 - 0.9**step)
    v_hat = v / (1 - 0.999**step)
    p = p - lr * decay * p - lr * m_hat / (np.sqrt(v_hat) + 1e-8)
    return p, m, v


def _right_rate(step, peak, warmup, total, final):
    return WarmupCosine(peak, warmup, total, final)(step)


@exercise(
    "11.2",
    "Warm-up and cosine",
    minutes=12,
    difficulty="medium",
    hints=(
        "Three cases: step < warmup, step >= total, and between.",
        "Between: how much is done, from 0 to 1? (step - warmup) / (total - warmup).",
        "0.5 · (1 + cos(π · done)) goes from 1 to 0; stretch it so that it goes from peak to final.",
    ),
    next_thought="What would the first steps of AdamW do at the full rate, when its means have seen only one batch?",
    cases=lambda: [
        *((step, 1.0, 4, 10, 0.1) for step in (7, 5, 4, 0, 3, 10, 13)),
        (2, 0.5, 0, 8, 0.0),
        *varied(6, 0.8, 4, 10, 0.1, by=[8, 0.5, 2, 20, 0.3]),
    ],
    more=lambda rng: [
        (int(step), float(rng.uniform(0.1, 2)), w, w + n, float(rng.uniform(0, 0.1)))
        for w, n in rng.integers(1, 20, (4, 2)).tolist()
        for step in rng.integers(0, w + n + 5, 6)
    ],
    right=_right_rate,
    forbids=("WarmupCosine",),
    mistakes=(
        Mistake(
            "step 0 has rate 0 and moves nothing: the warm-up is (step + 1) / (warmup + 1)",
            "(step + 1) / (warmup + 1)",
            "step / warmup",
        ),
        Mistake(
            "the warm-up reaches the peak one step early: divide by warmup + 1",
            "(step + 1) / (warmup + 1)",
            "(step + 1) / warmup",
        ),
        Mistake("the cosine ends at 0: it should end at `final`", "final + (peak - final) * 0.5", "peak * 0.5"),
        Mistake(
            "the cosine starts at step 0: its progress counts from the end of the warm-up",
            "(step - warmup) / (total - warmup)",
            "step / total",
        ),
        Mistake(
            "this is a straight line down, not half a cosine", "0.5 * (1 + math.cos(math.pi * done))", "(1 - done)"
        ),
        Mistake(
            "after `total` the cosine rises again: from there on it is `final`",
            "    if step >= total:\n        return final\n",
            "",
        ),
    ),
)
def warmup_cosine(step, peak, warmup, total, final):
    """Return the learning rate of this step (counted from 0): a number."""
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if step >= total:
        return final
    done = (step - warmup) / (total - warmup)
    return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * done))


def _length(grads):
    return math.sqrt(sum(float((g * g).sum()) for g in grads))


def _scaled(grads, factor):
    return [g * factor for g in grads]


def _of_length(norm):
    (grad,) = arrays(3, (4,))
    return [grad * (norm / np.linalg.norm(grad))]


def _right_clip(grads, max_norm):
    norm = _length(grads)
    factor = max_norm / norm if norm > max_norm else 1
    return _scaled(grads, factor), grads[0].dtype.type(norm)


@exercise(
    "11.3",
    "Clip by the global norm",
    minutes=12,
    difficulty="medium",
    hints=(
        "The norm of one vector is the root of the sum of all squares: over all arrays together.",
        "One factor for all arrays: max_norm / norm. So the direction stays.",
        "If the norm is smaller than max_norm nothing changes.",
    ),
    next_thought="What happens to the direction of the gradient when each array is clipped on its own?",
    cases=lambda: [
        (list(arrays(0, (3, 2), (4,))), 0.5),
        ([np.array([3.0, 0.0]), np.array([[4.0]])], 1.0),
        ([np.array([0.3]), np.array([0.4])], 1.0),
        (list(arrays(1, (2, 2), (3,), dtype="float32")), 0.5),
        ([np.zeros(3), np.zeros((2, 1))], 1.0),
        *varied(list(arrays(2, (2,), (2, 3))), 0.5, by=[0.25]),
        *((_of_length(norm), 1.0) for norm in (1.5, 1.0001, 0.9999, 0.5)),
        (_of_length(0.003), 0.001),
    ],
    more=lambda rng: [(list(drawn(rng, "nm m ...k", n, s)), 2.0) for n, s in enumerate((1, 1, 1e-3, 1e3, 0.3))],
    right=_right_clip,
    forbids=("*clip_grad*",),
    mistakes=(
        Mistake(
            "each array is clipped on its own: the norm is that of all of them as one vector",
            "g * factor",
            "g * min(1.0, max_norm / np.linalg.norm(g))",
        ),
        Mistake(
            "each element is clipped: that turns the gradient. Scale all elements by one factor",
            "g * factor",
            "np.clip(g, -max_norm, max_norm)",
        ),
        Mistake("a short gradient is made longer: it should stay as it is", "max(norm, max_norm)", "max(norm, 1e-99)"),
        Mistake(
            "the gradient 0 has norm 0, and there is nothing to divide by: it stays as it is",
            when=lambda got, want, case: isinstance(got, ZeroDivisionError),
        ),
        Mistake(
            "PyTorch adds 1e-6 to the norm, against division by 0: here the new norm should be max_norm itself",
            "max_norm / max(norm, max_norm)",
            "min(1.0, max_norm / (norm + 1e-6))",
        ),
        Mistake("this is the norm after clipping: return the one before", "], norm", "], norm * factor"),
        Mistake(
            "the norms of the arrays are added up: add their squares, and take the root",
            "math.sqrt(sum(float((g * g).sum()) for g in grads))",
            "sum(math.sqrt(float((g * g).sum())) for g in grads)",
        ),
        Mistake("the root is missing: the norm is the root of the sum of squares", "math.sqrt(", "("),
    ),
)
def clip_by_norm(grads, max_norm):
    """Return the arrays, scaled together so that their norm is at most max_norm, and the norm before, a number."""
    norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
    factor = max_norm / max(norm, max_norm)  # at most 1
    return [g * factor for g in grads], norm


def _examine_optimizer(function):
    model = mending.small_model()
    optimizer = function(model, 1e-2)
    if not hasattr(optimizer, "step"):
        likely = "the `return` is missing" if optimizer is None else ""
        return ... if watch.untouched(optimizer) else (f"got {words.kind(optimizer)}, expected an optimiser", likely)
    fallen = mending.losses(model, optimizer=optimizer)
    made, before, after, right = _after_steps(function, 0.1, 0)  # only the decay moves anything
    if changed := _unlike(made, before):
        return f"it changes {changed[0]} before any step", "make the optimiser, and leave the model as it is"
    moved = _unlike(after, before)
    if vectors := [name for name in moved if before[name].ndim == 1]:
        return (
            f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: with all gradients 0 a step changes"
            f" {vectors[0]}",
            "gains and biases should not be pulled to 0: only matrices decay",
        )
    if still := [name for name, value in before.items() if value.ndim == 2 and name not in moved]:
        made, before, after, _ = _after_steps(function, 0.1, 1)
        if not _unlike(after, before):
            return "its steps move no weight of this model", "each call makes an optimiser for the model that it gets"
        return f"now {still[0]} does not decay either", "matrices should still decay by lr · weight_decay"
    rng = np.random.default_rng()  # a rate or a gradient's size that is built in is found
    rates = (0.1, 0.1, 0.003, float(rng.uniform(0.11, 0.3)), float(rng.uniform(1e-4, 2e-3)))
    for lr, size in zip(rates, (0, 1, 1000, 1, 1), strict=True):
        made, before, after, right = _after_steps(function, lr, size)
        if wrong := _unlike(after, right, 1e-9):
            name = max(wrong, key=lambda name: np.array_equal(after[name], before[name]))  # one that is still
            how = "with" if size else "without"
            far, want = words.two_numbers(*(float(np.abs(s[name] - before[name]).max()) for s in (after, right)))
            return (
                f"at the rate {lr:.3g}, five steps {how} gradient move {name} by {far}, expected {want}",
                "all parameters learn at the rate `lr`; the decay of matrices is the 0.1 of before",
            )
    return _other_training(fallen)


def _unlike(state, other, tolerance=0.0):
    """Return the names of the arrays that differ by more than that in two states of a model."""
    return [name for name, value in other.items() if np.abs(state[name] - value).max() > tolerance]


def _after_steps(function, lr, size):
    """Return states of a model: with its optimiser made, before that, after five steps, and after five right ones.

    The loss is multiplied by ``size``: with 0 all gradients are 0, so that only the decay acts.
    """
    x, y = mending.small_data()
    states = []
    for make in (function, _right_optimizer):
        model = mending.moved(mending.small_model(layers=2, width=8))  # matrices smaller than usual
        before = model.state_dict()
        optimizer, made = make(model, lr), model.state_dict()
        for _ in range(5):
            optimizer.zero_grad()
            (model(x, y)[1] * float(size)).backward()
            optimizer.step()
        states.append((made, before, model.state_dict()))
    return *states[0], states[1][2]


def _right_optimizer(model, lr):
    return AdamW(model.parameters(), lr, weight_decay=0.1)


@functools.cache
def _right_losses():
    model = mending.small_model()
    return mending.losses(model, optimizer=_right_optimizer(model, 1e-2))


def _other_training(fallen):
    """Return what is wrong if these 60 losses are not those of the right optimiser; None if they are."""
    differ = [step for step, (mine, right) in enumerate(zip(fallen, _right_losses())) if not abs(mine - right) < 1e-7]
    if not differ:
        return None
    mine, right = words.two_numbers(fallen[differ[0]], _right_losses()[differ[0]])
    return f"in training at the rate 0.01, the loss of step {differ[0]} is {mine}, expected {right}"


def _optimizer_broken(model, lr):
    """Return AdamW with a weight decay of 0.1. It decays more than it should."""
    return AdamW(model.parameters(), lr, weight_decay=0.1, decay_all=True)


@exercise(
    "11.4",
    "Find the bug: a decay that reaches too far",
    minutes=6,
    difficulty="easy",
    hints=(
        "Set all gradients to 0 and take one step: what moves is moved by the decay.",
        "AdamW of this course decays matrices only, unless it is told otherwise.",
    ),
    next_thought="Why does it make sense to pull matrices to 0, but not a gain?",
    broken=_optimizer_broken,
    examine=_examine_optimizer,
)
def make_optimizer(model, lr):
    """Return AdamW with a weight decay of 0.1 on the matrices."""
    return AdamW(model.parameters(), lr, weight_decay=0.1)
