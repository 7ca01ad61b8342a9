"""One view as a page that works without a kernel and without a network."""

import base64
import json
from pathlib import Path

from ..labels import escaped
from . import assets

HERE = Path(__file__).parent / "page"


def page_of(state, title, path=None, view="attention", still=None):
    """Return a page with the view whose traits are ``state``; write it to ``path`` if one is given.

    ``view``: its kind, as in ``assets``. ``still``: the attributes of an image for readers without JavaScript.
    """
    without = "This page draws its picture with JavaScript."
    if still is not None:
        without = "<img " + " ".join(f'{name}="{escaped(str(value))}"' for name, value in still.items()) + ">"
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
{assets.style(view)}</style>
</head>
<body>
<main id="view"><noscript>{without}</noscript></main>
<script type="application/json" id="state">{embedded(state)}</script>
<script type="application/json" id="module">{embedded(assets.script(view))}</script>
<script>
{host}</script>
</body>
</html>
"""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return text


def embedded(value):
    """Return JSON that is safe inside a <script>: it contains no "<", and bytes become {"base64": ...}."""

    def plain(thing):
        if isinstance(thing, (bytes, memoryview)):
            return {"base64": base64.b64encode(thing).decode("ascii")}
        if isinstance(thing, dict):
            return {key: plain(item) for key, item in thing.items()}
        return [plain(item) for item in thing] if isinstance(thing, (list, tuple)) else thing

    return json.dumps(plain(value), allow_nan=False).replace("<", "\\u003c")
