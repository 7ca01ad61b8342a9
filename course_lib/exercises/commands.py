"""The commands of a learner: ``check``, ``hint``, ``solution`` and ``progress``."""

from . import store
from .answers import check_value
from .exercise import NOT_ATTEMPTED, RIGHT, every, find
from .judge import judge
from .show import folded_page, note_page, show, table_page, verdict_page

_NOT_GIVEN = object()
TRACKS = ("array", "numpy", "torch")
SIGNS = {store.DONE: "✓", store.TRIED: "✗"}
_steps = {}  # id -> how many hints this kernel has shown


def check(name, answer=_NOT_GIVEN, right=_NOT_GIVEN, hint="", digits=3, *, track="array"):
    """Say whether an answer is right, and if not, what was expected and what the mistake probably is.

    ``check("06.1", split_qkv)`` judges the answer to an exercise, a function or a value, shows the verdict and
    records the progress. With ``track="torch"`` (or "numpy") the function gets tensors of that track, not arrays.

    ``check("sum", 4, 3, hint="add")`` compares a value with the right one, as ``check_value`` of ``answers.py`` does.

    An unknown exercise gets a sentence, too. Raises ValueError if the track is unknown, never because of an answer;
    a stop by the learner (Ctrl-C) gets through.
    """
    if right is not _NOT_GIVEN:
        return check_value(name, answer, right, hint, digits)
    exercise = _found(name, answer)
    if exercise is None:
        return None
    if track not in TRACKS:
        raise ValueError(f"track must be one of {', '.join(TRACKS)}; not {track!r}")
    verdict = judge(exercise, answer, track)
    show(verdict_page(exercise, verdict))
    if verdict.state != NOT_ATTEMPTED:
        _tell(store.note(exercise.id, verdict.state == RIGHT))
    return None


def _tell(problem):
    """Show a sentence about the progress file; nothing if there is none."""
    if problem:
        show(note_page(problem))


def _found(id, answer=...):
    """Return the exercise with this id; if it or the answer is missing, show a sentence and return None."""
    if not isinstance(id, (str, int, float)) or _is_exercise(answer):
        name = getattr(id, "__name__", "answer")
        meant = answer if _is_exercise(answer) else next((e.id for e in every() if e.name == name), "06.1")
        show(note_page(f'The exercise comes first, in quotes, and then the answer: check("{meant}", {name}).'))
        return None
    try:
        exercise = find(id)
    except LookupError as error:
        sentence = str(error.args[0])
        show(note_page(sentence[0].upper() + sentence[1:] + ("" if sentence.endswith("?") else ".")))
        return None
    if answer is _NOT_GIVEN:
        show(note_page(f'The answer is missing: check("{exercise.id}", {exercise.name}).'))
        return None
    return exercise


def _is_exercise(value):
    return issubclass(type(value), str) and any(value == e.id for e in every(value[:2]))


def hint(id, step=None):
    """Show a hint to an exercise: each call goes one step further; ``step`` (1, 2, …) shows that one again."""
    exercise = _found(id)
    if exercise is None:
        return
    hints = exercise.hints
    if step is None:
        step = _steps[id] = min(_steps.get(id, 0) + 1, len(hints) + 1)
    elif step not in range(1, len(hints) + 1):
        show(
            note_page(f'{id}: the hints are numbered from 1 to {len(hints)}, as in hint("{id}", 1); {step!r} is none.')
        )
        return
    if step > len(hints):
        show(note_page(f'{id}: those were all {len(hints)} hints. solution("{id}") shows one way to do it.'))
    else:
        show(note_page(f"{id}, hint {step} of {len(hints)}: {hints[step - 1]}"))


def solution(id):
    """Show one way to solve an exercise, folded: the summary opens by click, Enter or space."""
    exercise = _found(id)
    if exercise is None:
        return
    show(folded_page(f"Solution of {exercise.id} {exercise.title}", exercise.solution, code=bool(exercise.function)))


def progress():
    """Show a map of all exercises, a line per notebook: what is done in this folder, what was tried, what is next."""
    states, problem = store.load()
    _tell(problem)
    exercises, rows = every(), []
    for number in sorted({e.id[:2] for e in exercises}):
        mine = [e for e in exercises if e.id.startswith(number)]
        left = [e for e in mine if states.get(e.id) != store.DONE]
        signs = " ".join(SIGNS.get(states.get(e.id), "·") for e in mine)
        following = f"{left[0].id} {left[0].title} ({left[0].minutes} minutes)" if left else "all done"
        rows.append((number, signs, f"{len(mine) - len(left)} of {len(mine)}", following))
    done = sum(states.get(e.id) == store.DONE for e in exercises)
    caption = f"{done} of {len(exercises)} exercises done in this folder (✓ done, ✗ tried, · not yet)"
    show(table_page(caption, ("notebook", "exercises", "done", "next"), rows))
