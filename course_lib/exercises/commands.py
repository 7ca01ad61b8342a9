"""What a learner types: ``check``, ``hint``, ``solution`` and ``progress``."""

from . import store
from .answers import check_value
from .exercise import every, find
from .judge import NOT_ATTEMPTED, RIGHT, judge
from .show import folded_page, note_page, show, table_page, verdict_page

_NOT_GIVEN = object()
TRACKS = ("array", "numpy", "torch")
_steps = {}  # id -> how many hints this kernel has shown


def check(name, answer, right=_NOT_GIVEN, hint="", digits=3, *, track="array"):
    """Say whether an answer is right, and if not, what came, what was expected and what the mistake probably is.

    ``check("05.1", split_heads)`` judges the answer to an exercise, a function or a value, and notes the progress. With
    ``track="torch"`` (or "numpy") the function gets tensors of that track instead of NumPy arrays. Shows the verdict.

    ``check("sum", 4, 3, hint="add")`` compares a value with the right one, as ``check_value`` of ``answers.py`` does.

    Raises LookupError for an exercise that does not exist, ValueError for a track that does not; never for an answer.
    """
    if right is not _NOT_GIVEN:
        return check_value(name, answer, right, hint, digits)
    exercise = find(name)
    if track not in TRACKS:
        raise ValueError(f"track must be one of {', '.join(TRACKS)}; not {track!r}")
    verdict = judge(exercise, answer, track)
    show(verdict_page(exercise, verdict))
    if verdict.state != NOT_ATTEMPTED:
        store.note(exercise.id, verdict.state == RIGHT)
    return None


def hint(id, step=None):
    """Show a hint to an exercise: each call goes one step further; ``step`` (1, 2, …) shows that one again."""
    exercise = find(id)
    hints = exercise.hints
    if step is None:
        step = _steps[id] = min(_steps.get(id, 0) + 1, len(hints) + 1)
    if not 1 <= step <= len(hints):
        show(note_page(f'{id}: these were all {len(hints)} hints. solution("{id}") shows one way to do it.'))
    else:
        show(note_page(f"{id}, hint {step} of {len(hints)}: {hints[step - 1]}"))


def solution(id):
    """Show one way to solve an exercise, folded: the summary opens by click, Enter or space."""
    exercise = find(id)
    show(folded_page(f"Solution of {exercise.id} {exercise.title}", exercise.solution, code=bool(exercise.function)))


def progress():
    """Show a table of all exercises: which are done in this folder, which were tried."""
    states = store.load()
    exercises = every()
    rows = [(e.id, e.title, e.minutes, e.difficulty, states.get(e.id, "-")) for e in exercises]
    done = sum(states.get(e.id) == store.DONE for e in exercises)
    caption = f"{done} of {len(exercises)} exercises done in this folder"
    show(table_page(caption, ("exercise", "title", "minutes", "difficulty", "state"), rows))
