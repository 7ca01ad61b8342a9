"""Pages that work without a kernel and without a network: one view, or a whole notebook."""

import base64
import json
from pathlib import Path

from ..labels import escaped
from . import assets

HERE = Path(__file__).parent / "page"


def page_of(state, title, path=None):
    """One page with the view in it. state: its traits; bytes in it travel as base64."""
    host = (HERE / "host.js").read_text(encoding="utf-8")
    text = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escaped(title)}</title>
<style>
body {{ margin: 0 auto; padding: 16px; max-width: 1100px; background: Canvas; }}
{assets.style()}</style>
</head>
<body>
<main id="view"><noscript>This page draws its picture with JavaScript.</noscript></main>
<script type="application/json" id="state">{embedded(state)}</script>
<script type="application/json" id="module">{embedded(assets.script())}</script>
<script>
{host}</script>
</body>
</html>
"""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return text


def embedded(value):
    """JSON that may stand inside a <script>: no "<" can end it, and bytes are {"base64": …}."""

    def plain(thing):
        if isinstance(thing, (bytes, memoryview)):
            return {"base64": base64.b64encode(thing).decode("ascii")}
        if isinstance(thing, dict):
            return {key: plain(item) for key, item in thing.items()}
        return [plain(item) for item in thing] if isinstance(thing, (list, tuple)) else thing

    return json.dumps(plain(value), allow_nan=False).replace("<", "\\u003c")


def export_notebook(path, target=None, execute=True, timeout=600):
    """A notebook as one HTML page whose attention views work offline; returns the path of the page.

    The notebook is executed first (its file stays as it is), since a stored one has pictures only. Formulas stay as
    they are written: the library that draws them would have to come from the network.
    """
    import nbformat
    from nbconvert.exporters import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    path = Path(path)
    book = nbformat.read(path, as_version=4)
    if execute:
        ExecutePreprocessor(timeout=timeout, store_widget_state=True).preprocess(
            book, {"metadata": {"path": str(path.parent)}}
        )
    exporter = HTMLExporter(
        template_name="offline", extra_template_basedirs=[str(HERE)], mathjax_url="", embed_images=True
    )
    host = (HERE / "host.js").read_text(encoding="utf-8")
    text, _ = exporter.from_notebook_node(book, {"metadata": {"name": path.stem}, "attention_host": host})
    target = path.with_suffix(".html") if target is None else Path(target)
    target.write_text(text, encoding="utf-8", newline="\n")
    return target
