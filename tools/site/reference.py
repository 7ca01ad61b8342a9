"""The public names of both tracks, from their docstrings. Nothing is imported: the files are read as syntax trees."""

import ast
import html
import re

from tools import definitions, notebook
from tools.site import twins

LIBRARY = notebook.ROOT / "course_lib"


def public():
    """Return {file: [names]} of what ``course_lib.numpy_track`` exports, from where it imports them."""
    tree = ast.parse((LIBRARY / "numpy_track" / "__init__.py").read_text(encoding="utf-8"))
    return {
        f"{node.module.replace('.', '/')}.py": [alias.name for alias in node.names]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
    }


def signature(node):
    """Return how a definition is called, as text; a property by its name alone."""
    if isinstance(node, ast.ClassDef):
        made = definitions.definitions(node.body).get("__init__")
        return f"{node.name}({arguments(made) if made else ''})"
    if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
        return node.name
    return f"{node.name}({arguments(node)})"


def arguments(node):
    """Return the parameters of a function, without self, as text."""
    return ast.unparse(node.args).removeprefix("self").removeprefix(", ")


def prose(text):
    """Return a docstring as HTML: paragraphs, code in double backticks, and examples as they stand.

    >>> prose("Return ``a < b``.\\n\\n>>> 1 + 1\\n2")
    '<p>Return <code>a &lt; b</code>.</p>\\n<pre>&gt;&gt;&gt; 1 + 1\\n2</pre>'
    """
    out = []
    for part in text.split("\n\n"):
        part = html.escape(part, quote=False)
        listing = part.startswith(("&gt;&gt;&gt;", "    ")) or re.match(r"\w[\w, ]* = \w+.*\(", part)
        out.append(f"<pre>{part}</pre>" if listing else "<p>" + re.sub(r"``(.+?)``", r"<code>\1</code>", part) + "</p>")
    return "\n".join(out)


def methods(node):
    """Return the public methods of a class with their docstrings, as HTML."""
    if not isinstance(node, ast.ClassDef):
        return ""
    rows = []
    for name, method in definitions.definitions(node.body).items():
        told = ast.get_docstring(method)
        if told and not name.startswith("_"):
            rows.append(f"<dt><code>{html.escape(signature(method))}</code></dt><dd>{prose(told)}</dd>")
    return f"<dl>{''.join(rows)}</dl>" if rows else ""


def entry(name, file):
    """Return a name with its docstring: once, or once for each track if they differ."""
    trees = {track: definitions.defined_in(f"course_lib/{track}/{file}").get(name) for track in twins.TRACKS}
    told = {}
    for track, node in trees.items():
        if node is not None:
            text = f"<pre class='call'>{html.escape(signature(node))}</pre>{prose(ast.get_docstring(node) or '')}"
            told.setdefault(text + methods(node), []).append(twins.TRACKS[track])
    parts = []
    for text, tracks in told.items():
        parts.append(("" if len(tracks) == len(trees) else f'<p class="track">{tracks[0]}</p>') + text)
    link = f'<a href="twins/{file.removesuffix(".py")}.html#{name}">source</a>'
    return f"### {name}\n\n" + twins.raw(f'<div class="entry">{"".join(parts)}<p>{link}</p></div>')


def page():
    """Return the reference, in Markdown."""
    out = ["# Reference", ""]
    out.append(
        "What `from course_lib.numpy_track import …` and `from course_lib.torch_track import …` give: the same names, "
        "with the same parameters. Where the two docstrings differ, both are shown."
    )
    for file, found in public().items():
        shown = [
            n for n in sorted(found, key=str.lower) if n in definitions.defined_in(f"course_lib/numpy_track/{file}")
        ]
        out += ["", f"## {file}", "", *("\n" + entry(name, file) + "\n" for name in shown)]
    return "\n".join(out) + "\n"
