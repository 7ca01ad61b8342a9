"""The holes of nbval that tools/nbval_strict.py closes, each tried on a cell of two small notebooks."""

import os
import re
import subprocess
import sys

import nbformat
import pytest

from tools import notebook

pytestmark = pytest.mark.slow
V4 = nbformat.v4
BAR = "  0%|          | 0/3 [00:00<?, ?it/s]"
ALT = "from IPython.display import display\ndisplay({'text/plain': 'x', 'image/png': 'aGk='}, raw=True, "
STREAM = (
    "from course_lib.inference import stream\nfrom course_lib.numpy_track import Bigram\n"
    "from course_lib.text import CharTokenizer\ntokenizer = CharTokenizer.from_text('hello')\n"
    "stream(Bigram(4), tokenizer, 'he', 9)"
)
LIVE = "handle = display('a', display_id=True)\nfor i in range(3):\n    handle.update(i)"


def shown(text, alt=None, count=None):
    data, meta = (
        ({"text/plain": text}, {})
        if alt is None
        else ({"text/plain": text, "image/png": "aGk="}, {"image/png": {"alt": alt}})
    )
    if count is None:
        return [V4.new_output("display_data", data=data, metadata=meta)]
    return [V4.new_output("execute_result", data=data, metadata=meta, execution_count=count)]


def said(text, name="stdout"):
    return [V4.new_output("stream", name=name, text=text)]


# id: (source, stored outputs, tags, what strict nbval must make of it)
FIRST = {
    "same": ("print(1 + 1)", said("2\n"), [], "PASSED"),
    "other": ("print(1 + 1)", said("3\n"), [], "FAILED"),
    "uncompared": ("print(1 + 1)", said("3\n"), ["nbval-ignore-output"], "PASSED"),
    "unrun": ("print(1 + 1)", None, [], "FAILED"),
    "promised": ("1 / 1;", [], ["raises-exception", "nbval-ignore-output"], "FAILED"),
    "kept": (
        "1 / 0",
        [V4.new_output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=[])],
        ["raises-exception"],
        "PASSED",
    ),
    "hushed": ("1 + 1;", [], [], "PASSED"),
    "value": ("2", shown("2", count=8), [], "PASSED"),
    "underscore": ("_ + 1", shown("3", count=9), [], "PASSED"),
    "bar": ("from tqdm.auto import tqdm\nfor i in tqdm(range(3)):\n    pass", [], [], "PASSED"),
    "bar-stored": ("pass", [*shown(BAR), *said(f"{BAR}\n", "stderr")], [], "PASSED"),
    "stderr": ("import sys\nprint('odd', file=sys.stderr)", [], [], "FAILED"),
    "alt": (ALT + "metadata={'image/png': {'alt': 'a dot'}})", shown("x", "a dot"), [], "PASSED"),
    "alt-other": (ALT + "metadata={'image/png': {'alt': 'a dot'}})", shown("x", "a line"), [], "FAILED"),
    "live": (LIVE, shown("2"), [], "PASSED"),
    "live-other": (LIVE, shown("0"), [], "FAILED"),
    "streamed": (STREAM, said("sample:\nwhat another machine wrote\n(end of sample)\n"), [], "PASSED"),
    "streamed-stopped": (STREAM, said("sample:\nhello\n"), [], "FAILED"),
    "offline": ("import os\nprint(os.environ['COURSE_OFFLINE'])", said("1\n"), [], "PASSED"),
    "one-thread": ("print(os.environ['OMP_NUM_THREADS'])", said("1\n"), [], "PASSED"),
    "shakespeare": ("print(1)", said("2\n"), ["shakespeare"], "PASSED"),
    "magic": ("%notmagic\nraise TypeError", [], ["nbval-ignore-output"], "FAILED"),
    "after": ("print(1 + 1)", said("2\n"), [], "SKIPPED"),
}
SECOND = {
    "dies": ("import os; os._exit(1)", [], [], "FAILED"),
    "after": ("print(1 + 1)", said("2\n"), [], "SKIPPED"),
}


def store(path, cells):
    made = []
    for count, (name, (source, outputs, tags, _)) in enumerate(cells.items(), 1):
        made.append(
            V4.new_code_cell(
                source,
                id=name,
                outputs=outputs or [],
                metadata={"tags": tags},
                execution_count=None if outputs is None else count,
            )
        )
    path.write_text(notebook.text(V4.new_notebook(cells=made)), encoding="utf-8")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """{'first::same': 'PASSED', ...} and the summary of a pytest process of its own."""
    folder = tmp_path_factory.mktemp("strict")
    store(folder / "first.ipynb", FIRST)
    store(folder / "second.ipynb", SECOND)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    env = {**os.environ, "COURSE_NO_SHAKESPEARE": "1", "PYTHONPATH": str(notebook.ROOT), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-v",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            "-p",
            "conftest",
            "--nbval",
            "--nbval-current-env",
            "--nbval-cell-timeout=60",
            "--color=no",
            ".",
        ],
        cwd=folder,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    found = re.findall(r"(?m)^(\w+)\.ipynb::(\S+) (PASSED|FAILED|SKIPPED|ERROR|XPASS|XFAIL)", done.stdout)
    assert found, done.stdout + done.stderr
    return {f"{book}::{cell}": word for book, cell, word in found}, done.stdout


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        *((f"first::{name}", entry[-1]) for name, entry in FIRST.items()),
        *((f"second::{name}", entry[-1]) for name, entry in SECOND.items()),
    ],
)
def test_verdict(name, wanted, verdicts):
    assert verdicts[0][name] == wanted


def test_summary_counts_what_was_not_compared(verdicts):
    assert "\n3 run but not compared: tagged nbval-ignore-output\n" in verdicts[1]
    assert "\n1 run but not compared: tagged shakespeare; tinyshakespeare is switched off" in verdicts[1]
