"""Links and pictures in the text cells of a notebook: do they lead somewhere?"""

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from tools import notebook

LINK = re.compile(r"""(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*<?([^)\s>]*)>?(?:\s+["'][^)]*)?\)""")
HTML = re.compile(r"""<(a|img)\b[^>]*?\b(?:href|src)\s*=\s*["']([^"']*)["'][^>]*>""", re.IGNORECASE)


def prose_only(source):
    """Return the text without listings, inline code and formulas, where brackets are not links."""
    source = re.sub(r"(?ms)^\s*(```|~~~).*?^\s*\1\s*$", "", source)
    source = re.sub(r"(?s)\$\$.*?\$\$", "", source)
    source = re.sub(r"`[^`\n]*`", "code", source)
    return re.sub(r"\$[^$\n]+\$", "formula", source)


def headings(source):
    """Yield the headings of a text, as plain words."""
    text = re.sub(r"(?ms)^\s*(```|~~~).*?^\s*\1\s*$", "", source)
    for line in re.findall(r"(?m)^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", text):
        line = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line)  # a link in a heading: its words
        yield re.sub(r"[`*]|(?<!\w)_|_(?!\w)", "", line)


@lru_cache
def anchors(path, stamp):
    """Return all that ``#...`` may name in this file; ``stamp``, its time of change, lets an edit be seen."""
    if path.suffix == ".ipynb":
        sources = [cell.source for cell in notebook.read(path).cells if cell.cell_type == "markdown"]
    else:
        sources = [path.read_text(encoding="utf-8")]
    return anchors_in(sources, jupyter=path.suffix == ".ipynb")


def anchors_in(sources, jupyter=True):
    """Return the anchors: JupyterLab joins the words of a heading with "-", GitHub makes a slug of them."""
    found = set()
    for source in sources:
        for words in headings(source):
            found.add(words.replace(" ", "-") if jupyter else re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-"))
        found |= set(re.findall(r"""<\w+[^>]*\b(?:id|name)\s*=\s*["']([^"']+)["']""", source))
    return found


def broken_links(cell, book):
    """Yield sentences about what is wrong with the links and pictures of one text cell."""
    source = prose_only(cell.source)
    targets = [(bool(bang), words, target) for bang, words, target in LINK.findall(source)]
    for found in HTML.finditer(source):
        alt = re.search(r"""\balt\s*=\s*["']([^"']+)["']""", found[0])
        targets.append((found[1].lower() == "img", alt[1] if alt else "", found[2]))
    for picture, words, target in targets:
        kind = "picture" if picture else "link"
        if picture and not words.strip():
            yield f"the picture {target[:60]} has no alt text"
        if not target:
            yield f"an empty {kind}: [{words}]()"
        elif re.match(r"https?:|//", target):
            if picture:
                yield f"the picture {target} comes from the network: keep it in the repository"
        elif target.startswith("attachment:"):
            if unquote(target.removeprefix("attachment:")) not in cell.get("attachments", {}):
                yield f"the picture {target} is not attached to its cell"
        elif re.match(r"[a-z]+:", target) and not target.startswith("mailto:"):
            if not (picture and target.startswith("data:image/")):
                yield f"the {kind} {target[:60]} is of a kind that not every viewer opens"
        elif not target.startswith("mailto:"):
            yield from broken_relative(target, kind, book)


def broken_relative(target, kind, book):
    """Yield a sentence if a link inside the repository leads nowhere."""
    name, _, anchor = target.partition("#")
    path = (book.path.parent / unquote(name)).resolve() if name else book.path
    if name.startswith("/"):
        yield f"the {kind} {target} starts from the root of a machine"
    elif name and not path.exists():
        yield f"the {kind} {target} leads to nothing"
    elif name and not path.is_relative_to(book.path.parent.parent.resolve()):
        yield f"the {kind} {target} leaves the repository"
    elif anchor and path.suffix in (".ipynb", ".md"):
        known = anchors_in(c.source for c in book.prose) if not name else anchors(path, Path(path).stat().st_mtime_ns)
        if unquote(anchor) not in known:
            near = [a for a in known if a.lower() == unquote(anchor).lower()]
            yield f"the {kind} {target}: no such heading" + (f"; do you mean #{near[0]}?" if near else "")
