"""The browser's part of the view: the plain JavaScript and CSS files in ``js/``. No build step, no network.

anywidget wants one ES module, so the parts are joined in this order; they share one scope, and the last one exports.
"""

from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PARTS = (
    "basics",
    "colours",
    "matrices",
    "surfaces",
    "frame",
    "heatmap",
    "arcs",
    "heads",
    "controls",
    "reading",
    "products",
    "saving",
    "keyboard",
    "laboratory",
    "view",
)


@cache
def script():
    """Return the ES module."""
    return "\n".join((HERE / "js" / f"{name}.js").read_text(encoding="utf-8") for name in PARTS)


@cache
def style():
    """Return the style sheet."""
    return (HERE / "js" / "view.css").read_text(encoding="utf-8")
