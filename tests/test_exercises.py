"""check() tells right from wrong and from untouched, and never raises, whatever an answer may be."""

import numpy as np
import pytest
from track_tools import both_tracks

from course_lib.exercises import check, every
from course_lib.exercises.judge import judge


@both_tracks
def test_tensors_with_a_gradient_are_compared(track, capsys):
    answer = track.leaf([1.0, 2.0])
    assert check("t", answer, [1, 2]) is True
    assert check("t", answer * 2, [1, 2], hint="half of it") is False
    assert check("t", [2, 4], answer * 2) is True
    assert capsys.readouterr().out.splitlines()[1].endswith("Hint: half of it")


@pytest.mark.parametrize(("answer", "right"), [(np.nan, True), (0, False)])
def test_nan_can_be_the_right_answer(answer, right, capsys):
    assert check("nan", [1, answer], [1, np.nan]) is right
    assert check("number", [1, np.nan], [1, 2]) is False


def test_infinity_can_be_the_right_answer():
    assert check("inf", [1, np.inf], [1, np.inf]) is True
    assert check("inf", [1, -np.inf], [1, np.inf]) is False


class Spiteful:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no")

    def __str__(self):
        raise RuntimeError("no")


class SilentArray(Spiteful):
    def __array__(self, dtype=None, copy=None):
        return np.zeros((), dtype)


@pytest.mark.parametrize(
    "answer",
    [10**400, -(10**5000), Spiteful(), SilentArray(), "three", [[1], [1, 2]], {}, 1j, len, None, [None], np.zeros(0)],
    ids=lambda answer: type(answer).__name__,
)
def test_nothing_raises(answer, capsys):
    assert check("odd", answer, 3, hint="count") is False
    out = capsys.readouterr().out
    assert out.startswith("odd: not yet. ") and out.endswith(" Hint: count\n")


def test_an_untouched_answer_is_no_wrong_answer(capsys):
    assert check("later", ..., 3) is None
    assert capsys.readouterr().out == "later: not attempted yet\n"


@pytest.mark.parametrize(("answer", "right"), [(1.0004, True), (1.0006, False), (True, True)])
def test_three_decimals_count(answer, right, capsys):
    assert check("close", answer, 1) is right


LISTS = [e for e in every() if isinstance(e.value, list)]


@pytest.mark.parametrize("exercise", LISTS, ids=lambda e: e.id)
def test_a_list_of_another_length_does_not_hear_how_long_the_right_one_is(exercise):
    for answer in (exercise.value[:-1], [*exercise.value, 0], [[0], [0, 1]]):
        assert judge(exercise, answer).problem == f"You say {answer}"
    assert judge(exercise, 3).problem == "You say 3, but a list is expected"
    assert judge(exercise, {3}).problem == "You gave a set, but a list is expected"


def test_what_came_is_said_without_the_right_shape(capsys):
    check("shape", (2, 3), (2, 3, 4))
    check("number", [2, 3], 5)
    check("array", np.zeros(2), np.zeros((2, 2)))
    assert capsys.readouterr().out.splitlines() == [
        "shape: not yet. You say (2, 3). Hint: ",
        "number: not yet. You say [2, 3], but one number is expected. Hint: ",
        "array: not yet. Your array has shape (2,), but (2, 2) is expected. Hint: ",
    ]
