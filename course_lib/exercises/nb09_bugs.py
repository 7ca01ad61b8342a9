"""Exercises of notebook 09: a training step and an optimiser whose loss falls although they are wrong."""

from ..numpy_track import SGD, AdamW
from .bugs import falls_sentence, losses, small_data, small_model
from .exercise import exercise


def _examine_step(function):
    x, y = small_data()
    fallen = losses(small_model(), step=function)
    if not all(isinstance(value, float) for value in fallen):
        return "the step should return its loss as a number: loss.item()"
    model, twin = small_model(), small_model()
    optimizer = SGD(model.parameters(), 0.1)
    for step in range(3):
        twin.load_state(model.state())
        expected = SGD(twin.parameters(), 0.1)
        expected.zero_grad()
        twin(x, y)[1].backward()
        expected.step()
        function(model, optimizer, x, y)
        state = twin.state()
        if any(abs(value - state[name]).max() > 1e-12 for name, value in model.state().items()):
            return (
                f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: step {step} does not move the"
                " weights by rate times the gradient of its own batch",
                "gradients of earlier steps are still there" if step else "",
            )
    return falls_sentence(fallen)


def _step_broken(model, optimizer, x, y):
    """One training step; returns the loss, a number. Something is forgotten."""
    loss = model(x, y)[1]
    loss.backward()
    optimizer.step()
    return loss.item()


@exercise(
    "09.5",
    "Find the bug: a training step that remembers",
    minutes=6,
    difficulty="easy",
    task="""
The loss falls, only not as it should: something of every earlier step is still in this one. Mend the step.
""",
    hints=(
        "backward() adds to the gradients that are there. Who takes the old ones away?",
        "optimizer.zero_grad(), before the backward or after the step.",
    ),
    next_thought="When would one *want* gradients to add up over several batches?",
    broken=_step_broken,
    examine=_examine_step,
)
def train_step(model, optimizer, x, y):
    """One training step; returns the loss, a number."""
    optimizer.zero_grad()
    loss = model(x, y)[1]
    loss.backward()
    optimizer.step()
    return loss.item()


def _examine_optimizer(function):
    model = small_model()
    fallen = losses(model, optimizer=function(model, 1e-2))
    model = small_model()
    optimizer, before = function(model, 0.1), model.state()
    optimizer.zero_grad()
    optimizer.step()  # no gradient: only the decay moves anything
    after = model.state()
    moved = {name: bool((after[name] != before[name]).any()) for name in before}
    if vectors := [name for name, value in before.items() if value.ndim == 1 and moved[name]]:
        return (
            f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: without any gradient a step changes"
            f" {vectors[0]}",
            "gains and biases should not be pulled to 0: only matrices decay",
        )
    if still := [name for name, value in before.items() if value.ndim == 2 and not moved[name]]:
        return f"now {still[0]} does not decay either", "matrices should still decay by rate · weight_decay"
    return falls_sentence(fallen)


def _optimizer_broken(model, rate):
    """AdamW with a weight decay of 0.1. It decays more than it should."""
    return AdamW(model.parameters(), rate, weight_decay=0.1, decay_all=True)


@exercise(
    "09.6",
    "Find the bug: a decay that reaches too far",
    minutes=6,
    difficulty="easy",
    task="""
This optimiser trains well for a while. But it also pulls LayerNorm's gains to 0. They start at 1, and only the loss
should move them. Mend it, and let the matrices decay as before.
""",
    hints=(
        "Set all gradients to 0 and make one step: what moves is moved by the decay.",
        "AdamW of this course decays matrices only, unless it is told otherwise.",
    ),
    next_thought="Why does it make sense to pull matrices to 0, and no sense for a gain?",
    broken=_optimizer_broken,
    examine=_examine_optimizer,
)
def make_optimizer(model, rate):
    """AdamW with a weight decay of 0.1 on the matrices."""
    return AdamW(model.parameters(), rate, weight_decay=0.1)
