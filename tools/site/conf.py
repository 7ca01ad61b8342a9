"""Sphinx's configuration of the web edition."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.site.build import EXTRA  # noqa: E402 - after the path
from tools.site.pages import buttons  # noqa: E402

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

project = html_title = "GPT, twice"
author, copyright = "", ""
extensions = ["myst_nb", "sphinx_copybutton", "tools.site.mathml"]
templates_path = ["templates"]
exclude_patterns = [EXTRA]
suppress_warnings = ["myst.header"]  # a small heading that opens a cell

nb_execution_mode = "off"
nb_code_prompt_show, nb_code_prompt_hide = "Show the code", "Hide the code"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_heading_slug_func = "tools.site.pages.slug"

html_theme = "sphinx_book_theme"
html_static_path, html_css_files, html_js_files = ["static"], ["site.css"], ["site.js"]
html_favicon = "static/icon.svg"
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_copy_source = html_show_sourcelink = False
html_show_copyright = html_show_sphinx = False
html_theme_options = {
    "use_download_button": False,
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "home_page_in_toc": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_theme_options |= buttons(SETTINGS["project"].get("urls", {}).get("Repository", ""))
copybutton_selector = "div.highlight:not(.twins) > pre"
copybutton_exclude = ".linenos, .gp, .go"


def setup(app):
    """Copy what the sources hold ready, wherever they are."""
    app.connect("config-inited", lambda app, config: config.html_extra_path.append(str(Path(app.srcdir) / EXTRA)))
