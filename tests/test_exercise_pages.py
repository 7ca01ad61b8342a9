"""What learners see: check, hint, solution and progress as text and as HTML; and that nothing raises."""

import inspect
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from course_lib import exercises
from course_lib.exercises import Exercise, Mistake, check, commands, every, find, hint, progress, solution
from course_lib.exercises.exercise import NOT_ATTEMPTED, NOT_YET, RIGHT
from course_lib.exercises.judge import Verdict, judge
from course_lib.exercises.show import verdict_page
from course_lib.exercises.words import two_numbers


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(commands, "_steps", {})
    return tmp_path


def bare_reshape(x, heads):
    return x.reshape(x.shape[0], heads, x.shape[1], -1)


def heads_forward(self, x):
    return x


def test_a_wrong_answer_says_what_came_what_was_expected_where_and_why(capsys):
    assert check("06.1", bare_reshape) is None
    assert capsys.readouterr().out == (
        "06.1 Split into heads: not yet\n"
        "  What happened: The result is 4 at [0, 0, 1, 0], expected 8 (32 of 48 elements differ).\n"
        "  Tried with: x of shape (2, 3, 8), heads = 2\n"
        "  Likely mistake: A bare reshape gives the right shape but mixes the positions: cut first, then swap axes.\n"
        '  Help: hint("06.1") goes one step further each time.\n'
    )


def test_a_right_answer_says_so_and_gives_a_next_thought(capsys):
    exercise = find("06.2")
    check("06.2", lambda x: x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1))
    assert capsys.readouterr().out == f"06.2 Merge the heads again: right\n  Next thought: {exercise.next_thought}\n"


@pytest.mark.parametrize("stub", [..., NotImplemented, lambda x: ..., lambda x: NotImplemented, lambda x: (..., ...)])
def test_an_untouched_stub_is_not_attempted(stub, capsys, folder):
    check("06.2", stub)
    assert capsys.readouterr().out == "06.2 Merge the heads again: not attempted yet\n"
    assert not list(folder.iterdir())


def test_other_kinds_of_stubs():
    def raises(x):
        raise NotImplementedError

    def passes(x):
        """Nothing yet."""

    def forgot(x):
        x.swapaxes(1, 2)

    states = [judge(find("06.2"), f) for f in (raises, passes, forgot)]
    assert [v.state for v in states] == [NOT_ATTEMPTED, NOT_ATTEMPTED, NOT_YET]
    assert states[2].likely == "the `return` is missing"


class Odd:
    """An answer that cannot be looked at."""

    shape, dtype = (3,), "odd"

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no")

    def __len__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __repr__


ODD = [
    3,
    "three",
    None,
    [],
    (),
    {},
    len,
    Odd(),
    Odd,
    np.zeros((0, 3)),
    np.array(["a"]),
    [[1], [1, 2]],
    1j,
    np.nan,
    True,
]


@pytest.mark.parametrize("exercise", every(), ids=lambda e: e.id)
def test_nothing_raises(exercise):
    for value in ODD:
        assert judge(exercise, value).state == NOT_YET, type(value)
        if exercise.function and value is not None:
            assert judge(exercise, lambda *a, value=value: value).state == NOT_YET, type(value)
    assert judge(exercise, lambda: 1).state == NOT_YET  # a function of nothing


def test_an_error_is_reported_in_a_sentence_with_its_line(tmp_path):
    text = "def merge_heads(x):\n    y = x.swapaxes(1, 2)\n    return y.reshap(3)\n"
    file = tmp_path / "cell.py"
    file.write_text(text, encoding="utf-8")
    namespace = {}
    exec(compile(text, str(file), "exec"), namespace)
    problem = judge(find("06.2"), namespace["merge_heads"]).problem
    assert problem.startswith(
        "Your function stopped with AttributeError: 'numpy.ndarray' object has no attribute 'reshap'"
    )
    assert problem.endswith("That was line 3 of the cell: return y.reshap(3)")


@pytest.mark.parametrize("call", [hint, solution, check], ids=lambda call: call.__name__)
@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("06.9", "There is no exercise '06.9'; notebook 06 has 06.1, 06.2, 06.3"),
        ("77.1", "notebooks with exercises: 01, 02"),
        ("6.1", "There is no exercise '6.1'; did you mean \"06.1\"?"),
        (6.1, 'did you mean "06.1"?'),
        (" 06.01", 'did you mean "06.1"?'),
        ("heads", "There is no exercise 'heads'"),
        (True, "There is no exercise True"),
        (heads_forward, 'The exercise comes first, in quotes, and then the answer: check("06.3", heads_forward).'),
        (None, "The exercise comes first"),
        ([64, 3], "The exercise comes first"),
    ],
)
def test_an_unknown_exercise_is_answered_in_a_sentence(call, id, words, capsys):
    call(*[id, ...][: 1 + (call is check)])
    out = capsys.readouterr().out
    assert words in out and out.count("\n") == 1 and not out.endswith("?.\n")


def test_a_check_without_its_answer_or_with_both_exchanged(capsys, folder):
    check("06.1")
    check("06.4")
    check(bare_reshape, "06.1")
    check([64, 3], "06.4")
    check(64, "06.4")
    assert capsys.readouterr().out.splitlines() == [
        'The answer is missing: check("06.1", split_heads).',
        'The answer is missing: check("06.4", answer).',
        'The exercise comes first, in quotes, and then the answer: check("06.1", bare_reshape).',
        *['The exercise comes first, in quotes, and then the answer: check("06.4", answer).'] * 2,
    ]
    assert not list(folder.iterdir())


def test_unknown_exercises_and_tracks_are_the_authors_mistakes():
    with pytest.raises(LookupError, match="notebook 06 has 06.1, 06.2, 06.3"):
        find("06.9")
    with pytest.raises(ValueError, match="'jax'"):
        check("06.1", ..., track="jax")


@pytest.mark.parametrize("step", [0, -1, 4, "1", 1.5])
def test_a_hint_that_is_none(step, capsys):
    hint("06.3", step)
    assert capsys.readouterr().out == (
        f'06.3: the hints are numbered from 1 to 2, as in hint("06.3", 1); {step!r} is none.\n'
    )


@pytest.mark.parametrize(
    ("key", "answer", "words"),
    [
        ("07.5", ["False", "True", "True"], "Write True and False without quotes"),
        ("07.5", ["True", True, True], "Write True and False without quotes"),
        ("07.5", "false", "Write True and False without quotes"),
        ("06.4", ["64", "2359296"], "Write numbers without quotes: “64” is a word"),
        ("09.2", "2.83", "Write numbers without quotes: “2.83” is a word"),
        ("07.5", None, "The answer is None: nothing is filled in yet"),
        ("07.5", [None, None, True], "Not every element of your list is filled in"),
        ("06.4", [..., 5], "Not every element of your list is filled in"),
    ],
)
def test_words_and_gaps_are_no_numbers(key, answer, words):
    verdict = judge(find(key), answer)
    assert (verdict.state, verdict.problem.rstrip("."), verdict.likely) == (NOT_YET, words, "")


def test_an_untouched_list_is_not_attempted():
    assert judge(find("06.4"), [..., ...]).state == NOT_ATTEMPTED


def test_hints_go_step_by_step(capsys):
    hints = find("06.2").hints
    for _ in range(4):
        hint("06.2")
    hint("06.2", 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"06.2, hint 1 of 2: {hints[0]}",
        f"06.2, hint 2 of 2: {hints[1]}",
        *['06.2: those were all 2 hints. solution("06.2") shows one way to do it.'] * 2,
        f"06.2, hint 1 of 2: {hints[0]}",
    ]


def test_solution_is_the_one_that_is_proved(capsys):
    solution("06.2")
    assert capsys.readouterr().out == f"Solution of 06.2 Merge the heads again\n\n{find('06.2').solution}\n"
    solution("09.2")
    assert "ln 17" in capsys.readouterr().out


def test_progress(capsys):
    progress()
    before = capsys.readouterr().out
    assert before.startswith(f"0 of {len(every())} exercises done in this folder (")
    check("06.1", bare_reshape)
    check("09.2", 2.83)
    check("09.2", 1.0)  # once done, done
    capsys.readouterr()
    progress()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 of ")
    assert len(lines) == 18 and len(lines[0]) < 100 and max(map(len, lines)) < 110
    maps = {line[:2]: re.sub(" +", " ", line[2:]).strip() for line in lines[2:]}
    assert maps["06"] == "✗ · · · 0 of 4 06.1 Split into heads (10 minutes)"
    assert maps["09"] == "· ✓ · · 1 of 4 09.1 Count the parameters (15 minutes)"


def test_a_damaged_progress_file_is_reported(capsys, folder):
    for call in (progress, lambda: check("06.1", bare_reshape)):
        (folder / "progress.json").write_text("{", encoding="utf-8")
        call()
        assert "The progress file progress.json was damaged. It is kept as" in capsys.readouterr().out


# ------------------------------------------------------------------ HTML
class Tags(HTMLParser):
    """Collects tags and checks that they are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.found, self.text = [], [], ""
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("state", [RIGHT, NOT_YET, NOT_ATTEMPTED])
def test_a_verdict_is_a_status_in_words(state):
    exercise = Exercise("01.1", "a < b", 1, "easy", (), "think & `go` on")
    page = verdict_page(exercise, Verdict(state, "x <b> `came`", "y = 1", "<script>"))
    tags = Tags(page._repr_html_())
    assert tags.found[0][0] == "div" and tags.found[0][1]["role"] == "status"
    assert f"a < b: {state}" in tags.text  # not by colour alone
    assert {tag for tag, _ in tags.found} <= {"div", "b", "span", "strong", "code"}
    signs = [attributes for tag, attributes in tags.found if tag == "span"]
    assert signs == [{"aria-hidden": "true"}]
    text = re.sub(r"\W+", "", repr(page))
    assert text in re.sub(r"\W+", "", tags.text.replace("…", ""))  # the same words in both


def test_pages_of_the_other_commands_are_accessible(monkeypatch):
    pages = []
    monkeypatch.setattr(commands, "show", pages.append)
    solution("06.2")
    hint("06.2")
    progress()
    folded, note, table = (Tags(page._repr_html_()) for page in pages)
    assert [tag for tag, _ in folded.found] == ["details", "summary", "pre", "code"]
    assert note.found[0][1]["role"] == "status"
    assert ("caption" in dict(table.found)) and {"col", "row"} == {a.get("scope") for t, a in table.found if t == "th"}


def test_in_a_notebook_a_page_is_displayed_as_text_and_html():
    """In IPython as in a kernel: one display with both forms; its text is what a plain terminal prints."""
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance()\n"
        "from IPython.utils.capture import capture_output\n"
        "from course_lib.exercises import check\n"
        "with capture_output() as got:\n"
        "    check('06.2', ...)\n"
        "(page,) = got.outputs\n"
        "assert set(page.data) == {'text/plain', 'text/html'}, page.data\n"
        "assert page.data['text/plain'] == '06.2 Merge the heads again: not attempted yet'\n"
        "assert not got.stdout\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=exercises.__path__[0] + "/../..")


# ------------------------------------------------------------------ questions, words and errors
@pytest.mark.parametrize(("answer", "state"), [(2.83, RIGHT), (2.833, RIGHT), (2.8, NOT_YET), (2.84, NOT_YET)])
def test_a_question_says_how_many_decimals_count(answer, state):
    assert judge(find("09.2"), answer).state == state


def test_where_an_error_should_come_its_words_are_asked_for(capsys):
    def encode(text, vocabulary):
        if any(character not in vocabulary for character in text):
            raise ValueError("I do not know this")
        return np.array([vocabulary.index(character) for character in text])

    check("01.1", encode)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  What happened: The message of your ValueError does not name ? and 4: “I do not know this”."
    assert lines[2].startswith("  Tried with: text = 'hold?', vocabulary = (")


def test_lists_of_words_are_shown_whole(capsys):
    check("01.3", lambda tokens, pair: tokens)
    assert "The result is ['h', 'e', 'l', 'l', 'o'], expected ['h', 'e', 'll', 'o']." in capsys.readouterr().out


# ------------------------------------------------------------------ the registry
def test_every_notebook_has_exercises_of_its_own():
    counts = {f"{number:02}": len(every(f"{number:02}")) for number in range(1, 17)}
    assert min(counts.values()) >= 3 and sum(counts.values()) == len(every()) >= 48, counts


def test_every_exercise_is_complete():
    for e in every():
        assert re.fullmatch(r"\d\d\.\d+", e.id) and e.title and e.next_thought
        assert 1 <= e.minutes <= 60 and e.difficulty in ("easy", "middle", "harder") and len(e.hints) >= 2
        assert [e.right, e.examine, e.value].count(None) == 2 and (e.broken is None) == (e.examine is None)
        assert e.stub != e.solution and not e.stub.startswith("@") and "…" not in e.title
        assert len({m.message for m in e.mistakes}) <= 16 and all(isinstance(m, Mistake) for m in e.mistakes)
        assert all(m.when or (m.old if e.function else m.value is not None) for m in e.mistakes)
        if e.function and not e.broken:
            assert e.stub.splitlines()[0] == e.solution.splitlines()[0] and e.stub.endswith(
                "return ...  # your code here"
            )
    ids = [e.id for e in every()]
    assert len(set(ids)) == len(ids)


def test_importing_the_package_loads_no_exercise_and_no_torch():
    code = (
        "import sys, course_lib.exercises\n"
        "loaded = [m for m in sys.modules if m == 'torch' or m.startswith('course_lib.exercises.nb')]\n"
        "assert not loaded, loaded\n"
        "course_lib.exercises.every()\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=exercises.__path__[0] + "/../..")


# ------------------------------------------------------------------ what to write instead
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("np.mean(x.data, axis=-1, keepdim=True)", "keepdims=True"),
        ("np.sqrt(x)", "x ** 0.5"),
        ("x.var(axis=-1, ddof=1)", "correction=0"),
        ("x.std(axis=-1)", "x.var(...).sqrt()"),
        ("x.rsqrt()", "1 / x.sqrt()"),
        ("x.square()", "x * x"),
        ("np.var(x)", "correction=0"),
        ("np.std(x)", "cuts the gradient"),
        ("np.mean(x, axis=-1)", "not np.mean"),
        ("np.sum(x, axis=-1)", "not np.sum"),
        ("x.data.transpose(1, 2)", "x.swapaxes(1, 2) swaps two"),
        ("x.data.permute(0, 2, 1)", "x.transpose(...)"),
        ("x.data.sqrt()", "np.sqrt(x)"),
        ("x.data.exp()", "np.exp(x)"),
    ],
)
def test_an_error_says_what_to_write_instead(body, words):
    problem = judge(find("07.3"), eval(f"lambda self, x: {body}", {"np": np})).problem
    assert problem.startswith("Your function stopped with ")
    assert words in problem.split("That was")[0].split(" (", 1)[1]


def test_another_precision_comes_with_its_remedy():
    def heads(x, heads):
        out = np.zeros((x.shape[0], heads, x.shape[1], x.shape[2] // heads))
        out[:] = x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
        return out

    problem = judge(find("06.1"), heads).problem
    assert "is float64, expected float32" in problem and "np.zeros" in problem
    assert "Write dtype=x.dtype in them, or .astype(x.dtype) after the result" in problem
    torch = pytest.importorskip("torch")
    problem = judge(find("06.1"), lambda x, heads: torch.tensor(heads_of(x, heads)).float(), "torch").problem
    assert "is float32, expected float64" in problem and "Write dtype=x.dtype in them" in problem


def heads_of(x, heads):
    return np.asarray(x).reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (-0.0146213, -0.0146214, ("-0.0146213", "-0.0146214")),
        (np.float32(0.25), np.float32(0.5), ("0.25", "0.5")),
        (1.0, 1.0 + 1e-15, ("1", "1.0000000000000011")),
        (7, 8, ("7", "8")),
    ],
)
def test_two_numbers_that_differ_look_different(one, other, words):
    assert two_numbers(one, other) == words


def test_a_small_difference_is_seen():
    solution = find("07.1").function
    problem = judge(find("07.1"), lambda x, gain, bias, e: solution(x, gain, bias, e) * (1 + 1e-6)).problem
    came, expected = re.search(r"is (\S+) at .*, expected (\S+)", problem).groups()
    assert came != expected


@pytest.mark.parametrize(("likely", "end"), [("which axis?", "Which axis?"), ("cut first.", "Cut first.")])
def test_a_sentence_ends_with_one_mark(likely, end):
    page = verdict_page(find("06.1"), Verdict(NOT_YET, "x", "", likely))
    assert f"Likely mistake: {end}\n" in repr(page)


@pytest.mark.parametrize(
    ("problem", "begin"),
    [
        ("token.weight is missing", "token.weight is missing."),
        ("exp(0) is 1", "exp(0) is 1."),
        ("the array token.weight is missing", "The array token.weight is missing."),
        ("got a list", "Got a list."),
    ],
)
def test_a_name_keeps_its_letters(problem, begin):
    assert f"What happened: {begin}\n" in repr(verdict_page(find("06.1"), Verdict(NOT_YET, problem)))


def test_the_dtype_is_that_of_an_input_by_its_name():
    named = {}
    for exercise in (e for e in every() if e.right):
        for case in exercise.cases():
            names = list(inspect.signature(exercise.function).parameters)
            want = exercise.right(*case)
            if isinstance(want, np.ndarray) and want.dtype == np.float32:
                problem = judge(exercise, lambda *a, f=exercise.function: np.float64(f(*a))).problem
                named[exercise.id] = re.search(r"expected float32, like (\S+?)[.:]? ", problem)[1]
                assert named[exercise.id].partition("[")[0] in names
    assert named["06.1"] == "x" and named["02.4"] == "grad" and named["15.3"] == "gradients[0]"
