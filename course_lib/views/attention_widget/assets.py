"""The browser's part of both views: the plain JavaScript and CSS files in ``js/``. No build step, no network.

anywidget wants one ES module, so the parts are joined in this order; they share one scope. The model view is built on
all parts of the attention view, which it opens inside itself.
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
    "learning",
    "view",
)

MODEL = HERE.parent / "model_widget"
MODEL_PARTS = ("record", "road", "opened", "model")
STEPS = HERE.parent / "steps_widget" / "js"  # which stands alone


@cache
def script(view="attention"):
    """Return the ES module of the view: "attention", "model" or "steps"."""
    if view == "steps":
        return (STEPS / "steps.js").read_text(encoding="utf-8") + "\nexport default { render: renderSteps };\n"
    files = [HERE / "js" / f"{name}.js" for name in PARTS]
    if view == "model":
        files += [MODEL / "js" / f"{name}.js" for name in MODEL_PARTS]
    render = {"attention": "render", "model": "render: renderModel"}[view]
    return "\n".join([*(file.read_text(encoding="utf-8") for file in files), f"export default {{ {render} }};\n"])


@cache
def style(view="attention"):
    """Return the style sheet of the view: "attention", "model" or "steps"."""
    if view == "steps":
        return (STEPS / "steps.css").read_text(encoding="utf-8")
    files = [HERE / "js" / "view.css"] + ([MODEL / "js" / "model.css"] if view == "model" else [])
    return "\n".join(file.read_text(encoding="utf-8") for file in files)
