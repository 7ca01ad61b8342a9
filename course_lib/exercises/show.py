"""Output that reads well everywhere: plain text in a terminal, HTML with roles for screen readers in a notebook."""

import re
import sys
from html import escape

from .exercise import NOT_ATTEMPTED, NOT_YET, RIGHT

# A sign and a colour each, and always the words: the colours never carry the meaning alone.
_LOOK = {RIGHT: ("✓", "#009e73"), NOT_YET: ("✗", "#d55e00"), NOT_ATTEMPTED: ("…", "#7f7f7f")}


class Page:
    """Something to show, as plain text and as HTML."""

    def __init__(self, text, html):
        self.text, self.html = text, html

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return self.html


def show(page):
    """Show the page: in a notebook as HTML, elsewhere as text."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(page)
    else:
        from IPython.display import display

        display(page)


def verdict_page(exercise, verdict):
    """Return what a check says. The box is a live region (role=status), read aloud without a change of focus."""
    title = f"{exercise.id} {exercise.title}"
    lines = []
    if verdict.state == RIGHT:
        lines = [("Next thought", exercise.next_thought)]
    elif verdict.state == NOT_YET:
        lines = [
            ("What happened", _sentence(verdict.problem)),
            ("Tried with", verdict.where),
            ("Likely mistake", _sentence(verdict.likely)),
            ("Help", f'hint("{exercise.id}") goes one step further each time.'),
        ]
    lines = [(name, text) for name, text in lines if text]
    sign, colour = _LOOK[verdict.state]
    text = "\n".join([f"{title}: {verdict.state}", *(f"  {name}: {text}" for name, text in lines)])
    rows = "".join(f"<div><b>{escape(name)}:</b> {_marked(text)}</div>" for name, text in lines)
    html = (
        f'<div role="status" style="border-inline-start:4px solid {colour};padding:.2em .8em;margin:.3em 0">'
        f'<div><span aria-hidden="true">{sign}</span> {escape(title)}: <strong>{verdict.state}</strong></div>'
        f"{rows}</div>"
    )
    return Page(text, html)


def note_page(text):
    """Return a page of a sentence or two."""
    rows = "".join(f"<div>{_marked(line)}</div>" for line in text.splitlines())
    return Page(text, f'<div role="status" style="padding:.2em .8em;margin:.3em 0">{rows}</div>')


def folded_page(title, body, code=True):
    """Return a text or listing folded under a summary that opens by click, Enter or space."""
    inner = f"<pre><code>{escape(body)}</code></pre>" if code else f"<p>{escape(body)}</p>"
    html = f'<details style="margin:.3em 0"><summary>{escape(title)}</summary>{inner}</details>'
    return Page(f"{title}\n\n{body}", html)


def table_page(caption, heads, rows):
    """Return a table with a caption; the first cell of each row names the row."""
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    lines = [
        "  ".join(str(cell).ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]
    ]
    left = ' style="text-align:left"'
    head = "".join(f'<th scope="col"{left}>{escape(name)}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row"{left}>{escape(str(row[0]))}</th>'
        + "".join(f"<td{left}>{escape(str(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    html = (
        f"<table><caption{left}>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    return Page("\n".join([caption, *lines]), html)


def _marked(text):
    """Return the text as HTML, with `code` in monospace."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _sentence(text):
    """Return the text with a capital letter (but token.weight) and a full stop unless another mark ends it."""
    if not text:
        return text
    text = text.rstrip(".")
    if not re.match(r"\w+[._(\[]\w", text):
        text = text[0].upper() + text[1:]
    return text if text.endswith(("?", "!", "…")) else text + "."
