"""From a notebook to a page of the site, and the pages that are written by hand."""

import base64
import hashlib
import html
import json
import re
import struct

import nbformat

from tools import definitions, notebook
from tools.site import twins

README = notebook.ROOT / "README.md"
HEADINGS = {"00_start_here": "0 · Start here"}  # in the contents: its own is the name of the course


def page_of_notebook(book, stills, live):
    """Return a copy of a notebook for the site: pictures with their alt text, live views, links to the twin files.

    ``stills``: the folder that the pictures are written to. ``live``: {cell: {label: page}}.
    """
    cells = []
    for cell in nbformat.from_dict(book).cells:
        cells.append(cell)
        if cell.cell_type != "code":
            continue
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
        shown = [output_of(out, stills, live.get(cell.id)) for out in cell.outputs]
        cell.outputs = [out for out in shown if out]
        if "teaches" in notebook.tags(cell) and (links := links_to_twins(cell)):
            cells.append(nbformat.v4.new_markdown_cell(links, id=f"{cell.id}-twins"))
    return nbformat.from_dict({**book, "cells": cells})


def output_of(out, stills, live):
    """Return an output as the site shows it, or None for words that only repeat the alt text of a picture."""
    data = out.get("data", {})
    if "image/png" in data:
        about = out.metadata.get("image/png", {})
        still = picture(base64.b64decode(data["image/png"]), about.get("alt", ""), about.get("width"), stills)
        return nbformat.v4.new_output("display_data", {"text/html": live_view(still, live) if live else still})
    return None if "jp-sr-only" in data.get("text/html", "") else out


def picture(png, alt, width, stills):
    """Return a picture as HTML, and write it to its file."""
    stills.mkdir(parents=True, exist_ok=True)
    name = f"{hashlib.sha256(png).hexdigest()[:16]}.png"
    (stills / name).write_bytes(png)
    dots = struct.unpack(">II", png[16:24])
    width = width or dots[0]
    height = round(width * dots[1] / dots[0])
    return f'<img class="still" src="stills/{name}" alt="{html.escape(alt)}" width="{width}" height="{height}">'


def live_view(still, live):
    """Return a still picture which the script of the site replaces by the page of the view, once it is looked at."""
    pages = html.escape(json.dumps([[label, f"live/{name}"] for label, name in live.items()]))
    return f'<div class="live" data-pages="{pages}">{still}</div>'


def links_to_twins(cell):
    """Return a line of Markdown that leads from the cell to what it defines, in the file beside its twin."""
    links = {}
    for taught in definitions.taught(cell):
        name = taught.file.rpartition("/")[2]
        if name in twins.names():
            place = f"twins/{name.removesuffix('.py')}.html#{taught.name}"
            links[name, taught.name] = f'<a href="{place}"><code>{taught.name}</code> in {name}</a>'
    return f'<p class="to-twins">Both tracks side by side: {", ".join(links.values())}</p>' if links else ""


# ---------------------------------------------------------------- pages written by hand


def filled(text, live):
    """Return a hand-written page with what the README says in place of its {{ marks }}."""
    readme = README.read_text(encoding="utf-8")
    table = re.search(r"(?ms)^\| notebook \| what you learn.*?\n\n", readme)[0]
    marks = {
        "pages": re.sub(r"\[(\w+)\]\(notebooks/(\w+\.ipynb)\)", lambda m: f"[{m[1].replace('_', ' ')}]({m[2]})", table),
        "toctree": "\n".join(
            f"{HEADINGS[p.stem]} <{p.stem}>" if p.stem in HEADINGS else p.stem for p in notebook.books()
        ),
        "view": hero(live),
        **{
            name: re.search(rf"(?m)^!\[.*\]\(notebooks/pictures/{file}\)$", readme)[0].replace("(notebooks/", "(")
            for name, file in (("drawing", "gpt.svg"), ("ladder", "ladder.png"))
        },
        "hours": str(round(sum(map(int, re.findall(r"(?m)\| (\d+) \|$", table))) / 60)),
        "exercises": str(sum("exercise" in notebook.tags(c) for p in notebook.books() for c in notebook.read(p).cells)),
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda mark: marks[mark[1]], text)


def hero(live):
    """Return the first view of the course, as HTML, with the README's picture where no script runs."""
    found = re.search(r"(?m)^!\[(.*)\]\(notebooks/(pictures/attention\.png)\)$", README.read_text(encoding="utf-8"))
    width, height = struct.unpack(">II", (notebook.NOTEBOOKS / found[2]).read_bytes()[16:24])
    still = f'<img class="still" src="stills/attention.png" alt="{html.escape(found[1])}"'
    still += f' width="{width * 2 // 3}" height="{height * 2 // 3}">'
    return live_view(still, live["00_start_here"]["attention"])


def slug(words):
    """Return the anchor of a heading as JupyterLab makes it, so that links between notebooks lead there."""
    return words.replace(" ", "-").replace('"', "")


def buttons(repository):
    """Return the options of the theme that show a repository and lead to Binder and Colab; none without its address."""
    if not repository:
        return {}
    return {
        "repository_url": repository,
        "repository_branch": "main",
        "path_to_docs": "notebooks",
        "use_repository_button": True,
        "launch_buttons": {
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
        },
    }
