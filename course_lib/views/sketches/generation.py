"""Writing one token after the other: what a cache keeps, and a beam search as the tree of what it tried."""

from ...inference import beam_search
from ..labels import short, visible
from ..style import GRID, MUTED
from .marks import LIT_INK, TONES, Sketch, signed

TEXT = "hello wo"


def draw_cache(text=TEXT):
    """Draw the keys and values that writing a text computes: a triangle without a cache, a diagonal with one."""
    tokens, T, side = [visible(c) for c in text], len(text), 30
    whole = T * (T + 1) // 2
    d = Sketch(
        900, 126 + T * side,
        f"Writing {T} tokens, one row per step, a cell for each key and value pair of a layer. Left, without a cache, "
        f"every step computes those of all tokens so far again, 1 + 2 + … + {T} = {whole} in all. Right, with a cache, "
        f"every step computes one, the newest, and reads the earlier ones: {T} in all.",
    )  # fmt: skip
    tones = {"again": TONES["orange"], "new": TONES["blue"], "kept": TONES["grey"]}
    for left, cached, title, count in (
        (90, False, "Without a cache: the triangle", f"1 + 2 + … + {T} = {whole} computed"),
        (474, True, "With a cache: the diagonal", f"{T} computed, the rest is kept"),
    ):
        d.label(left - 66, 34, title, 14, weight="bold", anchor="start")
        for k, token in enumerate(tokens):
            d.label(left + side * (k + 0.5), 62, token, 13, weight="bold")
        for step in range(T):
            y = 72 + side * step
            d.label(left - 10, y + 19.5, f"step {step + 1}", 12, MUTED, anchor="end")
            for k in range(T):
                kind = "new" if k == step else "kept" if cached else "again"
                if k <= step:
                    pale, strong = tones[kind]
                    d.shape(left + side * k, y, side, side, pale, strong if kind != "kept" else "#a9a69b", 1, 0)
                    weight = "bold" if kind == "new" else "normal"
                    d.label(left + side * (k + 0.5), y + 19.5, tokens[k], 12, strong, weight)
                else:
                    d.shape(left + side * k, y, side, side, "none", GRID, 0.8, 0)
        d.label(left, 72 + T * side + 26, count, 13, anchor="start")
    for n, (kind, word) in enumerate((("new", "new"), ("again", "computed again"), ("kept", "kept"))):
        y = 92 + 28 * n
        d.shape(734, y, 16, 16, tones[kind][0], tones[kind][1] if kind != "kept" else "#a9a69b", 1, 0)
        d.label(758, y + 12.5, word, 12, MUTED, anchor="start")
    d.path([(386, 24), (386, d.height - 24)], GRID, 1.2)
    return d


def beam_steps(model, source, begin, end, max_length, num_beams):
    """Return for each step the hypotheses that ``beam_search`` holds after it, best first: a list of lists."""
    steps = []
    for length in range(1, max_length + 1):
        steps.append(beam_search(model, source, begin, end, length, num_beams))
        if all(h.ended for h in steps[-1]):
            break
    return steps


def draw_beam(model, source, begin, end, max_length, num_beams=3, *, name=str):
    """Draw a beam search of an encoder–decoder for one source (S,) as a tree, with its log-probabilities.

    A column holds the ``num_beams`` hypotheses that are left after a step, best first, each with its last token and
    the mean log-probability per token, by which it is ranked. ``name`` turns an id into a word; the end token is ■.
    Raises what ``beam_search`` raises.
    """
    steps = beam_steps(model, source, begin, end, max_length, num_beams)
    best = steps[-1][0]
    wide = min(150, (960 - 120) // len(steps))
    told = " ".join(name(token) for token in best.ids)
    d = Sketch(
        110 + wide * len(steps), 62 * num_beams + 62,
        f"A beam search of width {num_beams} as a tree. Each column is a step and holds the {num_beams} best "
        f"beginnings, best first: the last token and the mean log-probability per token. The winner, lit, is “{told}”.",
    )  # fmt: skip

    def path_of(h):
        return (*h.ids, end) if h.ended else h.ids

    places, winning = {(): (70, 46 + 31 * num_beams)}, path_of(best)
    d.dot(60, 46 + 31 * num_beams, 6, MUTED)
    for n, step in enumerate(steps):
        x = 110 + wide * n
        d.label(x + wide / 2 - 12, 34, f"step {n + 1}", 12, MUTED)
        here = {}
        for rank, h in enumerate(step):
            y, tokens = 78 + 62 * rank, path_of(h)
            old = h.ended and len(tokens) < n + 1
            parent = places[tokens if old else tokens[:-1]]
            lit = tokens == winning[: len(tokens)]
            box = wide - 26
            d.path([parent, (x - 1, y)], LIT_INK if lit else MUTED, 2.4 if lit else 1.2, arrow=True)
            word = "■" if h.ended else short(visible(name(tokens[-1])), int(box / 8.6))
            d.part(x + box / 2, y, box, word, signed(h.score(True), 2), lit, 38)
            here[tokens] = (x + box + 2, y)
        places = here
    return d
