"""Repaired functions, tried in a small model: the properties that a broken one lacks, and the course's own values.

A loss that falls proves little: each broken function of the exercises trains. What finds them is a property that must
hold for every model of its kind. Such a property shows which mistake is left, not that the rest is right: an answer
that leaves out the gain leaks nothing, and one that cuts the gradient computes the right values and learns nothing. So
values and gradients are compared with those of the course's layer, too.
"""

import functools
import types

import numpy as np

from ..common.config import GPTConfig
from ..numpy_track import GPT, AdamW, Tensor
from ..text import load_corpus, windows
from ..text.tokenizers import CharTokenizer
from . import compare, words
from .watch import LEFT_OVER, Guard

CUT = "stay with Tensors and their methods: what is rebuilt from x.data or .detach().numpy() has no history"


def small_data():
    """Return (x, y), windows (N, T) of the text of three lines, T = 8."""
    text = load_corpus("hello").text
    return windows(CharTokenizer.from_text(text).encode(text), 8)


def small_model(**changes):
    """Return a one-layer GPT for that text, float64, unless the changes say otherwise."""
    return GPT(GPTConfig(17, **{"layers": 1, "dtype": "float64", "init": "scaled"} | changes), seed=1)


def moved(model):
    """Give a model weights unlike the initial ones, among which gains are 1 and biases 0; return it."""
    rng = np.random.default_rng(2)
    model.load_state_dict(
        {
            name: (value + 0.1 * rng.standard_normal(value.shape)).astype(value.dtype)
            for name, value in model.state_dict().items()
        }
    )
    return model


def train_step(model, optimizer, x, y):
    """Take one step as it should be; return the loss before it."""
    optimizer.zero_grad()
    loss = model(x, y)[1]
    loss.backward()
    optimizer.step()
    return float(loss.item())


def losses(model, steps=60, step=train_step, optimizer=None):
    """Return the losses of ``steps`` training steps on all windows at once."""
    x, y = small_data()
    optimizer = optimizer or AdamW(model.parameters(), 1e-2)
    return [step(model, optimizer, x, y) for _ in range(steps)]


def leak(model, T=8):
    """Return (k, t, how far): the change of token k that moved the logits of an earlier position t most, or None."""
    ids = small_data()[0][:1].copy()
    worst = None
    with model.evaluating():
        before = model(ids)[0].data[0]
        for k in range(1, T):
            other = ids.copy()
            other[0, k] = (other[0, k] + 1) % 17
            moved = np.abs(model(other)[0].data[0, :k] - before[:k]).max(axis=-1)  # (k,)
            t = int(moved.argmax())
            if moved[t] > 1e-9 and (worst is None or moved[t] > worst[2]):
                worst = (k, t, float(moved[t]))
    return worst


def leak_sentence(model):
    """Return what is wrong if a later token moves an earlier position; None if the model is causal."""
    found = leak(model)
    return (
        found
        and f"token {found[0]} was changed, and the logits of the earlier position {found[1]} moved by {found[2]:.2g}"
    )


def row_sums_sentence(weights):
    """Return what is wrong if attention weights (..., T, T) do not sum to 1 along the keys; None if they do."""
    sums = np.asarray(weights).sum(axis=-1)
    worst = float(sums.flat[np.abs(sums - 1).argmax()])
    return None if abs(worst - 1) < 1e-9 else f"a row of the attention weights sums to {worst:.3g}, not to 1"


def in_all_blocks(model, part, function):
    """Make ``function(self, x)`` the forward of a part ("attention" or "norm") in every block; return the model."""
    for block in model.blocks:
        for sublayer in (block.attention, block.mlp) if part == "norm" else (block.attention,):
            layer = sublayer.norm if part == "norm" else sublayer.layer
            layer.forward = types.MethodType(function, layer)
    return model


def falls_sentence(values):
    """Return what is wrong if a loss does not fall by a third; None if it does."""
    if values[-1] < 2 / 3 * values[0]:
        return None
    return f"the loss does not fall: {values[0]:.2f} at first, {values[-1]:.2f} after {len(values)} steps"


def loss_problem(part, heads, function):
    """Return what is wrong if a model does not train with this forward just as with the course's own.

    So a forward is found that changes its input or its layer, or is right at its first call only.
    """
    mine = losses(in_all_blocks(small_model(heads=heads), part, function))
    right = _right_losses(heads)
    differ = [step for step in range(60) if abs(mine[step] - right[step]) > 1e-7]
    if not differ:
        return None
    got, want = words.two_numbers(mine[differ[0]], right[differ[0]])
    what = f"in training, the loss of step {differ[0]} is {got}, expected {want}"
    return what, "is something changed in place, or left over from an earlier call?" if differ[0] else ""


@functools.cache
def _right_losses(heads):
    return losses(small_model(heads=heads))


def furthest(one, other):
    """Return the largest difference between two states of a model."""
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


def layer(part, heads, function=None, **changes):
    """Return a "norm" or "attention" layer with weights unlike the initial ones; with ``function`` as its forward."""
    sublayer = moved(small_model(heads=heads, **changes)).blocks[0].attention
    made = sublayer.norm if part == "norm" else sublayer.layer
    if function is not None:
        made.forward = types.MethodType(function, made)
    return made


class Changed(Exception):
    """A forward has written into its input or a parameter."""


def _try(part, heads, function=None, B=3, T=5):
    """Return (result, {name: gradient}) of the layer for one x (B, T, C) and a random gradient of the result."""
    made = layer(part, heads, function)
    C = small_model(heads=heads).config.width
    rng = np.random.default_rng(3)
    x = Tensor(rng.standard_normal((B, T, C)) + 0.5, requires_grad=True)
    before = made.state_dict() | {"x": x.data.copy()}
    out = made.forward(x)
    for name, value in (made.state_dict() | {"x": x.data}).items():
        if not np.array_equal(value, before[name]):
            raise Changed(name)
    if not isinstance(out, Tensor) or out.shape != x.shape:
        return out, {}
    if out.requires_grad:
        out.backward(rng.standard_normal(out.shape))
    return out, {"x": x.grad} | {name: p.grad for name, p in made.named_parameters()}


def first_problem(part, heads, function):
    """Return (problem, why) of the form of the result; ``...`` for an untouched stub, None if all is well."""
    try:
        out, _ = _try(part, heads, function)
    except Changed as changed:
        return f"The function changes its input in place: {changed}", "make a new Tensor"
    if out is ... or out is NotImplemented:
        return ...
    if out is None:
        return "it returned None", "the `return` is missing"
    if isinstance(out, (tuple, list)):
        return f"got {words.kind(out)}, expected one Tensor", "return the result alone"
    expected, _ = _try(part, heads)
    if not isinstance(out, Tensor):
        return words.not_a_tensor(out), CUT if compare.same(out, expected) else ""
    if out.shape != expected.shape:
        return f"the result has shape {out.shape}, expected {expected.shape}", ""
    return None


def value_problem(part, heads, function):
    """Return what is wrong with the values of the result; None if they are those of the course's layer."""
    for B, T in ((3, 5), (1, 1), (2, 8)):
        out, expected = (_try(part, heads, f, B, T)[0].detach().numpy() for f in (function, None))
        if out.shape != expected.shape or not np.allclose(out, expected, rtol=0, atol=1e-9):
            return compare.difference(out, expected)
    return _problem_elsewhere(part, heads, function)


def _problem_elsewhere(part, heads, function):
    """Return what is wrong with the values in other sizes, ε and dtype, or in evaluation; None if all is well.

    So numbers are found that belong to the small model alone.
    """
    other = {"heads": 1 if heads == 1 else 3, "width": 48, "context_length": 72, "norm_eps": 0.01, "dtype": "float32"}
    same = {"heads": heads, "width": 32, "dtype": "float64"}  # with scores that are large next to a mask of -50
    for changes, T, scale, training in ((other, 70, 1, True), (same, 5, 8, False)):
        mine, right = (layer(part, function=f, **changes).train(training) for f in (function, None))
        x = np.random.default_rng(6).standard_normal((2, T, changes["width"])).astype(changes["dtype"]) * scale
        x = Tensor(x)
        if problem := _problem_for(mine, right, x):
            where = "in a model with other sizes and ε, in float32" if training else "in evaluation"
            return f"{where}, for x of shape {x.shape}: {problem}"
    return None


def other_problem(part, heads, function):
    """Return (problem, why) if the gradients are not right although the values are, or training is another; or None."""
    return (
        gradient_problem(part, heads, function)
        or again_problem(part, heads, function)
        or loss_problem(part, heads, function)
    )


def again_problem(part, heads, function):
    """Return (problem, why) if a later call of the same layer, for another x, gives something else; or None."""
    mine, right = layer(part, heads, function), layer(part, heads)
    rng = np.random.default_rng(4)
    for B, T in ((2, 5), (2, 5), (3, 8), (1, 2)):
        x = Tensor(rng.standard_normal((B, T, small_model(heads=heads).config.width)))
        if problem := _problem_for(mine, right, x):
            if _problem_for(layer(part, heads, function), right, x):  # so it would be in a first call, too
                return f"for x of shape {x.shape}: {problem}", ""
            return f"right in its first call, and then, for x of shape {x.shape}: {problem}", LEFT_OVER
    return None


def _problem_for(mine, right, x):
    """Return what is wrong with the result of one layer for x, where the other one is right; None if all is well."""
    with Guard() as guard:
        problem = compare.difference(mine.forward(x).detach().numpy(), right.forward(x).detach().numpy())
    return f"stopped with {type(guard.error).__name__}: {guard.error}" if guard.error else problem


def weights_problem(function):
    """Return what is wrong with the weights that attention with one head keeps; None if they are the course's."""
    kept, shape = [], (2, 4, 4)  # with or without an axis for the one head
    for made in (layer("attention", 1, function), layer("attention", 1)):
        made.forward(Tensor(np.random.default_rng(5).standard_normal((2, 4, small_model().config.width))))
        weights = np.asarray(words.plain(made.weights))
        kept.append(weights.reshape(shape) if weights.shape == (2, 1, 4, 4) else weights)
    return compare.difference(*kept, what="the result is right, but what self.weights keeps")


def gradient_problem(part, heads, function):
    """Return (problem, why) if a gradient is missing or not that of the course's layer; None if all are right."""
    gradients, expected = (_try(part, heads, f)[1] for f in (function, None))
    lost = [name for name in expected if gradients[name] is None]
    if lost:
        return f"the values are right, but no gradient reaches {', '.join(lost)}", CUT
    for name, want in expected.items():
        if not np.allclose(gradients[name], want, rtol=0, atol=1e-9):
            return f"the values are right, but the gradient that reaches {name} is not", CUT
    return None


def likely_mistake(part, heads, function, exercise):
    """Return the message of the exercise's first mistake whose forward gives the same result; "" if none does."""
    out = _try(part, heads, function)[0].detach().numpy()
    right = _try(part, heads)[0].detach().numpy()
    for message, wrong in exercise.wrong_functions():
        theirs = _try(part, heads, wrong)[0].detach().numpy()
        if compare.same(out, theirs) and not compare.same(theirs, right):
            return message
    return ""
