"""The verdict on an answer: right, not yet (what it is, what was expected, the likely mistake), or not attempted."""

import inspect
import re
import warnings
from dataclasses import dataclass, replace

import numpy as np

from . import compare, watch, words
from .answers import not_numbers, wrong_value
from .exercise import NOT_ATTEMPTED, NOT_YET, RIGHT


@dataclass(frozen=True)
class Verdict:
    """The ``state`` RIGHT, NOT_YET or NOT_ATTEMPTED; the ``problem``, got and expected; ``where``, for which arguments;
    ``likely``, what the mistake probably is.
    """

    state: str
    problem: str = ""
    where: str = ""
    likely: str = ""


_running = []  # the exercise whose answer is being judged


def judge(exercise, answer, track="array"):
    """Return the Verdict on ``answer``, a function or a value. Only a stop by the learner gets through."""
    if _running:
        return Verdict(NOT_YET, "an answer cannot be checked inside itself")  # without an end
    _running.append(exercise)
    try:
        with watch.Guard() as guard, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the verdict says it better
            return _judge(exercise, answer, track)
    finally:
        _running.clear()
    return Verdict(NOT_YET, f"the answer cannot be judged: looking at it ends in {type(guard.error).__name__}")


def _judge(exercise, answer, track):
    if watch.untouched(answer):
        return Verdict(NOT_ATTEMPTED)
    if exercise.function is None:
        return _judge_value(exercise, answer)
    if not callable(answer):
        call = f'check("{exercise.id}", {exercise.name})'
        return Verdict(NOT_YET, f"got {words.kind(answer)}, expected the function itself: {call}")
    if exercise.broken and watch.same_code(answer, exercise.stub):
        return Verdict(NOT_ATTEMPTED)
    if exercise.examine:
        return _examined(exercise, answer)
    return _judge_cases(exercise, answer, track)


def _judge_value(exercise, answer):
    with watch.Guard() as guard:
        problem = wrong_value(answer, exercise.value, exercise.digits)
    if guard.error:
        problem = f"This {type(answer).__name__} cannot be compared ({type(guard.error).__name__})."
    if not problem:
        return Verdict(RIGHT)
    if not_numbers(answer):  # such an answer says nothing about what was thought
        return Verdict(NOT_YET, problem)
    likely = next((m.message for m in exercise.mistakes if _is_value_of(m, answer, exercise)), "")
    return Verdict(NOT_YET, problem.rstrip("."), likely=likely)


def _is_value_of(mistake, answer, exercise):
    """Return True if whoever makes this mistake, perhaps with another, would give this answer to a question."""
    try:
        if mistake.when is not None and mistake.when(answer, exercise.value, ()):
            return True
        values = (
            (exercise.wrong_value(mistake, other) for other in exercise.mistakes) if mistake.value is not None else ()
        )
        return any(not wrong_value(answer, value, exercise.digits) for value in values)
    except Exception:  # an answer may be anything
        return False


def _examined(exercise, answer):
    """Return the verdict of the exercise's own examination."""
    calls = watch.Calls(exercise.forbids)
    outcome = watch.call(lambda: exercise.examine(calls.during(answer)), ())
    if calls.seen:
        return Verdict(NOT_YET, _calls(calls.seen))
    if outcome.error:
        return Verdict(NOT_YET, watch.describe(outcome.error, answer), likely=_why_error(exercise, outcome.error))
    if watch.untouched(outcome.value):
        return Verdict(NOT_ATTEMPTED)
    if outcome.value is None:
        return Verdict(RIGHT)
    problem, likely = outcome.value if isinstance(outcome.value, tuple) else (outcome.value, "")
    return Verdict(NOT_YET, problem, likely=likely)


def _why_error(exercise, error):
    """Return the message of the first mistake that recognises this exception; "" if none does."""
    return next((m.message for m in exercise.mistakes if _holds(m, error, None, ())), "")


def _holds(mistake, got, want, case):
    """Return True if the predicate of this mistake recognises the outcome."""
    try:
        return mistake.when is not None and bool(mistake.when(got, want, case))
    except Exception:  # a predicate need not be ready for every kind of value
        return False


@dataclass(frozen=True, eq=False)
class _Trial:
    """One case, tried: what came and was wanted, the ``problem`` ("" if it is right), and why, where known."""

    case: tuple
    outcome: watch.Outcome
    want: object
    problem: str
    likely: str | None  # None: to be found out

    @property
    def values_right(self):
        """True if nothing but the type or dtype can be wrong."""
        return not self.problem or (not self.outcome.error and compare.same(self.outcome.value, self.want, self.want))


def _judge_cases(exercise, answer, track):
    """Try all cases, and two calls in a row. What is said is about the first case that fails."""
    names = list(inspect.signature(exercise.function).parameters)
    trials, cases = [], [*exercise.cases(), *exercise.drawn_cases()]
    other = _other_numbers(exercise, cases)
    for case in [*cases, *(turned for _, turned in other)]:
        trials.append(_try_case(exercise, answer, case, track, names))
        outcome = trials[0].outcome
        if isinstance(outcome.error, NotImplementedError):
            return Verdict(NOT_ATTEMPTED)
        if outcome.error is None and (outcome.value is None or watch.untouched(outcome.value)) and watch.empty(answer):
            return Verdict(NOT_ATTEMPTED)
    failed = next((trial for trial in trials if trial.problem), None)
    if failed is None:
        failed = _tried_again(exercise, answer, trials, track, names)
    if failed is None:
        return Verdict(RIGHT)
    likely = _likely(exercise, trials, failed) if failed.likely is None else failed.likely
    for (i, _), trial in zip(other, trials[len(cases) :]):
        if trial is failed and compare.same(trial.outcome.value, trials[i].outcome.value):
            likely = watch.LEFT_OVER
    return Verdict(NOT_YET, failed.problem, ", ".join(map(words.brief, names, failed.case)), likely)


def _other_numbers(exercise, cases):
    """Return pairs (the index of a case, this case with one argument turned round), for each array and list.

    It is the first case that has another right result then: what remembers shapes, or all arguments but one, is found.
    """
    pairs = []
    for j in range(max(map(len, cases))):
        for i, case in enumerate(cases):
            turned = (*case[:j], *map(_turned, case[j : j + 1]), *case[j + 1 :])
            if all(map(watch.unchanged, case, turned)):
                continue
            if not compare.same(exercise.right(*case), exercise.right(*turned)):
                pairs.append((i, turned))
                break
    return pairs


def _turned(argument):
    """Return an array, or each of a list of arrays, with all axes turned round; so a list; anything else as it is."""
    if isinstance(argument, np.ndarray):
        return np.flip(argument).copy()
    if isinstance(argument, list):
        return list(map(_turned, argument)) if any(map(np.ndim, argument)) else argument[::-1]
    return argument


def _try_case(exercise, answer, case, track, names):
    outcome = watch.call(answer, compare.convert(case, track), exercise.forbids)
    want = exercise.right(*case)
    problem, likely = _problem(outcome, want, answer, case, track, names)
    if exercise.zeros and not problem:
        problem = compare.not_zero(outcome.value, want)
    return _Trial(case, outcome, want, problem or "", likely)


def _problem(outcome, want, answer, case, track, names):
    """Return (what is wrong, why), ``why`` being None where the exercise's mistakes may know it."""
    if outcome.called:
        return _calls(outcome.called), ""
    if outcome.changed:
        changed = " and ".join(names[i] for i in outcome.changed)
        lists = any(not np.ndim(v) for i in outcome.changed if isinstance(case[i], list) for v in case[i] or [0])
        how = "append, pop, del and x[i] = change the caller's list" if lists else _WRITES
        return f"The function changes its input in place: {changed}", f"{how}: make a new one"
    if isinstance(want, Exception):
        return _other_error(outcome, want, answer), None
    if outcome.error:
        return watch.describe(outcome.error, answer), None
    if outcome.value is None:
        why = "what is behind a `return` is None, or there is a way without `return`"
        return "it returned None", why if watch.returns(answer) else "the `return` is missing"
    if watch.untouched(outcome.value):
        return "it returned `...`", "the line `return ...` of the stub is still there"
    with watch.Guard() as guard:
        likes = words.float_input(names, case)
        return compare.difference(outcome.value, want, track, like=likes, by=watch.numpy_names(answer)), None
    return f"got {words.kind(outcome.value)}, which cannot be compared ({type(guard.error).__name__})", ""


def _calls(names):
    return f"It calls {', '.join(sorted(names))}, which is what you are asked to write"


_WRITES = "-=, x[...] =, out=x and methods like x.sort() change the caller's array"


def _tried_again(exercise, answer, trials, track, names):
    """Return a failed trial if a second call changes a result, or gives another one; None if all is well."""
    again = _try_case(exercise, answer, trials[0].case, track, names)
    if again.problem:
        problem = f"called again with the same arguments, it gives something else: {again.problem}"
        return replace(again, problem=problem, likely=watch.LEFT_OVER)
    for trial in trials:
        if trial.outcome.error is None and compare.difference(trial.outcome.value, trial.want, track):
            return replace(trial, problem="a result changes when the function is called again", likely=watch.ONE_ARRAY)
    return None


def _other_error(outcome, want, answer):
    """Return what is wrong where an error of the type of ``want`` is expected, with certain words; None if it came."""
    name = type(want).__name__
    if outcome.error is None:
        if isinstance(outcome.value, type(want)):
            return f"a {name} was returned, not raised: write raise in place of return"
        return f"got {words.kind(outcome.value)}, expected a {name}: there is no right answer here"
    if not isinstance(outcome.error, type(want)):
        return f"{watch.describe(outcome.error, answer)}; expected a {name}"
    said = str(outcome.error)
    missing = [word for word in want.args if not re.search(rf"(?<!\d){re.escape(word)}(?!\d)", said)]
    if missing:
        return f"the message of your {name} does not name {' and '.join(missing)}: “{outcome.error}”"
    return None


def _likely(exercise, trials, failed):
    """Return the message of the first mistake that explains every case, the right ones, too; "" if none does.

    Where nothing but a type or dtype is wrong, nobody has made one.
    """
    wrong = [trial for trial in trials if not trial.values_right]
    if failed not in wrong:
        return ""
    for mistake in exercise.mistakes:
        if all(_holds(mistake, trial.outcome.error or trial.outcome.value, trial.want, trial.case) for trial in wrong):
            return mistake.message
        if mistake.old:
            function = exercise.wrong(mistake)
            if all(_explains(function, trial) for trial in trials):
                return mistake.message
    return ""


def _explains(function, trial):
    """Return True if this function does in this case what the answer does."""
    theirs = watch.call(function, trial.case)
    if trial.values_right:
        if isinstance(trial.want, Exception):
            return _other_error(theirs, trial.want, function) is None
        return not theirs.error and compare.same(theirs.value, trial.want, trial.want)
    if trial.outcome.error or theirs.error:
        return repr(trial.outcome.error) == repr(theirs.error)  # the same words, and so the same shapes
    return compare.same(trial.outcome.value, theirs.value, trial.want)
