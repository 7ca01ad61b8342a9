"""What attention does in a sentence: a note or a look back, arcs of real weights, the induction circuit."""

import numpy as np

from ..labels import quoted
from ..style import INK, MUTED
from .marks import BLUE, EDGE, LIT_INK, TONES, Sketch


def draw_note_and_look(words=("Ming", "bought", "apples", "because", "they", "were", "fresh"), kept=0.7):
    """Draw a recurrent network, which passes a note along, above attention, which looks back at every word.

    ``kept``: the fraction of a note that is left after each rewriting.
    """
    T, step = len(words), 126
    left = [kept**n for n in range(T)]
    d = Sketch(
        64 + T * step, 424,
        f"The words {' '.join(words)}, twice. Above, a recurrent network: a note is passed from word to word and "
        f"rewritten each time. If {kept:.0%} of it is kept, the share of {quoted(words[0])} shrinks: "
        f"{', '.join(f'{share:.2f}' for share in left)}. Below, attention: {quoted(words[-1])} looks back at each word "
        "directly, one step whatever the distance.",
    )  # fmt: skip
    xs = [32 + step * (n + 0.5) for n in range(T)]
    green, blue = TONES["green"], TONES["blue"]
    d.label(24, 34, f"A note passed along, {T - 1} times rewritten", 14, weight="bold", anchor="start")
    d.label(24, 55, f"filled: the share of “{words[0]}”, if {kept:.0%} is kept each time", 12, MUTED, anchor="start")
    for n, x in enumerate(xs):
        d.path([(x, 168), (x, 139)], arrow=True)
        d.shape(x - 33, 104, 66, 34, "#ffffff", "none", 0)
        d.shape(x - 33, 104, 66 * left[n], 34, green[0], "none", 0, 3)
        d.shape(x - 33, 104, 66, 34, "none", green[1])
        d.label(x, 125.5, f"{left[n]:.2f}", 12)
        d.part(x, 186, 88, words[n])
        if n:
            d.path([(xs[n - 1] + 34, 121), (x - 34, 121)], green[1], 2, arrow=True)
    d.label(24, 246, "Looking back: one step, however far", 14, weight="bold", anchor="start")
    y, last = 384, xs[-1]
    for n, x in enumerate(xs):
        far = T - 1 - n
        if far:
            d.arc(last - 32 + 9 * far, x, y - 19, 16 + 15 * far, blue[1], 1.8, arrow=True)
        d.part(x, y, 88, words[n], lit=not far)
    return d


def draw_arcs(*sentences, least=0.05):
    """Draw what the last token of each of the ``sentences``, pairs (tokens, weights (T,)), attends to.

    An arc is as thick as the weight; weights from ``least`` on have one. Raises ValueError unless there is one weight
    per token.
    """
    checked = [(list(tokens), np.asarray(weights, float)) for tokens, weights in sentences]
    told, high, widest = [], 188, 0
    for tokens, weights in checked:
        if weights.shape != (len(tokens),):
            raise ValueError(f"weights of shape {weights.shape}: expected ({len(tokens)},), one per token")
        heavy = [f"{quoted(t)} {w:.2f}" for t, w in zip(tokens[:-1], weights) if w >= least]
        told.append(f"{' '.join(tokens)}: {', '.join(heavy)}.")
        widest = max(widest, sum(_room(t) for t in tokens))
    d = Sketch(
        round(48 + min(widest, 900)), 24 + high * len(checked),
        f"Arcs from the last token of a sentence to what one head attends to, thick as the weight. {' '.join(told)} "
        f"Weights below {least:g} are left out.",
    )  # fmt: skip
    differ = {n for n, same in enumerate(zip(*(tokens for tokens, _ in checked))) if len(set(same)) > 1}
    for row, (tokens, weights) in enumerate(checked):
        size = np.array([_room(t) for t in tokens])
        xs = 24 + min(1, 900 / widest) * (np.cumsum(size) - size / 2)
        y, end, far = 24 + high * row + 146, xs[-1], max(xs[-1] - xs[0], 1)
        heavy = [n for n in range(len(tokens) - 1) if weights[n] >= least]
        for n in sorted(heavy, key=lambda n: weights[n]):
            strong = weights[n] == weights.max()
            d.arc(end, xs[n], y - 20, 30 + 88 * (end - xs[n]) / far, EDGE if strong else BLUE, 1 + 8 * weights[n])
            ink = LIT_INK if strong else TONES["blue"][1]
            d.label(xs[n], y + 20, f"{weights[n]:.2f}", 12, ink, "bold")
        for n, (x, token) in enumerate(zip(xs, tokens)):
            bold = n in heavy or n == len(tokens) - 1 or n in differ
            d.label(x, y, token, 13, INK if bold else MUTED, "bold" if bold else "normal")
    return d


def _room(token):
    return max(24, 8.4 * len(token) + 14)


def draw_induction(first="A", second="B"):
    """Draw the induction circuit on the text A B … A: the previous-token head writes, the induction head reads."""
    a, b = first, second
    d = Sketch(
        900, 360,
        f"The induction circuit on the text {a} {b} … {a}. In the first layer a previous-token head at {b} looks one "
        f"position back and writes into the stream of {b}: after {a}. In the second layer the induction head at the "
        f"last {a} asks what came after {a}, finds the note at {b}, and reads {b}: the prediction is {b}.",
    )  # fmt: skip
    xs, rows = (150, 350, 550, 750), (48, 152, 256)
    for x, token in zip(xs, (a, b, "…", a)):
        d.path([(x, rows[0] + 18), (x, rows[2] + 20)], "#9cc4e0", 5)
        d.part(x, rows[0], 60, token)
    for y, name in zip(rows, ("tokens", "after layer 1", "after layer 2")):
        d.label(24, y + 4.5, name, 12, MUTED, anchor="start")
    green, orange = TONES["green"], TONES["orange"]

    def noted(x, y, token, note, tone):
        d.shape(x - 54, y - 18, 108, 36)
        d.label(x - 33, y + 4.5, token)
        d.shape(x - 15, y - 12, 62, 24, tone[0], tone[1], 1.3, 4)
        d.label(x + 16, y + 4.3, note, 12, tone[1], "bold")

    # layer 1: the token before is written down
    d.path([(xs[0], 88), (xs[1] - 56, rows[1] - 8)], green[1], 3, arrow=True)
    d.label(xs[1] + 14, 90, "previous-token head:", 12, green[1], "bold", "start")
    d.label(xs[1] + 14, 107, f"writes “after {a}”", 12, green[1], anchor="start")
    d.part(xs[0], rows[1], 60, a)
    noted(xs[1], rows[1], b, f"after {a}", green)
    # layer 2: whoever has that note is read
    noted(xs[3], rows[1], a, f"after {a}?", orange)
    d.path([(xs[1] + 56, rows[1] + 8), (xs[3] - 58, rows[2] - 8)], orange[1], 3, arrow=True)
    d.label(xs[1] + 14, 232, "induction head:", 12, orange[1], "bold", "start")
    d.label(xs[1] + 14, 249, f"finds the note, reads {b}", 12, orange[1], anchor="start")
    noted(xs[3], rows[2], a, f"next: {b}", orange)
    d.path([(xs[3], rows[2] + 18), (xs[3], rows[2] + 46)], arrow=True)
    d.label(xs[3], rows[2] + 66, f"prediction: {b}", 14, weight="bold")
    return d
