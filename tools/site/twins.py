"""Pages that show a file of the NumPy track beside its twin in raw PyTorch."""

import difflib
from functools import cache

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from tools import definitions, notebook

TRACKS = {"numpy_track": "NumPy", "torch_track": "raw PyTorch"}
LIBRARY = notebook.ROOT / "course_lib"


@cache
def names():
    """Return the names of the files that both tracks have."""
    first, second = ({p.name for p in (LIBRARY / track).glob("*.py")} for track in TRACKS)
    return sorted((first & second) - {"__init__.py"})


@cache
def lines_of(track, name):
    """Return (the lines of a file, the same as HTML with the classes of Pygments, {line number: what it defines})."""
    text = (LIBRARY / track / name).read_text(encoding="utf-8")
    shown = highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).split("\n")
    places = {}
    for place, node in definitions.defined_in(f"course_lib/{track}/{name}").items():
        places[node.lineno] = place
    return text.splitlines(), shown, places


@cache
def hunks(name):
    """Return [(equal, lines of the first, lines of the second)]: ranges of line numbers from 0, in order."""
    first, second = (lines_of(track, name)[0] for track in TRACKS)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    return [(kind == "equal", range(a, b), range(c, d)) for kind, a, b, c, d in matcher.get_opcodes()]


def differing(name):
    """Return how many lines of each of the two files are not in the other."""
    unequal = [(len(a), len(b)) for equal, a, b in hunks(name) if not equal]
    return tuple(map(sum, zip(*unequal))) or (0, 0)


def code(track, name, numbers, skip=()):
    """Return lines of a file as HTML; each definition, but for those to skip, is a place that a link can lead to."""
    _, shown, places = lines_of(track, name)
    marks = [places.get(n + 1) for n in numbers]
    lines = [f'<span id="{m}"></span>{shown[n]}' if m and m not in skip else shown[n] for n, m in zip(numbers, marks)]
    return "\n".join(lines)


def side_by_side(name):
    """Return the two files as HTML: equal lines are quiet (and stand once on a narrow page), different ones are lit."""
    first, second = TRACKS
    here = set(lines_of(first, name)[2].values())
    out = ['<div class="twins highlight">', *(f'<div class="head">course_lib/{t}/{name}</div>' for t in TRACKS)]
    for equal, left, right in hunks(name):
        texts = code(first, name, left), code(second, name, right, here)
        for track, numbers, text in zip(TRACKS, (left, right), texts):
            if equal:
                kind = 'class="again" aria-hidden="true"' if track == second else 'class="equal"'
            else:
                kind = f'class="lit {track}" data-track="{TRACKS[track]}"' if numbers else 'class="none"'
            out.append(f"<pre {kind}>{text}</pre>")
    return "\n".join([*out, "</div>"])


def one_file(name):
    """Return a file that is the same in both tracks as HTML."""
    track = next(iter(TRACKS))
    count = len(lines_of(track, name)[0])
    return f'<div class="twins one highlight"><pre>{code(track, name, range(count))}</pre></div>'


def raw(text):
    """Return HTML as a part of a page of Markdown."""
    return f"````{{raw}} html\n{text}\n````"


@cache
def taught_in():
    """Return {file name: [notebooks whose cells define something of it]}."""
    found = {}
    for path in notebook.books():
        for cell in notebook.read(path).cells:
            if "teaches" in notebook.tags(cell):
                for taught in definitions.taught(cell):
                    where = found.setdefault(taught.file.rpartition("/")[2], [])
                    if path.stem not in where:
                        where.append(path.stem)
    return found


def books(name, up=""):
    """Return links to the notebooks that teach a file."""
    return ", ".join(f"[{stem[:2]}]({up}{stem}.ipynb)" for stem in taught_in().get(name, []))


def page(name):
    """Return the page of one pair of files, in Markdown."""
    count, (left, right) = len(lines_of("numpy_track", name)[0]), differing(name)
    title = f"---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n# {name}\n\n"
    taught = f" Taught in {found}." if (found := books(name, "../")) else ""
    if not left and not right:
        both = " and ".join(f"`course_lib/{track}/{name}`" for track in TRACKS)
        text = f"All {count} lines of {both} are the same. What differs lies beneath: the tensors and their functions."
        return f"{title}{text}{taught}\n\n{raw(one_file(name))}\n"
    text = f"Lit: {left} lines that only the NumPy file has, and {right} that only the raw PyTorch file has."
    return f"{title}{text} The other {count - left} are the same.{taught}\n\n{raw(side_by_side(name))}\n"


def contents():
    """Return the page that leads to all pairs, in Markdown."""
    rows = ["| file | lines | only in NumPy | only in PyTorch | taught in |", "|---|---|---|---|---|"]
    for name in names():
        left, right = differing(name)
        count = len(lines_of("numpy_track", name)[0])
        rows.append(f"| [{name}]({name.removesuffix('.py')}.md) | {count} | {left} | {right} | {books(name, '../')} |")
    listed = "\n".join(name.removesuffix(".py") for name in names())
    return f"""# Twice: the two tracks side by side

Each of these files stands in the library twice, on NumPy and in raw PyTorch, with the same names in the same order. The
tensor and the derivatives are where the two differ. Above them, the models are the same text: what a GPT *is* does not
depend on who differentiates it.

{chr(10).join(rows)}

```{{toctree}}
:hidden:

{listed}
```
"""


def all_pages():
    """Return {path: Markdown} of the contents and of all pairs."""
    return {"twins/index.md": contents()} | {f"twins/{n.removesuffix('.py')}.md": page(n) for n in names()}
