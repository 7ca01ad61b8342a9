"""The rules a notebook of the course keeps, beyond giving the outputs it was saved with (which nbval sees).

Each rule is a generator of sentences that name the cell and the trouble. `tools/nb.py check` prints them,
tests/test_notebooks.py turns each into a test, and shows for each a notebook that breaks it.
"""

import ast
import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

from tools import notebook, solved
from tools.links import broken_links, prose_only

TAGS = {
    "nbval-ignore-output": "runs, but its output is not compared (interact, Output)",
    "raises-exception": "a mistake shown on purpose",
    "shakespeare": "works on tinyshakespeare; compared only where that file is",
    "teaches": "shows a definition of course_lib, and must equal it",
    "variant": "defines a name of course_lib differently, on purpose",
    "figure": "makes a figure",
    "exercise": "the learner writes here",
    "check": "checks the learner's answer",
    "solution": "a folded answer",
}
MAX_BYTES = 1_500_000
CELLS = (30, 70)
CODE_LINES = 25
PROSE_LINES = 14  # lines of 120 characters in one text cell; tables, listings and folded answers do not count
FIRST_RESULT = 5  # cells
SIGNS = set("“”→←↑↓↵␠␣×·√≈≠≤≥±−–—…²³ᵀ∞Σ∂∇αβγδεθλμπστφ█░✓✗✅❌⬜")  # allowed in compared text besides ASCII

FORBIDDEN = {  # in the source of a code cell
    r"clear_output": "nbval does not know clear_output; use handle = display(..., display_id=True), handle.update(...)",
    r"sys\.path\b": "no edits of sys.path: course_lib is installed",
    r"os\.chdir|^\s*%cd\b": "a notebook stays in its folder",
    r"^\s*(!|%%bash|%%sh|%pip|%conda|%%?system)": "no shell: it differs between machines, and its failure goes unseen",
    r"^\s*%%?time(it)?\b": "print times as 'took 1.2 s', which the sanitizer knows; %time is for the author",
    r"#\s*(NBVAL_|PYTEST_VALIDATE)": "use a tag, not a comment that learners see",
}
MACHINE_PATH = re.compile(
    r"""(?<![\w.])(?:/(?:home|Users|tmp|root|private|var|work|mnt)/|[A-Za-z]:[\\/]{1,2}Users\b)[^\s"']*"""
)


@dataclass
class Book:
    """A notebook with its path, and its text as stored."""

    path: Path
    raw: str

    @classmethod
    def at(cls, path):
        return cls(Path(path), Path(path).read_bytes().decode("utf-8"))

    @cached_property
    def book(self):
        return nbformat.reads(self.raw, as_version=4)

    @property
    def cells(self):
        return self.book.cells

    @property
    def code(self):
        return [cell for cell in self.cells if cell.cell_type == "code"]

    @property
    def prose(self):
        return [cell for cell in self.cells if cell.cell_type == "markdown"]


RULES = {}


def rule(function):
    """Register a rule under its name."""
    RULES[function.__name__] = function
    return function


def problems(path):
    """Yield all that is wrong with one notebook."""
    book = Book.at(path)
    for name, check in RULES.items():
        for line in check(book):
            yield f"[{name}] {line}"


def parsed(cell):
    """Return the syntax tree of a code cell, magics included, or an empty one if there is a syntax error."""
    try:
        return ast.parse(TransformerManager().transform_cell(cell.source))
    except SyntaxError:
        return ast.parse("")


def texts(cell):
    """Yield the texts among the outputs of a cell."""
    for out in cell.outputs:
        yield out.get("text", "")
        for mime, data in out.get("data", {}).items():
            if isinstance(data, str) and not mime.startswith("image/"):
                yield data
        yield out.get("evalue", "")
        yield from out.get("traceback", [])


# ------------------------------------------------------------------ the file
@rule
def valid(book):
    try:
        nbformat.validate(json.loads(book.raw))
    except (nbformat.ValidationError, ValueError) as error:
        yield f"not a valid notebook: {error}"


@rule
def committed_form(book):
    stored, wanted = book.raw.splitlines(), notebook.text(notebook.clean(book.book)).splitlines()
    if book.raw != "\n".join(wanted) + "\n":
        pairs = enumerate(zip(stored, wanted, strict=False))
        at = next((i for i, (a, b) in pairs if a != b), min(len(stored), len(wanted)))
        line = stored[at].strip()[:80] if at < len(stored) else "(end)"
        yield f"not in committed form, first at line {at + 1}: {line}   Mend: python tools/nb.py clean"


@rule
def kernel(book):
    name = book.book.metadata.get("kernelspec", {}).get("name")
    if name != "python3":
        yield f"its kernel is {name!r}, which other machines do not have: it must be 'python3'"


@rule
def widget_state(book):
    if "widgets" in book.book.metadata:
        yield "widget state is stored (metadata.widgets): GitHub does not show such a notebook"


@rule
def size(book):
    if (n := len(book.raw.encode())) > MAX_BYTES:
        yield f"{n:,} bytes, more than {MAX_BYTES:,}: draw smaller or fewer figures"


@rule
def manifest(book):
    known = json.loads(notebook.MANIFEST.read_text(encoding="utf-8")) if notebook.MANIFEST.exists() else {}
    if known.get(book.path.name) != notebook.cells_of(book.book):
        yield "cells were added, removed or moved. If that is meant: python tools/nb.py manifest"


@rule
def cell_ids(book):
    ids = [cell.get("id", "") for cell in json.loads(book.raw)["cells"]]  # as stored: nbformat renames a second one
    for name in sorted(set(ids)):
        if ids.count(name) > 1:
            yield f"the id {name!r} is used twice"
        if not re.fullmatch(r"[a-z][a-z0-9_-]{1,40}", name) or re.fullmatch(r"[0-9a-f]{8}(-.*)?", name):
            yield f"the id {name!r} is not a short name, like 'softmax-rows'"


@rule
def known_tags(book):
    for cell in book.cells:
        for tag in sorted(notebook.tags(cell) - TAGS.keys()):
            yield f"cell {cell.id}: unknown tag {tag!r}; known are {', '.join(sorted(TAGS))}"


# ------------------------------------------------------------------ execution and outputs
@rule
def executed_in_order(book):
    counts = [cell.execution_count for cell in book.code]
    if counts != list(range(1, len(counts) + 1)):
        first = next(c for i, c in enumerate(book.code) if c.execution_count != i + 1)
        yield f"cell {first.id}: not executed in order, from a fresh kernel. Mend: python tools/nb.py run"


@rule
def errors(book):
    for cell in book.code:
        raised = [out.ename for out in cell.outputs if out.output_type == "error"]
        meant = "raises-exception" in notebook.tags(cell)
        if raised and not meant:
            yield f"cell {cell.id}: stored error {raised[0]}"
        if meant and not raised:
            yield f"cell {cell.id}: tagged raises-exception, but no error is stored"


@rule
def no_stderr(book):
    for cell in book.code:
        for out in cell.outputs:
            if out.get("name") == "stderr":
                yield f"cell {cell.id}: writes to stderr: {out.text.strip()[:80]!r}"


@rule
def no_machine_paths(book):
    for cell in book.cells:
        for part in [cell.source, *(texts(cell) if cell.cell_type == "code" else [])]:
            if found := MACHINE_PATH.search(part):
                yield f"cell {cell.id}: names a folder of one machine: {found[0][:60]}"


@rule
def no_addresses(book):
    for cell in book.code:
        for part in texts(cell):
            if found := re.search(r"<[^<>]* at 0x[0-9a-f]{6,}>", part):
                yield f"cell {cell.id}: prints {found[0]}: show something that says what the object holds"


@rule
def plain_signs(book):
    for cell in book.code:
        odd = {sign for part in texts(cell) for sign in part if ord(sign) > 126 and sign not in SIGNS}
        if odd and "nbval-ignore-output" not in notebook.tags(cell):
            yield f"cell {cell.id}: text with {' '.join(map(ascii, sorted(odd)))}, neither ASCII nor in hygiene.SIGNS"


# ------------------------------------------------------------------ sources
@rule
def no_forbidden_source(book):
    for cell in book.code:
        for pattern, why in FORBIDDEN.items():
            if re.search(pattern, cell.source, re.MULTILINE):
                yield f"cell {cell.id}: {why}"


@rule
def no_print_of_sets(book):
    """Find sets that are printed: their order differs from run to run."""
    for cell in book.code:
        for call in ast.walk(parsed(cell)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("print", "list", "tuple", "str", "repr"):
                for arg in call.args:
                    if isinstance(arg, (ast.Set, ast.SetComp)) or (
                        isinstance(arg, ast.Call) and getattr(arg.func, "id", "") in ("set", "frozenset")
                    ):
                        yield f"cell {cell.id}: {ast.unparse(call)[:60]}: sort a set before it is shown"


@rule
def waves_are_asserted(book):
    """Find numbers printed as ~2.85, which no test compares, in cells that do not assert their range."""
    for cell in book.code:
        if "~{" in cell.source and not any(isinstance(node, ast.Assert) for node in ast.walk(parsed(cell))):
            yield f"cell {cell.id}: prints a number with ~, which no test compares: assert its range in the cell"


@rule
def encoding(book):
    for cell in book.code:
        for call in ast.walk(parsed(cell)):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in ("open", "read_text", "write_text"):
                mode = next((a.value for a in call.args[1:2] if isinstance(a, ast.Constant)), "")
                if "b" not in str(mode) and not any(k.arg == "encoding" for k in call.keywords):
                    yield f'cell {cell.id}: {ast.unparse(call)[:60]}: give encoding="utf-8"'


@rule
def exercises(book):
    """Find stubs that are not those of course_lib/exercises, or that nothing checks."""
    yield from solved.problems(book.book)


@rule
def shakespeare_tagged(book):
    for cell in book.code:
        if "tinyshakespeare" in cell.source and "shakespeare" not in notebook.tags(cell):
            yield f"cell {cell.id}: names tinyshakespeare without the tag 'shakespeare'"


# ------------------------------------------------------------------ the page
@rule
def caps(book):
    lesson = [cell for cell in book.cells if not re.match(r"(task|ex|check)-\d\d-", cell.id)]
    if not CELLS[0] <= len(lesson) <= CELLS[1]:
        yield f"{len(lesson)} cells besides the exercises; a notebook has {CELLS[0]} to {CELLS[1]}"
    for cell in book.code:
        if not cell.source.strip():
            yield f"cell {cell.id}: empty"
        if (n := len(cell.source.splitlines())) > CODE_LINES:
            yield f"cell {cell.id}: {n} lines of code; at most {CODE_LINES}"
    for cell in book.prose:
        shown = re.sub(r"(?s)</summary>.*?</details>", "", prose_only(cell.source))
        lines = [s for s in shown.splitlines() if s.strip() and not s.lstrip().startswith("|")]
        n = sum(math.ceil(len(s) / 120) for s in lines)
        if n > PROSE_LINES and "solution" not in notebook.tags(cell):
            yield f"cell {cell.id}: {n} lines of prose (of 120 characters); at most {PROSE_LINES}"


@rule
def early_result(book):
    if not any(cell.get("outputs") for cell in book.cells[:FIRST_RESULT]):
        yield f"no result within the first {FIRST_RESULT} cells"


@rule
def alt_text(book):
    for i, cell in enumerate(book.cells):
        for out in cell.get("outputs", []):
            if "image/png" not in out.get("data", {}):
                continue
            after = book.cells[i + 1] if i + 1 < len(book.cells) else None
            caption = after and after.cell_type == "markdown" and re.search(r"(?m)^\*Figure:\* *\S", after.source)
            if not caption and not out.metadata.get("image/png", {}).get("alt", "").strip():
                yield f"cell {cell.id}: a figure without alt text, and no paragraph '*Figure:* ...' follows"


@rule
def links(book):
    for cell in book.prose:
        for trouble in broken_links(cell, book):
            yield f"cell {cell.id}: {trouble}"


@rule
def neighbours(book):
    """Find notebooks without a link to the one before and the one after."""
    names = [p.name for p in notebook.books(book.path.parent)]
    here = names.index(book.path.name) if book.path.name in names else None
    if here is None:
        return
    prose = "\n".join(cell.source for cell in book.prose)
    for other in names[max(0, here - 1) : here] + names[here + 1 : here + 2]:
        if not re.search(rf"\]\(<?{re.escape(other)}[)#>]", prose):
            yield f"no link to its neighbour {other}"
