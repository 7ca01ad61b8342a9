#!/usr/bin/env python
"""Pages of the live views that the notebooks show.  python tools/site/views.py NOTEBOOK FOLDER CELL... writes them.

A stored notebook has only pictures of its views. So its cells are run up to the view, as plain Python, and the view
writes its own page. PAGES says how, for each kind of view.
"""

import ast
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools import notebook

STORE = notebook.ROOT / "build" / "views"
NOT_RUN = {"exercise", "check", "raises-exception"}  # tags of cells on which no other cell depends

# What a page gets to live in a frame of the site: the height of the reader's screen in place of the frame's own (which
# follows the view), the theme of the site, and a word about its height.
HEAD = """<style>body { padding: 0; max-width: none; background: none; } .attention-view { max-width: none; }</style>
<script>
Object.defineProperty(window, "innerHeight", { get: () => Math.min(860, 0.85 * screen.availHeight) });
addEventListener("message", ({ data }) => {
  if (data.theme) document.body.dataset.jpThemeLight = String(data.theme === "light");
});
addEventListener("DOMContentLoaded", () => {
  const view = document.getElementById("view");
  new ResizeObserver(() => parent.postMessage({ height: view.scrollHeight }, "*")).observe(view);
});
</script>
</head>"""


def one(view):
    """Return {label: page} of a view that needs no kernel."""
    return {"": view.to_html()}


def recorded(lab):
    """Return {label: page} of a laboratory, which needs a kernel to read: what it made of a handful of settings."""
    fresh, last = lab.text, (lab.reader.model.config.layers - 1, lab.reader.model.config.heads - 1)
    settings = {
        "as it opens": {},
        "“stale” in place of “fresh”": {"text": fresh.replace("fresh", "stale")},
        "without the causal mask": {"causal": False},
        "without the scale": {"scaled": False},
        f"layer {last[0]} head {last[1]} off": {"off": [last]},
    }
    found = {}
    for label, changes in settings.items():
        before = {name: getattr(lab, name) for name in changes}
        for name, value in changes.items():
            setattr(lab, name, value)
        found[label] = lab.to_html()
        for name, value in before.items():
            setattr(lab, name, value)
    return found


# by the class of the view, with which its repr begins
PAGES = {"AttentionView": one, "AttentionLab": recorded, "ModelView": one, "StepsView": one}


def wanted(book, quick=False):
    """Return the ids of the cells whose output is a view that has pages; with ``quick``, none that was trained."""
    found = []
    for cell in book.cells:
        shown = [out.data.get("text/plain", "") for out in cell.get("outputs", []) if "data" in out]
        kinds = {re.match(r"\w*", text)[0] for text in shown}
        if kinds & PAGES.keys() and not (quick and "trained_here=True" in cell.source):
            found.append(cell.id)
    return found


def needed(book, ids):
    """Return the cells to run for these views, in order."""
    last = max(n for n, cell in enumerate(book.cells) if cell.id in ids)
    return [c for c in book.cells[: last + 1] if c.cell_type == "code" and not notebook.tags(c) & NOT_RUN]


def run(path, folder, ids):
    """Run a notebook up to its views and write their pages into a folder, with pages.json: {cell: {label: file}}."""
    names, index = {"__name__": "__main__"}, {}
    os.chdir(path.parent)
    for cell in needed(notebook.read(path), ids):
        tree = ast.parse(cell.source)
        end = tree.body.pop() if cell.id in ids else None  # the last line shows the view
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(tree, cell.id, "exec"), names)
            shown = eval(compile(ast.Expression(end.value), cell.id, "eval"), names) if end else None
        if end:
            index[cell.id] = {}
            for n, (label, page) in enumerate(PAGES[type(shown).__name__](shown).items()):
                name = f"{path.stem}-{cell.id}-{n}.html"
                (folder / name).write_text(page.replace("</head>", HEAD, 1), encoding="utf-8", newline="\n")
                index[cell.id][label] = name
    (folder / "pages.json").write_text(json.dumps(index), encoding="utf-8")


def fingerprint(path, ids):
    """Return a name for the pages of a notebook's views: another one if the cells or the library have changed."""
    parts = [Path(__file__).read_bytes(), *(cell.source.encode() for cell in needed(notebook.read(path), ids))]
    parts += [
        p.read_bytes() for p in sorted((notebook.ROOT / "course_lib").rglob("*")) if p.suffix in (".py", ".js", ".css")
    ]
    return f"{path.stem}-{hashlib.sha256(b'-'.join([*parts, ','.join(ids).encode()])).hexdigest()[:16]}"


def write_pages(target, quick=False):
    """Write the pages of all views into a folder; return {notebook: {cell: {label: file}}}.

    A notebook that needs tinyshakespeare keeps its still pictures where the text is not there.
    """
    jobs = {}
    for path in sorted(notebook.books(), key=notebook.budget, reverse=True):  # the longest first
        book = notebook.read(path)
        ids = wanted(book, quick)
        if ids and any("shakespeare" in notebook.tags(c) for c in needed(book, ids)) and notebook.why_no_shakespeare():
            ids = []
        if ids:
            jobs[path] = ids
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = dict(zip(jobs, pool.map(stored, jobs, jobs.values())))
    target.mkdir(parents=True)
    found = {}
    for path, folder in folders.items():
        found[path.stem] = json.loads((folder / "pages.json").read_text(encoding="utf-8"))
        for page in folder.glob("*.html"):
            shutil.copy(page, target)
    return found


def stored(path, ids):
    """Return the folder with the pages of a notebook's views; made in a process of its own if it is not there."""
    folder = STORE / fingerprint(path, ids)
    if not (folder / "pages.json").exists():
        for old in STORE.glob(f"{path.stem}-*"):
            shutil.rmtree(old)
        folder.mkdir(parents=True)
        notebook.kernel_environment()
        command = [sys.executable, __file__, path, folder, *ids]
        subprocess.run(command, env=dict(os.environ, COURSE_OFFLINE="1"), check=True)
    return folder


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:])
