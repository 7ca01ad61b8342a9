#!/usr/bin/env python
"""Build the web edition into build/site:  python tools/site/build.py [--quick]

The stored outputs of the notebooks are shown as they are; only the cells up to a live view are run again, to make its
page, and what they give is kept in build/views for the next time. ``--quick`` leaves out the views that a training run
has to come before: their pictures stay still.
"""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools import notebook
from tools.site import pages, reference, twins, views

HERE, ROOT = Path(__file__).parent, notebook.ROOT
SOURCE, SITE = ROOT / "build" / "site-source", ROOT / "build" / "site"
EXTRA = "extra"  # what is copied as it is: pictures of outputs, pages of views


def write_sources(source=SOURCE, quick=False):
    """Write all that Sphinx reads: the notebooks, with their pictures and live views as HTML, and the other pages."""
    shutil.rmtree(source, ignore_errors=True)
    extra = source / EXTRA
    shutil.copytree(notebook.NOTEBOOKS / "pictures", source / "pictures")
    live = views.write_pages(extra / "live", quick)
    for path in notebook.books():
        book = pages.page_of_notebook(notebook.read(path), extra / "stills", live.get(path.stem, {}))
        notebook.write(source / path.name, book)
    shutil.copy(notebook.NOTEBOOKS / "pictures" / "attention.png", extra / "stills")
    for path in HERE.glob("pages/*.md"):
        text = pages.filled(path.read_text(encoding="utf-8"), live)
        (source / path.name).write_text(text, encoding="utf-8")
    (source / "twins").mkdir()
    for name, text in {**twins.all_pages(), "reference.md": reference.page()}.items():
        (source / name).write_text(text, encoding="utf-8")


def run_sphinx(source=SOURCE, site=SITE):
    """Build the pages, every warning an error; return Sphinx's exit code."""
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "html", "-d"]
    command += [source.with_name(f"{source.name}-doctrees"), "-c", HERE, source, site]
    return subprocess.run(command, cwd=ROOT).returncode


def trim(site=SITE):
    """Remove what no page needs, let a page without JavaScript be light, and name what opens a part of the contents.

    That is the icons as a script of 1.5 MB (the font has them, too), maps for debuggers, and the theme's templates.
    """
    script = re.compile(r"\s*<script[^>]*fontawesome\.js[^>]*></script>")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        less = re.sub(r'(<html[^>]* data-theme=)"auto"', r'\1"light"', script.sub("", text))
        less = less.replace('<summary><span class="toctree', '<summary aria-label="Pages below"><span class="toctree')
        page.write_text(less, encoding="utf-8", newline="\n")
    for path in {path for name in ("*.map", "fontawesome.js*", "*-macros.html") for path in site.rglob(name)}:
        path.unlink()


def main(arguments):
    start = time.monotonic()
    write_sources(quick="--quick" in arguments)
    middle = time.monotonic()
    if code := run_sphinx():
        return code
    trim()
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) / 1e6
    print(f"{size:.1f} MB in {time.monotonic() - start:.0f} s (sources and views {middle - start:.0f} s)")
    print(f"Open {(SITE / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
