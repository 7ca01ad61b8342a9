"""The notebooks as files: rules of the house that running them does not show (tools/hygiene.py).

Every rule is tried too: below stands a notebook that keeps them all, and for each rule ways to break just that one.
"""

import copy
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_lib.exercises import find
from tools import hygiene, nb, notebook, solved

BOOKS = notebook.books()


@pytest.mark.parametrize("name", hygiene.RULES)
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_rule(path, name):
    assert list(hygiene.RULES[name](hygiene.Book.at(path))) == []


def test_no_notebook_vanished():
    """A notebook that is gone would only make the suite faster."""
    assert sorted(json.loads(notebook.MANIFEST.read_text(encoding="utf-8"))) == [path.name for path in BOOKS]


# ------------------------------------------------------------------ the rules themselves
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="


def output(**data):
    return nbformat.v4.new_output("display_data", data={k.replace("_", "/"): v for k, v in data.items()})


def good_book():
    v4 = nbformat.v4
    cells = [
        v4.new_markdown_cell("# Shapes\n\nOn to [the rest](#The-rest), back to [one](00_one.ipynb).", id="intro"),
        v4.new_code_cell("print(1 + 1)", id="sum", outputs=[v4.new_output("stream", name="stdout", text="2\n")]),
        v4.new_code_cell("draw()", id="draw", outputs=[output(image_png=PNG, text_plain="<Figure>")]),
        v4.new_markdown_cell("*Figure:* one dot.\n\n## The rest", id="caption"),
        v4.new_code_cell(
            "1 / 0",
            id="oops",
            metadata={"tags": ["raises-exception"]},
            outputs=[v4.new_output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=["Zero"])],
        ),
    ]
    cells += [v4.new_code_cell(f"x = {i}", id=f"set-{i}") for i in range(30)]
    for count, cell in enumerate((c for c in cells if c.cell_type == "code"), 1):
        cell.execution_count = count
    return notebook.clean(v4.new_notebook(cells=cells))


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """A function: the rules that a notebook breaks, given as a notebook or as its text."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    monkeypatch.setattr(notebook, "MANIFEST", folder / "manifest.json")
    cells = notebook.cells_of(good_book())
    notebook.MANIFEST.write_text(json.dumps({"01_two.ipynb": cells}), encoding="utf-8")
    (folder / "00_one.ipynb").write_text(notebook.text(good_book()), encoding="utf-8")

    def broken_rules(book):
        path = folder / "01_two.ipynb"
        path.write_bytes((book if isinstance(book, str) else notebook.text(book)).encode())
        return {name for name, check in hygiene.RULES.items() if list(check(hygiene.Book.at(path)))}

    return broken_rules


@pytest.mark.parametrize("path", notebook.books(), ids=lambda path: path.stem)
def test_the_first_picture_is_among_the_first_six_cells(path):
    def pictured(cell):
        stored = [output.get("data", {}) for output in cell.get("outputs", [])]
        return "](pictures/" in cell.source or any("image/png" in data for data in stored)

    assert any(map(pictured, notebook.read(path).cells[:6]))


def test_good_book_is_good(checked):
    assert checked(good_book()) == set()


def cell(book, name):
    return next(c for c in book.cells if c.id == name)


def source(name, text):
    def change(book):
        cell(book, name).source = text

    return change


def stored(name, **changes):
    def change(book):
        cell(book, name).update(copy.deepcopy(changes))

    return change


def stream(text, name="stdout"):
    return [nbformat.v4.new_output("stream", name=name, text=text)]


def metadata(**values):
    def change(book):
        book.metadata.update(values)

    return change


def delete(name):
    def change(book):
        book.cells.remove(cell(book, name))
        return notebook.clean(book)

    return change


def timed(book):
    cell(book, "sum").metadata["execution"] = {"iopub.execute_input": "2026-01-01"}


def exercise_with(change):
    """An exercise in its three cells, one of which is changed."""

    def add(book):
        cells = solved.cells(find("06.2"))
        change(*cells[1:])
        book.cells.extend(cells)

    return add


def pop_caption(book):
    cell(book, "caption").source = "A dot.\n\n## The rest"


def stale_alt(book):
    pop_caption(book)
    cell(book, "draw").outputs[0].metadata = {"image/png": {"alt": "  "}}


BREAKS = [
    ("valid", stored("sum", colour="red")),
    ("committed_form", timed),
    ("committed_form", lambda book: notebook.text(book).replace("\n", "\r\n")),
    ("committed_form", lambda book: notebook.text(book)[:-1]),
    ("committed_form", lambda book: cell(book, "draw").outputs[0].data.update({notebook.WIDGET: {"model_id": "a1"}})),
    ("kernel", metadata(kernelspec={"name": "gpt-course-env", "display_name": "mine"})),
    ("widget_state", metadata(widgets={"application/vnd.jupyter.widget-state+json": {}})),
    ("size", stored("sum", outputs=stream("x" * 1_600_000))),
    ("manifest", delete("set-7")),
    ("manifest", delete("caption")),
    ("cell_ids", stored("sum", id="3f2a9c1b")),
    ("cell_ids", stored("sum", id="set-1")),
    ("known_tags", stored("sum", metadata={"tags": ["nbval-ignore-outputs"]})),
    ("executed_in_order", stored("sum", execution_count=None, outputs=[])),
    ("executed_in_order", stored("sum", execution_count=7)),
    ("errors", stored("oops", metadata={})),
    ("errors", stored("sum", metadata={"tags": ["raises-exception"]})),
    ("no_stderr", stored("sum", outputs=stream("UserWarning: odd\n", "stderr"))),
    ("no_machine_paths", stored("sum", outputs=stream("saved to /home/ada/course/run.txt\n"))),
    ("no_machine_paths", source("sum", 'print(open("/tmp/x", encoding="utf-8").read())')),
    ("no_machine_paths", source("intro", r"See C:\Users\ada [two](00_one.ipynb) [the rest](#The-rest).")),
    ("no_addresses", stored("sum", outputs=stream("<Tensor object at 0x7fba4a46f370>\n"))),
    ("plain_signs", stored("sum", outputs=stream("the dog\u00e2\u20ac\u2122s\n"))),
    ("no_forbidden_source", source("sum", "from IPython.display import clear_output")),
    ("no_forbidden_source", source("sum", "import sys\nsys.path.insert(0, '..')")),
    ("no_forbidden_source", source("sum", "!pip install torch")),
    ("no_forbidden_source", source("sum", "%time f()")),
    ("no_forbidden_source", source("sum", "# NBVAL_SKIP\nprint(3)")),
    ("no_print_of_sets", source("sum", "print(set('hello'))")),
    ("no_print_of_sets", source("sum", "print(list({c for c in 'hello'}))")),
    ("encoding", source("sum", "open('data.txt').read()")),
    ("encoding", source("sum", "Path('data.txt').read_text()")),
    ("waves_are_asserted", source("sum", 'print(f"loss ~{1.5:.2f}")')),
    ("exercises", source("sum", 'check("99.1", mine)')),
    ("exercises", source("sum", 'check("06.2", merge_stack)')),
    ("exercises", exercise_with(lambda stub, check: stub.update(source=stub.source + "\n    pass"))),
    ("exercises", exercise_with(lambda stub, check: stub.update(metadata={}))),
    ("exercises", exercise_with(lambda stub, check: check.update(source="1 + 1"))),
    ("exercises", exercise_with(lambda stub, check: stub.update(id="ex-05-99"))),
    ("shakespeare_tagged", source("sum", "load_corpus('tinyshakespeare')")),
    ("caps", source("sum", "\n".join("x = 1" for _ in range(26)))),
    ("caps", source("caption", "*Figure:* dot.\n\n## The rest\n" + "word " * 400)),
    ("caps", lambda book: book.cells.extend(nbformat.v4.new_markdown_cell("x", id=f"more-{i}") for i in range(40))),
    ("early_result", lambda book: [c.update(outputs=[]) for c in book.cells[:5] if c.cell_type == "code"] and None),
    ("alt_text", pop_caption),
    ("alt_text", stale_alt),
    ("links", source("caption", "*Figure:* dot. [x](05_gone.ipynb)\n\n## The rest")),
    ("links", source("caption", "*Figure:* dot. [x](00_one.ipynb#The-Rest)\n\n## The rest")),
    ("links", source("caption", "*Figure:* dot. [x](#the-rest)\n\n## The rest")),
    ("links", source("caption", "*Figure:* dot. ![a cat](https://example.org/cat.png)\n\n## The rest")),
    ("links", source("caption", '*Figure:* dot. <img src="http://example.org/cat.png" alt="cat">\n\n## The rest')),
    ("links", source("caption", "*Figure:* dot. ![](manifest.json)\n\n## The rest")),
    ("links", source("caption", "*Figure:* dot. ![cat](attachment:cat.png)\n\n## The rest")),
    ("links", source("caption", "## Another heading\n*Figure:* dot.")),
    ("neighbours", source("intro", "# Shapes\n\nOn to [the rest](#The-rest).")),
]


@pytest.mark.filterwarnings("ignore::nbformat.warnings.DuplicateCellId")
@pytest.mark.parametrize(("name", "change"), BREAKS, ids=[f"{i:02d}-{name}" for i, (name, _) in enumerate(BREAKS)])
def test_rule_sees(name, change, checked):
    book = good_book()
    changed = change(book)
    assert name in checked(book if changed is None or isinstance(changed, dict) else changed)


def test_an_exercise_in_its_three_cells_is_good(checked):
    book = good_book()
    exercise_with(lambda *cells: None)(book)
    assert "exercises" not in checked(book)


def test_every_rule_was_tried():
    assert {name for name, _ in BREAKS} == set(hygiene.RULES)


@pytest.mark.parametrize(
    "change",
    [
        source(
            "caption", "*Figure:* dot. `[x](gone)` and $a[i](b)$\n\n```\n[x](gone)\n# No heading\n```\n\n## The rest"
        ),
        source("caption", "*Figure:* dot. [x](00_one.ipynb#The-rest) [y](https://example.org)\n\n## The rest"),
        source("sum", "print(sorted(set('hello')), len({1, 2}))"),
        source("sum", "open('weights.bin', 'rb').read()"),
        source("draw", "%config InlineBackend.figure_formats = ['png']\ndraw();"),
        stored("sum", outputs=stream("(B, T, C) → (B, H, T, D), √2 ≈ 1.41, hello␠world↵\n")),
    ],
)
def test_rules_let_pass(change, checked):
    book = good_book()
    change(book)
    assert checked(book) == set()


# ------------------------------------------------------------------ the committed form
BARS = [
    "train:   0%|          | 0/100 [00:00<?, ?it/s]",
    " 40%|████      | 2/5 [00:00<00:00, 19it/s, loss=2]",
    "100%|██████████| 1.12M/1.12M [00:01<00:00, 1.1MB/s]",
    "0it [00:00, ?it/s]",
    "epoch 1: 12it [00:00, 19.1it/s]",
    "3batch [00:00, 19.12batch/s]",
]
NO_BARS = ["loss 2.31", "50% of 3/4 [a]", "weights [00, 01]", "|0.5| 3/4"]


@pytest.mark.parametrize("text", BARS)
def test_progress_bars_are_removed(text):
    bar = output(text_plain=text, **{"application_vnd.jupyter.widget-view+json": {"model_id": "a1"}})
    stderr = stream(f"{text}\r{text}\n", "stderr")[0]
    assert notebook.without_bars([bar, stderr, *stream("2\n")]) == stream("2\n")
    assert notebook.without_bars(stream(f"{text}\rUserWarning: odd\n", "stderr"))[0].text == "UserWarning: odd\n"


@pytest.mark.parametrize("text", NO_BARS)
def test_other_outputs_are_kept(text):
    outputs = [output(text_plain=text), output(text_plain=BARS[0], image_png=PNG)]
    outputs += [*stream(text), *stream(text, "stderr")]
    assert notebook.without_bars(outputs) == outputs


def test_clean_keeps_picture_and_alt_text():
    book = good_book()
    cell(book, "draw").outputs[0].metadata = nbformat.from_dict({"image/png": {"alt": "one dot", "width": 3}, "odd": 1})
    cell(book, "draw").outputs[0].data[notebook.WIDGET] = {"model_id": "a1"}
    out = cell(notebook.clean(book), "draw").outputs[0]
    assert out.metadata == {"image/png": {"alt": "one dot", "width": 3}}
    assert out.data == {"image/png": PNG, "text/plain": "<Figure>"}


def test_clean_is_idempotent_and_pure():
    book = good_book()
    book.cells[1].metadata["execution"] = {"x": 1}
    before = copy.deepcopy(book)
    once = notebook.clean(book)
    assert book == before
    assert notebook.text(notebook.clean(once)) == notebook.text(once) != notebook.text(book)


def test_clean_hides_folders_in_tracebacks():
    out = nbformat.v4.new_output(
        "error",
        ename="E",
        evalue="e",
        traceback=[
            "\x1b[31mFile \x1b[39m/home/ada/course_lib/course_lib/text/corpora.py:3, in f()",
            r"File C:\venv\Lib\site-packages\numpy\core.py:9",
        ],
    )
    assert notebook.clean_output(out).traceback == [
        "File course_lib/text/corpora.py:3, in f()",
        r"File site-packages/numpy\core.py:9",
    ]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "01_two.ipynb"
    path.write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(notebook.os, "replace", full)
    monkeypatch.setattr(notebook, "MANIFEST", path)
    for write in (lambda: notebook.write(path, good_book()), notebook.write_manifest):
        with pytest.raises(OSError, match="space"):
            write()
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
        assert path.read_text(encoding="utf-8") == "old"


def test_arguments_that_mean_nothing_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(notebook, "write_manifest", lambda: pytest.fail("written all the same"))
    with pytest.raises(SystemExit, match="takes no names"):
        nb.main(["manifest", "01_two.ipynb"])
    with pytest.raises(SystemExit, match="there is no notebook"):
        nb.main(["clean", str(tmp_path / "none.ipynb")])


@pytest.mark.slow
def test_the_folder_of_kernels_goes_without_a_warning():
    code = "from tools import notebook; print(notebook.IPYTHONDIR.name)"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        cwd=notebook.ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert "ResourceWarning" not in done.stderr
    assert not Path(done.stdout.strip()).exists()
