"""A mended forward against that of the course: the same numbers, and the same gradient of x and of every parameter.

A property like "nothing leaks" says which mistake is left. It does not say that the rest is right: an answer that
leaves out the gain leaks nothing, and one that cuts the gradient computes the right numbers and learns nothing.
"""

import numpy as np

from ..numpy_track import Tensor
from . import compare, words
from .bugs import small_model

CUT = "stay with Tensors and their methods: what is rebuilt from x.data or .detach().numpy() has no history"


def layer(part, heads, function=None):
    """A "norm" or an "attention" layer with weights that are not those of the start; with ``function`` as forward."""
    model = small_model(heads=heads)
    rng = np.random.default_rng(2)
    model.load_state({name: value + 0.1 * rng.standard_normal(value.shape) for name, value in model.state().items()})
    sublayer = model.blocks[0].attention
    made = sublayer.norm if part == "norm" else sublayer.layer
    if function is not None:
        made.forward = function.__get__(made)
    return made


def _try(part, heads, function=None):
    """(result, {name: gradient}) of the layer for one x (3, 5, C), and a random gradient of the result."""
    made = layer(part, heads, function)
    C = small_model(heads=heads).config.width
    rng = np.random.default_rng(3)
    x = Tensor(rng.standard_normal((3, 5, C)) + 0.5, requires_grad=True)
    out = made.forward(x)
    if not isinstance(out, Tensor) or out.shape != x.shape:
        return out, {}
    if out.requires_grad:
        out.backward(rng.standard_normal(out.shape))
    return out, {"x": x.grad} | {name: p.grad for name, p in made.named_parameters().items()}


def first_problem(part, heads, function):
    """What is wrong with the form of the result: ``...`` for an untouched stub, (what came, why); None if nothing."""
    out, _ = _try(part, heads, function)
    if out is ... or out is NotImplemented:
        return ...
    if out is None:
        return "None came back", "the `return` is missing"
    if not isinstance(out, Tensor):
        return f"{words.kind(out)} came, and a Tensor is expected: the gradient does not come through", CUT
    expected, _ = _try(part, heads)
    if out.shape != expected.shape:
        return f"the result has shape {out.shape}, expected is {expected.shape}", ""
    return None


def value_problem(part, heads, function):
    """What is wrong with the numbers of the result, as a sentence; None when they are those of the course's layer."""
    out, expected = (_try(part, heads, f)[0].detach().numpy() for f in (function, None))
    return None if np.allclose(out, expected, rtol=0, atol=1e-9) else compare.difference(out, expected)


def gradient_problem(part, heads, function):
    """(what is wrong, why) when a gradient is missing or not that of the course's layer; None when all are."""
    gradients, expected = (_try(part, heads, f)[1] for f in (function, None))
    lost = [name for name in expected if gradients[name] is None]
    if lost:
        return f"the numbers are right, but the gradient does not come through to {', '.join(lost)}", CUT
    for name, want in expected.items():
        if not np.allclose(gradients[name], want, rtol=0, atol=1e-9):
            return (
                "the numbers are right, but the gradient does not come through whole: that of"
                f" {name} is not the right one",
                CUT,
            )
    return None


def slip(part, heads, function, mistakes):
    """The message of the first of the ``mistakes`` whose forward gives the same result; empty if none does."""
    out = _try(part, heads, function)[0].detach().numpy()
    right = _try(part, heads)[0].detach().numpy()
    for mistake in mistakes:
        theirs = _try(part, heads, mistake.wrong)[0].detach().numpy()
        if compare.same(out, theirs) and not compare.same(theirs, right):
            return mistake.message
    return ""
