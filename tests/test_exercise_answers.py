"""Every check proved: the stub is not attempted, the solution right, each wrong answer refused with its own message."""

import ast
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_answers import TORCH
from wrong_answers import WRONG, WRONG_VALUES

from course_lib import numpy_track
from course_lib.common.positions import rotary_angles
from course_lib.exercises import every, find
from course_lib.exercises.exercise import NOT_ATTEMPTED, NOT_YET, RIGHT
from course_lib.exercises.judge import judge

EXERCISES = every()
Tensor = numpy_track.Tensor
PUBLIC = {name: getattr(numpy_track, name) for name in numpy_track.__all__}
WRITTEN = [e for e in EXERCISES if e.right]
MENDED = [e for e in EXERCISES if e.broken]


def ids(exercise):
    return exercise.id


def made(exercise, text):
    """The learner's function, defined by this text as a notebook cell would."""
    namespace = {"np": np, "math": __import__("math"), "torch": torch, "F": numpy_track.functional, **PUBLIC}
    namespace["rotary_angles"] = rotary_angles
    exec(compile(text, "a cell", "exec"), namespace)
    return namespace[exercise.name]


MISTAKES = [(e, mistake) for e in EXERCISES for mistake in e.mistakes]


@pytest.mark.parametrize(
    ("exercise", "mistake"),
    [
        pytest.param(*pair, id=f"{pair[0].id} {pair[1].message}")
        for pair in MISTAKES
        if pair[1].when is None or pair[1].old
    ],
)
def test_a_mistake_gets_its_own_message(exercise, mistake):
    assert mistake.old in exercise.solution
    answer = exercise.wrong(mistake) if exercise.function else exercise.wrong_value(mistake)
    verdict = judge(replace(exercise, forbids=()), answer)  # an edit may call the library
    if verdict.state == NOT_ATTEMPTED:  # the mistake that is to be found: the stub itself
        assert exercise.examine(answer)[1] == mistake.message
    else:
        assert (verdict.state, verdict.likely) == (NOT_YET, mistake.message)


@pytest.mark.parametrize(("key", "old", "new", "words"), [(key, *row) for key, rows in WRONG.items() for row in rows])
def test_wrong_answer_gets_its_message(key, old, new, words):
    exercise = find(key)
    assert old in exercise.solution
    verdict = judge(exercise, made(exercise, exercise.solution.replace(old, new) if old else new))
    assert verdict.state == NOT_YET
    happened, _, words_there = words.partition("happened: ")
    if words_there:
        assert words_there in verdict.problem
    else:
        assert words in verdict.likely, verdict


@pytest.mark.parametrize(
    ("key", "answer", "words"), [(key, *row) for key, rows in WRONG_VALUES.items() for row in rows]
)
def test_wrong_value_gets_its_message(key, answer, words):
    verdict = judge(find(key), answer)
    assert verdict.state == NOT_YET and words in verdict.likely


def test_every_predicate_is_met():
    """A message that no wrong answer gets is unproved; those without a predicate are proved by their own edit."""
    for exercise, mistake in MISTAKES:
        # it gets a capital: `x` and ε need none
        assert re.match(r"`|[^\W\d_]{2,}|a |[CH] |\dC |0 |10000 ", mistake.message), mistake.message
        rows = (WRONG | WRONG_VALUES).get(exercise.id, [])
        assert mistake.when is None or any(row[-1] in mistake.message for row in rows), mistake.message


@pytest.mark.parametrize("exercise", EXERCISES, ids=ids)
def test_stub_is_not_attempted_and_solution_is_right(exercise):
    if exercise.function:
        stub, solution = made(exercise, exercise.stub), made(exercise, exercise.solution)
    else:
        stub, solution = ..., exercise.value
    assert judge(exercise, stub).state == NOT_ATTEMPTED
    assert judge(exercise, solution).state == RIGHT


# ------------------------------------------------------------------ slips that every exercise must refuse
def wrapped(change):
    """A function that makes of an exercise the solution with its results changed."""

    def of(exercise):
        solution = made(exercise, exercise.solution)

        def answer(*arguments):
            value = solution(*arguments)
            if isinstance(value, tuple):
                return tuple(map(change, value))
            return change(value)

        return answer

    return of


def in_arrays(change):
    """``change`` for each array of a result that is a list or a tuple."""
    return lambda v: type(v)(map(in_arrays(change), v)) if isinstance(v, (list, tuple)) else change(v)


def parts(value):
    return [p for part in value for p in parts(part)] if isinstance(value, (tuple, list)) else [value]


def has_arrays(value, kind=object):
    return any(isinstance(part, np.ndarray) and (kind is object or part.dtype == kind) for part in parts(value))


ARRAYS = [e for e in WRITTEN if has_arrays(e.right(*e.cases()[0]))]  # others give a number, or words
SINGLE = [e for e in ARRAYS if any(has_arrays(e.right(*case), np.float32) for case in e.cases())]


@pytest.mark.parametrize("exercise", ARRAYS, ids=ids)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: v[None] if isinstance(v, np.ndarray) else v, "has shape"),
        (lambda v: np.squeeze(v)[..., None] if isinstance(v, np.ndarray) else v, "has shape"),
        (lambda v: v.astype("float16") if isinstance(v, np.ndarray) else v, "is float16"),
        (lambda v: v.tolist() if isinstance(v, np.ndarray) else v, "got a list for"),
        (lambda v: torch.tensor(v) if isinstance(v, np.ndarray) else v, "got a torch.Tensor"),
        (lambda v: None if isinstance(v, np.ndarray) else v, "None"),
    ],
    ids=["extra axis", "axis behind", "dtype", "list", "torch", "none"],
)
def test_right_values_in_the_wrong_form_are_refused(exercise, change, words):
    verdict = judge(exercise, wrapped(in_arrays(change))(exercise))
    assert verdict.state == NOT_YET and words in verdict.problem


@pytest.mark.parametrize("exercise", SINGLE, ids=ids)
def test_float64_for_float32_is_refused(exercise):
    verdict = judge(exercise, wrapped(in_arrays(lambda v: np.float64(v) if np.ndim(v) else v))(exercise))
    assert verdict.state == NOT_YET and "is float64, expected float32" in verdict.problem


@pytest.mark.parametrize("exercise", [e for e in ARRAYS if has_arrays(e.cases()[0][:1])], ids=ids)
def test_in_place_edits_are_refused(exercise):
    solution = made(exercise, exercise.solution)

    def answer(*arguments):
        value = solution(*arguments)
        value = [v.copy() for v in value] if isinstance(value, list) else value
        first = arguments[0][0] if isinstance(arguments[0], list) else arguments[0]
        first += 1
        return value

    verdict = judge(exercise, answer)
    assert verdict.state == NOT_YET and "changes its input in place" in verdict.problem


@pytest.mark.parametrize("exercise", MENDED, ids=ids)
def test_the_loss_of_a_broken_one_falls_and_its_property_fails(exercise):
    stub = made(exercise, exercise.stub)
    problem, likely = exercise.examine(stub)
    first, last = map(float, re.search(r"falls from ([\d.]+) to ([\d.]+), and yet", problem).groups())
    assert last < 0.8 * first and likely
    assert exercise.examine(made(exercise, exercise.solution)) is None


FORWARDS = [e for e in MENDED if e.solution.startswith("def") and "(self, x)" in e.solution]


@pytest.mark.parametrize("exercise", FORWARDS, ids=ids)
@pytest.mark.parametrize(
    "change",
    [
        lambda forward: lambda self, x: Tensor(forward(self, x).detach().numpy()),
        lambda forward: lambda self, x: Tensor(forward(self, x).data, requires_grad=True),
        lambda forward: lambda self, x: forward(self, Tensor(x.data)),
        lambda forward: lambda self, x: forward(self, Tensor(x.data / 2) + x / 2),
    ],
    ids=["result rebuilt", "result a new leaf", "input rebuilt", "half of the input rebuilt"],
)
def test_a_gradient_that_is_cut_is_refused(exercise, change):
    assert len(FORWARDS) == 4
    verdict = judge(exercise, change(made(exercise, exercise.solution)))
    assert verdict.state == NOT_YET and "gradient" in verdict.problem
    assert "stay with Tensors" in verdict.likely


# ------------------------------------------------------------------ both tracks, and calls of the library
@pytest.mark.parametrize("key", TORCH)
def test_answers_in_pytorch(key):
    exercise = find(key)
    answer = made(exercise, TORCH[key] or exercise.solution)
    assert judge(exercise, answer, track="torch").state == RIGHT
    arrays = in_arrays(lambda value: value.numpy())
    verdict = judge(exercise, lambda *a: arrays(answer(*a)), track="torch")
    assert verdict.state == NOT_YET and "expected a torch.Tensor" in verdict.problem


@pytest.mark.parametrize("key", ["02.3", "04.1", "06.1", "06.2", "09.3", "10.3"])
def test_answers_with_the_courses_tensors(key):
    exercise = find(key)
    assert judge(exercise, made(exercise, exercise.solution), track="numpy").state == RIGHT


LIBRARY = [
    (
        "03.1",
        "array",
        "from torch.nn.functional import softmax as f\nsoftmax = lambda x: f(torch.from_numpy(x), -1).numpy()",
    ),
    ("03.1", "torch", "softmax = lambda x: x.softmax(-1)"),
    ("03.1", "torch", "softmax = lambda x: getattr(torch, 'soft' + 'max')(x, -1)"),
    ("03.1", "array", "Tensor = Tensor\nsoftmax = lambda x: F.softmax(Tensor(x)).data"),
    ("05.1", "array", "causal_mask = F.causal_mask"),
    ("06.2", "array", "merge_stack = lambda heads: (lambda: F.merge_heads(heads.swapaxes(0, 1)))()"),
    (
        "07.1",
        "torch",
        "def group_layer_norm(x, groups, gain, bias, eps):\n    x = x.unflatten(-1, (groups, -1))\n"
        "    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=eps).flatten(-2) * gain + bias",
    ),
    (
        "07.1",
        "torch",
        "def group_layer_norm(x, groups, *how):\n    rows = x.reshape(-1, x.shape[-1])\n"
        "    return torch.nn.functional.group_norm(rows, groups, *how).reshape(x.shape)",
    ),
    (
        "07.2",
        "array",
        "def layer_norm_backward(x, gain, grad):\n    of = [Parameter(a) for a in (x, gain, 0 * gain)]\n"
        "    F.layer_norm(of[0], gain.shape, *of[1:]).backward(grad)\n    return [a.grad for a in of]",
    ),
    (
        "11.3",
        "array",
        "def clip_by_norm(grads, limit):\n    ps = [Parameter(g) for g in grads]\n    for p, g in zip(ps, grads):\n"
        "        p.grad = g.copy()\n    norm = clip_grad_norm_(ps, limit)\n    return [p.grad for p in ps], norm",
    ),
    ("02.2", "torch", "unbroadcast = lambda grad, shape: grad.sum_to_size(shape)"),
    (
        "14.2",
        "torch",
        "def cross_attention(x, memory, Q, K, V):\n    f = torch.nn.functional.scaled_dot_product_attention\n"
        "    return f(x @ Q, memory @ K, memory @ V), None",
    ),
    ("09.1", "array", "num_parameters = lambda V, T, C, L: GPT(C17(V, T, C, 1, L)).num_parameters()"),
]


@pytest.mark.parametrize(("key", "track", "text"), LIBRARY)
def test_a_call_of_the_library_is_no_answer(key, track, text):
    exercise = find(key)
    answer = made(exercise, "from course_lib.common.config import GPTConfig as C17\n" + text)
    verdict = judge(exercise, answer, track)
    assert verdict.state == NOT_YET and verdict.problem.startswith("It calls ")


def test_a_helper_of_ones_own_may_have_any_name():
    text = (
        "def softmax(x):\n    return log_softmax(x)\n\n\ndef log_softmax(x):\n    "
        + find("03.1").solution.split("\n", 2)[2].strip()
    )
    assert judge(find("03.1"), made(find("03.1"), text)).state == RIGHT


# ------------------------------------------------------------------ one place changed: still right?
SWAP = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def mutants(text):
    """(what was changed, the text with just that changed) for each operator, number, truth value, call and return."""
    for place, node in enumerate(ast.walk(ast.parse(text))):
        tree = ast.parse(text)
        node = list(ast.walk(tree))[place]
        before = ast.unparse(node) if isinstance(node, (ast.expr, ast.stmt)) else ""
        if isinstance(node, ast.BinOp) and type(node.op) in SWAP:
            node.op = SWAP[type(node.op)]()
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAP:
            node.ops[0] = SWAP[type(node.ops[0])]()
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            node.value = not node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            node.value += 1
        elif isinstance(node, ast.Return):
            node.value = None
        else:
            continue
        yield f"{before} -> {ast.unparse(node)}", ast.unparse(ast.fix_missing_locations(tree))


SAME = {  # mutants that compute the same
    "02.1": {"1 -> 2"},  # reshape(-2, n) is reshape(-1, n)
    "05.3": {"0 -> 1", "1000000000.0 -> 1000000001.0"},  # softmax does not see what all scores have in common
    "11.2": {"step < warmup -> step <= warmup", "step >= total -> step > total"},  # both parts meet there
}


@pytest.mark.parametrize("exercise", WRITTEN + MENDED, ids=ids)
def test_no_mutant_of_a_solution_is_accepted(exercise):
    accepted = {
        what for what, text in mutants(exercise.solution) if judge(exercise, made(exercise, text)).state == RIGHT
    }
    assert accepted - SAME.get(exercise.id, set()) == set()
