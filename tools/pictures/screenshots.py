"""Take pictures of a whole notebook as JupyterLab shows it, for a person to look at.

    python tools/pictures/screenshots.py notebooks/03_attention.ipynb OUTDIR [--light | --dark] [--no-run]

Opens a copy in headless Chromium, runs all cells (--no-run: shows the stored outputs), scrolls through it and writes
OUTDIR/03_attention-light-01.png and so on, then the same in the dark theme. Exit code 1 if a cell failed.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

import lab  # noqa: E402, RUF100 - the harness is among the browser tests

WIDTH, HEIGHT = 1080, 1480  # of the window; the notebook itself gets about 1000 × 1400


def slices(page, folder, name, theme):
    """Write one PNG for each screenful of the notebook; return how many."""
    lab.choose_theme(page, theme)
    page.wait_for_timeout(400)
    pane = page.locator(".jp-NotebookPanel:visible .jp-WindowedPanel-outer")
    box = pane.bounding_box()
    step = int(box["height"]) - 40  # a little overlap, so that no line is cut in both pictures
    n, top, total = 0, 0, 1
    while top < total:
        n += 1
        pane.evaluate("(e, top) => e.scrollTo(0, top)", top)
        page.wait_for_timeout(150)
        page.screenshot(path=str(folder / f"{name}-{theme}-{n:02d}.png"), clip=box)
        # measured anew each time: cells get their real height only when they come into view
        total = -40 + pane.evaluate("""e => Math.max(...[...e.querySelectorAll('.jp-Cell')]
            .map(cell => cell.getBoundingClientRect().bottom)) - e.getBoundingClientRect().top + e.scrollTop""")
        top += step
    return n


def main():
    parser = argparse.ArgumentParser(description="Screenshots of a notebook in JupyterLab, light and dark.")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("outdir", type=Path)
    parser.add_argument("--light", dest="themes", action="store_const", const=["light"], help="the light theme only")
    parser.add_argument("--dark", dest="themes", action="store_const", const=["dark"], help="the dark theme only")
    parser.add_argument("--no-run", action="store_true", help="show the stored outputs, run nothing")
    chosen = parser.parse_args()
    if reason := lab.why_not():
        sys.exit(reason)
    chosen.outdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(chosen.notebook, folder)
        if (pictures := chosen.notebook.parent / "pictures").is_dir():  # what the text shows
            shutil.copytree(pictures, Path(folder) / "pictures")
        with lab.running_lab(folder) as server, lab.chromium() as browser:
            page = lab.open_notebook(browser, server, chosen.notebook.name, width=WIDTH, height=HEIGHT)
            lab.command(page, "application:toggle-left-area")
            if not chosen.no_run:
                lab.run_all(page, timeout=600_000)
            for theme in chosen.themes or ["light", "dark"]:
                print(
                    f"{theme}: {slices(page, chosen.outdir, chosen.notebook.stem, theme)} pictures in {chosen.outdir}"
                )
            found = [f"cell {n}: {line}" for n, line in lab.troubles(page)]
            if chosen.no_run:
                found = [line for line in found if not line.endswith(": was not run")]
            found += [f"outside request: {url}" for url in page.outside] + page.errors
    print("\n".join(found).encode("ascii", "backslashreplace").decode() or "no error outputs, no console errors")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
