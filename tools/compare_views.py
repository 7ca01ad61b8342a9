"""AttentionView beside BertViz and CircuitsVis on the same tensors; prints a table in Markdown.

    python tools/compare_views.py [--others FOLDER] [--scripts FOLDER] [--sizes 64 128] [--longest 240]

--others: a folder with bertviz and circuitsvis (pip install --no-deps --target FOLDER bertviz circuitsvis ...); without
it only the course's own view is measured. --scripts: a folder with require.min.js, d3.min.js and jquery.min.js, given
to BertViz in place of the network. Times are CPU time of the kernel and of the page's main thread, so that other work
on the machine counts little.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

WORDS = "the cat sat on a mat and then it ran to the door of an old house".split()


def tensors(size, layers=12, heads=12):
    """Causal softmax rows (L, H, T, T), float32, their mask and tokens."""
    scores = 2 * np.random.default_rng(0).normal(size=(layers, heads, size, size)).astype(np.float32)
    allow = np.tri(size, dtype=bool)
    e = np.where(allow, np.exp(scores), 0)
    return e / e.sum(-1, keepdims=True), allow, [WORDS[n % len(WORDS)] for n in range(size)]


def ours(weights, allow, tokens):
    from course_lib.views import attention_view

    view = attention_view(weights, tokens, allow=allow)
    data, _ = view._repr_mimebundle_()
    stored = sum(len(data[name]) for name in ("image/png", "text/plain"))
    return view.to_html(), stored


def bertviz(weights, allow, tokens):
    import torch
    from bertviz import head_view

    html = head_view([torch.from_numpy(layer[None]) for layer in weights], list(tokens), html_action="return").data
    loader = "https" + "://cdnjs.cloudflare.com/ajax/libs/require.js/2.3.6/require.min.js"  # shown by its own display
    return f'<!doctype html><meta charset="utf-8"><script src="{loader}"></script>{html}', len(html)


def circuitsvis(weights, allow, tokens):
    import circuitsvis

    names = [f"L{layer}H{head}" for layer in range(weights.shape[0]) for head in range(weights.shape[1])]
    flat = weights.reshape(-1, *weights.shape[2:])
    html = circuitsvis.attention.attention_heads(flat, list(tokens), names).local_src
    return f'<!doctype html><meta charset="utf-8"><body>{html}', len(html)


BUILDERS = {"AttentionView": ours, "BertViz head_view": bertviz, "CircuitsVis attention_heads": circuitsvis}
# What is moved over, to see what an interaction costs: the picture itself, a token, a small head.
TARGETS = {
    "AttentionView": (".attention-figure", 20),
    "BertViz head_view": ("#vis svg, svg", 20),
    "CircuitsVis attention_heads": ("canvas", 5),
}


class Measured:
    """A page in Chromium and the CPU seconds of its main thread."""

    def __init__(self, browser, scripts):
        self.page = browser.new_context(viewport={"width": 1200, "height": 1000}).new_page()
        self.page.set_default_timeout(0)
        self.asked = []
        self.page.route("**/*", lambda route: self.answer(route, scripts))
        self.session = self.page.context.new_cdp_session(self.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def answer(self, route, scripts):
        url = route.request.url
        if url.startswith(("file:", "blob:", "data:")):
            return route.continue_()
        self.asked.append(url)
        name = url.rsplit("/", 1)[1]
        name = name if name.endswith(".js") else name + ".js"
        if scripts and (Path(scripts) / name).exists():
            return route.fulfill(path=Path(scripts) / name)
        return route.abort()

    def cpu(self):
        metrics = {m["name"]: m["value"] for m in self.session.send("Performance.getMetrics")["metrics"]}
        return metrics["TaskDuration"]

    def until_quiet(self, longest):
        """CPU seconds until the page has nothing more to do; None if that takes longer than so many seconds."""
        end, last, since = time.monotonic() + longest, -1.0, time.monotonic()
        while time.monotonic() < end:
            now = self.cpu()
            if now - last > 0.02:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > 3 and now > 0.01:
                return last
            time.sleep(0.25)
        return None


def measure(name, size, browser, folder, scripts, longest):
    """{column: text} of one row."""
    weights, allow, tokens = tensors(size)
    BUILDERS[name](
        *(
            a[:1, :1, :4, :4] if n == 0 else a[:4, :4] if n == 1 else a[:4]
            for n, a in enumerate((weights, allow, tokens))
        )
    )
    start = time.process_time()
    html, stored = BUILDERS[name](weights, allow, tokens)
    built = time.process_time() - start
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    row = {"in the notebook": f"{stored / 1e6:.2f} MB", "as a page": f"{len(html.encode()) / 1e6:.2f} MB"}
    row["kernel"] = f"{built:.2f} s"
    measured = Measured(browser, scripts)
    try:
        measured.page.goto(path.as_uri(), wait_until="commit", timeout=longest * 1000)
        shown = measured.until_quiet(longest)
        row["to show"] = f"> {longest} s" if shown is None else f"{shown:.2f} s"
        row["an interaction"] = "-" if shown is None else f"{interaction(measured, *TARGETS[name]):.1f} ms"
    finally:
        row["network"] = f"{len(set(measured.asked))} scripts" if measured.asked else "none"
        measured.page.context.close()
    return row


def interaction(measured, selector, steps):
    """CPU milliseconds of one movement of the mouse over it, drawing included."""
    page = measured.page
    box = page.locator(selector).first.bounding_box()
    before = measured.cpu()
    for n in range(steps):
        page.mouse.move(
            box["x"] + box["width"] * (0.2 + 0.02 * n), box["y"] + min(box["height"], 700) * (0.4 + 0.02 * n)
        )
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return 1000 * (measured.cpu() - before) / steps


def main():
    parser = argparse.ArgumentParser(description="AttentionView beside BertViz and CircuitsVis, as a table.")
    parser.add_argument("--others", type=Path)
    parser.add_argument("--scripts", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--longest", type=int, default=240, help="seconds to wait for a page")
    chosen = parser.parse_args()
    import lab

    if reason := lab.why_not():
        sys.exit(reason)
    if chosen.others:
        sys.path.append(str(chosen.others))
    names = list(BUILDERS) if chosen.others else ["AttentionView"]
    with tempfile.TemporaryDirectory() as folder, lab.chromium() as browser:
        columns = None
        for size in chosen.sizes:
            for name in names:
                row = measure(name, size, browser, Path(folder), chosen.scripts, chosen.longest)
                if columns is None:
                    columns = ["view", "tensor", *row]
                    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
                print("| " + " | ".join([name, f"12 x 12 x {size} x {size}", *row.values()]) + " |", flush=True)


if __name__ == "__main__":
    main()
