"""The verdict on an answer: right, not yet (what came, what was expected, the likely mistake), or not attempted."""

import inspect
import warnings
from dataclasses import dataclass

import numpy as np

from . import compare, watch, words
from .answers import _problem, not_numbers

RIGHT, NOT_YET, NOT_ATTEMPTED = "right", "not yet", "not attempted yet"


@dataclass(frozen=True)
class Verdict:
    """``state`` is one of the three words above; ``problem`` says what came and what was expected, ``where`` for which
    arguments, ``likely`` what the mistake probably is."""

    state: str
    problem: str = ""
    where: str = ""
    likely: str = ""


def judge(exercise, answer, track="array"):
    """The Verdict on ``answer``, a function or a value. Never raises, whatever the answer is."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a verdict says it better
        return _judge(exercise, answer, track)


def _judge(exercise, answer, track):
    if watch.untouched(answer):
        return Verdict(NOT_ATTEMPTED)
    if exercise.function is None:
        return _judge_value(exercise, answer)
    if not callable(answer):
        call = f'check("{exercise.id}", {exercise.name})'
        return Verdict(NOT_YET, f"{words.kind(answer)} came, and the function itself is expected: {call}")
    if exercise.broken:
        return _judge_mended(exercise, answer)
    if exercise.examine:
        return _examined(exercise, answer)
    for case in exercise.cases():
        verdict = _judge_case(exercise, answer, compare.convert(case, track), case, track)
        if verdict.state != RIGHT:
            return verdict
    return Verdict(RIGHT)


def _judge_value(exercise, answer):
    try:
        problem = _problem(answer, exercise.value, exercise.digits)
    except Exception as error:
        problem = f"This {type(answer).__name__} cannot be compared ({type(error).__name__})."
    if not problem:
        return Verdict(RIGHT)
    if not_numbers(answer):  # such an answer says nothing about what was thought
        return Verdict(NOT_YET, problem)
    likely = next((m.message for m in exercise.mistakes if _is_value_of(m, answer, exercise)), "")
    return Verdict(NOT_YET, problem.rstrip("."), likely=likely)


def _is_value_of(mistake, answer, exercise):
    """Whether whoever makes this mistake would give this answer to a question."""
    try:
        if mistake.when is not None and mistake.when(answer, exercise.value, ()):
            return True
        return mistake.wrong is not None and not _problem(answer, mistake.wrong, exercise.digits)
    except Exception:  # an answer may be anything
        return False


def _judge_mended(exercise, answer):
    if watch.same_code(answer, exercise.stub):
        return Verdict(NOT_ATTEMPTED)
    return _examined(exercise, answer)


def _examined(exercise, answer):
    """The verdict of the exercise's own examination."""
    outcome = watch.call(lambda: exercise.examine(answer), ())
    if outcome.error:
        return Verdict(NOT_YET, watch.describe(outcome.error, answer), likely=_why_error(exercise, outcome.error))
    if watch.untouched(outcome.value):
        return Verdict(NOT_ATTEMPTED)
    if outcome.value is None:
        return Verdict(RIGHT)
    problem, likely = outcome.value if isinstance(outcome.value, tuple) else (outcome.value, "")
    return Verdict(NOT_YET, problem, likely=likely)


def _why_error(exercise, error):
    """The message of the first mistake that recognises this exception; empty if none does."""
    for mistake in exercise.mistakes:
        try:
            if mistake.when is not None and mistake.when(error, None, ()):
                return mistake.message
        except Exception:  # a predicate need not be ready for an exception
            continue
    return ""


def _judge_case(exercise, answer, arguments, case, track):
    outcome = watch.call(answer, arguments, exercise.forbids)
    if isinstance(outcome.error, NotImplementedError) or watch.untouched(outcome.value):
        return Verdict(NOT_ATTEMPTED)
    if outcome.value is None and outcome.error is None and watch.empty(answer):
        return Verdict(NOT_ATTEMPTED)
    names = list(inspect.signature(exercise.function).parameters)
    where = ", ".join(map(words.brief, names, case))
    if outcome.called:
        used = ", ".join(outcome.called)
        return Verdict(NOT_YET, f"It calls {used}, and that is what you are asked to write", where)
    if outcome.changed:
        changed = " and ".join(names[i] for i in outcome.changed)
        likely = "operators like -= and *=, and x[...] = write into the array of the caller: make a new one"
        return Verdict(NOT_YET, f"The function changes its input in place: {changed}", where, likely)
    want = exercise.right(*case)
    if isinstance(want, Exception):
        problem = _other_error(outcome, want, answer)
    elif outcome.error:
        problem = watch.describe(outcome.error, answer)
    elif outcome.value is None:
        return Verdict(NOT_YET, "None came back", where, "the `return` is missing")
    else:
        try:
            problem = compare.difference(outcome.value, want, track, like=words.float_input(names, case))
        except Exception as error:  # whatever the value may be
            problem = f"{words.kind(outcome.value)} came, which cannot be compared ({type(error).__name__})"
    if problem is None:
        return Verdict(RIGHT)
    return Verdict(NOT_YET, problem, where, _likely(exercise, outcome, want, case))


def _other_error(outcome, want, answer):
    """What is wrong where an error of the type of ``want`` should come, with certain words; None when it came."""
    name = type(want).__name__
    if outcome.error is None:
        return f"{words.kind(outcome.value)} came back, and a {name} is expected: there is no right answer here"
    if not isinstance(outcome.error, type(want)):
        return f"{watch.describe(outcome.error, answer)}; a {name} is expected"
    missing = [word for word in want.args if word not in str(outcome.error)]
    if missing:
        return f"the message of your {name} does not name {' and '.join(missing)}: “{outcome.error}”"
    return None


def _likely(exercise, outcome, want, case):
    """The message of the first mistake that gives the same outcome for this case; empty if none does."""
    for mistake in exercise.mistakes:
        try:
            if mistake.when is not None and mistake.when(outcome.error or outcome.value, want, case):
                return mistake.message
        except Exception:  # a predicate need not be ready for every kind of value
            continue
        if mistake.wrong is not None:
            theirs = watch.call(mistake.wrong, case)
            if outcome.error or theirs.error:
                if repr(outcome.error) == repr(theirs.error):  # the same words, and so the same shapes
                    return mistake.message
            elif compare.same(outcome.value, theirs.value) and not compare.same(theirs.value, want):
                return mistake.message
    return ""
