"""Exercise of notebook 13: weights of nn.Linear, loaded the wrong way round where the matrix is square."""

import functools

import numpy as np

from . import compare, watch, words
from .bugs import losses, small_model
from .exercise import Mistake, exercise


@functools.cache
def _saved():
    """(weights, last loss) of a trained model. Nobody may write into them."""
    model = small_model()
    last = losses(model)[-1]
    return model.state(), last


def _turned(state):
    """These weights with the matrices as nn.Linear keeps them, (fan out, fan in)."""
    return {name: (array.T if name.endswith(".weight") else array).copy() for name, array in state.items()}


def _by(change):
    """A wrong solution: ``change(name, array, shape)`` of every array."""
    return lambda theirs, shapes: {name: change(name, array, shapes[name]) for name, array in theirs.items()}


def _is_square(array):
    return array.ndim == 2 and len(set(array.shape)) == 1


_MISTAKES = (
    Mistake(
        "a square matrix fits either way round, so its shape says nothing: ask its name",
        _by(lambda name, array, shape: array.T if array.shape != shape else array),
    ),
    Mistake(
        "a reshape moves numbers into other rows: nn.Linear wants a transpose, array.T",
        _by(lambda name, array, shape: array.reshape(shape)),
    ),
    Mistake(
        "the output matrix is one of nn.Linear, too: all names that end in .weight",
        _by(lambda name, array, shape: array.T if name.endswith(".weight") and "output" not in name else array),
    ),
    Mistake(
        "the square ones are turned over, and the others have now the wrong shape",
        _by(lambda name, array, shape: array.T if _is_square(array) else array),
    ),
    Mistake("nothing is turned over: nn.Linear keeps (fan out, fan in)", _by(lambda name, array, shape: array)),
    Mistake(
        "the two tables are no matrices of nn.Linear: nobody turned them over",
        _by(lambda name, array, shape: array.T),
    ),
)


def _likely(ours, theirs, shapes):
    """The message of the first mistake that gives the same arrays; empty if none does."""
    for mistake in _MISTAKES:
        other = mistake.wrong(theirs, shapes)
        if all(compare.same(ours[name], other[name]) for name in other):
            return mistake.message
    return ""


def _examine(function):
    state, last = _saved()
    shapes, theirs, given = {name: array.shape for name, array in state.items()}, _turned(state), _turned(state)
    ours = function(given, dict(shapes))
    if not isinstance(ours, dict):
        likely = "the `return` is missing" if ours is None else ""
        return ... if watch.untouched(ours) else (f"{words.kind(ours)} came, and a dict of arrays is expected", likely)
    if missing := [name for name in shapes if name not in ours]:
        return f"the array {missing[0]} is missing", "every array comes along, turned over or not"
    if unknown := [name for name in ours if name not in shapes]:
        return f"{unknown[0]!r} is unknown to the model", "the names stay as they are"
    if kinds := [name for name, array in ours.items() if not isinstance(array, np.ndarray)]:
        return f"{words.kind(ours[kinds[0]])} came for {kinds[0]}, and a NumPy array is expected"
    likely = _likely(ours, theirs, shapes)
    if wrong := [name for name, array in ours.items() if array.shape != shapes[name]]:
        name = wrong[0]
        return f"the array {name} has shape {ours[name].shape}, and the model expects {shapes[name]}", likely
    if list(given) != list(theirs) or any(not compare.same(given[name], theirs[name]) for name in theirs):
        return "The function changes its input in place: theirs", "write into a new dict, `ours`"
    wrong = [name for name, array in ours.items() if not np.array_equal(array, state[name])]
    if not wrong:
        return None
    model = small_model()
    model.load_state(ours)
    fallen = losses(model)
    return (
        f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: the saved model had {last:.2f} before the"
        f" first step. {wrong[0]} is not what was saved",
        likely,
    )


def _broken(theirs, shapes):
    """Weights in the layout of nn.Linear → in the course's: {name: array} both. Somewhere a matrix stays as it lies."""
    ours = {}
    for name, array in theirs.items():
        ours[name] = array.T if array.shape != shapes[name] else array
        assert ours[name].shape == shapes[name], name
    return ours


@exercise(
    "13.4",
    "Find the bug: a matrix that fits both ways",
    minutes=10,
    difficulty="middle",
    task="""
A trained GPT was saved from nn.Linear: each matrix (`….weight`) lies as (fan out, fan in). Everything else, the two
tables, gains and biases, is as in the course. `shapes` are those that our model expects. All shapes fit, the loss
falls, and yet it begins far above that of the saved model. Mend it.
""",
    hints=(
        "Print the shapes. Which matrices look the same in both layouts?",
        "Query, key, value and output are C × C: they fit either way round, and so they are never turned over.",
        "Decide by the name, not by the shape: array.T if name.endswith('.weight').",
    ),
    next_thought="GPT-2's c_attn is (C, 3C). Would this mistake be noticed there? And in its attn.c_proj?",
    broken=_broken,
    examine=_examine,
    mistakes=_MISTAKES,
)
def from_linear(theirs, shapes):
    """Weights in the layout of nn.Linear → in the course's: {name: array} both."""
    ours = {}
    for name, array in theirs.items():
        ours[name] = array.T if name.endswith(".weight") else array
        assert ours[name].shape == shapes[name], name
    return ours
