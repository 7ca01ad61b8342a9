"""Drawings in steps: how values and gradients go through a graph, and how one word attends to all."""

import numpy as np

from ..graphs import SIGNS, columns_of, positions_of
from ..labels import short, visible
from .marks import EDGE, INK, LIT_INK, MUTED, Sketch, signed

WIDE, HIGH, STEP_X, STEP_Y = 104, 64, 142, 88  # of a box, and from one to the next


def _brief(array):
    return signed(np.asarray(array).reshape(-1)[0], 4).rstrip("0").rstrip(".")


def draw_backward_steps(result, names):
    """Draw the graph of ``result``, a single number of the NumPy track, once per step: values forward, gradients back.

    ``names``: {name: Tensor} for the leaves worth naming. Returns a list of drawings. The graph stays as it is, and no
    gradient reaches its leaves: ``result.backward()`` can follow. Raises ValueError for more than one number.
    """
    if result.data.size != 1:
        raise ValueError(f"the steps start from a single number; got shape {result.data.shape}")
    order = result.topological_order()
    constants = {id(p): p for node in order for p in node.parents if not p.requires_grad}
    order = [*constants.values(), *order]
    columns = columns_of(result, {id(node): node.parents for node in order})
    tall, titles = max(map(len, columns)), {id(tensor): name for name, tensor in names.items()}
    for node in order:
        titles.setdefault(id(node), SIGNS.get(node.operation, node.operation) or "number")
    places = {key: (70 + STEP_X * x, 52 + STEP_Y * (tall - 1 - y)) for key, (x, y) in positions_of(columns).items()}
    known, grads, drawings = {id(node) for node in order if not node.parents}, {}, []

    def called(node):
        name, value = titles[id(node)], _brief(node.data)
        return f"{name} ({value})" if node._backward is None else f"{value} ({name})"

    def add(told, lit, flowing=()):
        d = Sketch(int(140 + STEP_X * (len(columns) - 1)), int(104 + STEP_Y * (tall - 1)), told)
        for node in order:
            for parent in node.parents:
                (x0, y0), (x1, y1) = places[id(parent)], places[id(node)]
                back = (id(node), id(parent)) in flowing
                ends = [(x0 + WIDE / 2, y0), (x1 - WIDE / 2, y1)]
                d.path(ends[::-1] if back else ends, EDGE if back else MUTED, 3 if back else 1.3, arrow=True)
        for node in order:
            (x, y), key = places[id(node)], id(node)
            d.part(x, y, WIDE, "", lit=key in lit, height=HIGH)
            d.label(x, y - 13, short(visible(titles[key]), 13), 13, INK, "bold" if key in lit else "normal")
            d.label(x, y + 5, _brief(node.data) if key in known else "?", 13)
            if key in grads:
                d.label(x, y + 23, f"grad {_brief(grads[key])}", 12, LIT_INK, "bold")
        drawings.append(d)

    add("The leaves have their values; everything else is still to be computed.", ())
    for node in order:
        if node.parents:
            known.add(id(node))
            sign, made_of = titles[id(node)], [_brief(parent.data) for parent in node.parents]
            how = f" {sign} ".join(made_of) + " =" if len(sign) == 1 else f"{sign} of {' and '.join(made_of)} is"
            add(f"Forward: {how} {_brief(node.data)}.", {id(node)})
    grads[id(result)] = np.ones_like(result.data)
    add("Backward: the result grows by 1 when it grows by 1, so its own gradient is 1.", {id(result)})
    for node in reversed(order):
        if not node.parents:
            continue
        told = []
        for parent, sent in zip(node.parents, node._backward(grads[id(node)]), strict=True):
            if not parent.requires_grad:
                continue
            before = grads.get(id(parent))
            grads[id(parent)] = sent if before is None else before + sent
            more = f", added to {_brief(before)}: {_brief(grads[id(parent)])}" if before is not None else ""
            told.append(f"{_brief(sent)} to {called(parent)}{more}")
        flowing = {(id(node), id(parent)) for parent in node.parents if parent.requires_grad}
        add(
            f"Backward: {_brief(grads[id(node)])} arrives at {called(node)}, which sends {' and '.join(told)}.",
            {id(node)},
            flowing,
        )
    return drawings


def draw_attention_steps(words, vectors):
    """Draw attention without matrices, once for each word that asks: dot products, softmax, mix. Returns a list.

    ``vectors`` (T, C), one for each of the ``words``; the scores are their dot products, as on page 03.
    """
    x = np.asarray(vectors, float)
    if x.shape[:1] != (len(words),):
        raise ValueError(f"{len(words)} words need as many vectors; got shape {x.shape}")
    scores = x @ x.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    side, (T, C), drawings = 40, x.shape, []
    for i, word in enumerate(words):
        most = int(weights[i].argmax())
        mixed = weights[i] @ x
        d = Sketch(
            502 + (side + 52) * C, 110 + side * T,
            f"“{word}” asks: its dot products with {', '.join(words)} are "
            f"{', '.join(signed(s, 0) for s in scores[i])}; softmax makes them "
            f"{', '.join(signed(w, 2) for w in weights[i])}, most for “{words[most]}”; "
            f"the mix is {', '.join(signed(m, 2) for m in mixed)}.",
        )  # fmt: skip
        top, left = 64, 110
        d.label(left + C * side / 2, 30, "the words", 13, INK, "bold")
        d.grid(left, top, x.tolist(), side, digits=0)
        for j, name in enumerate(words):
            lit = j == i
            d.label(left - 10, top + side * (j + 0.5) + 4.5, name, 13, LIT_INK if lit else INK,
                    "bold" if lit else "normal", "end")  # fmt: skip
        d.around(left, top + side * i, C * side, side, EDGE)
        at = left + C * side
        d.path([(at + 12, top + side * T / 2), (at + 62, top + side * T / 2)], arrow=True)
        d.label(at + 37, top + side * T / 2 - 12, f"· {word}", 12, LIT_INK)
        at += 76
        d.label(at + side / 2, 30, "scores", 13, INK, "bold")
        d.grid(at, top, scores[i][:, None].tolist(), side, digits=0)
        d.path([(at + side + 12, top + side * T / 2), (at + side + 74, top + side * T / 2)], arrow=True)
        d.label(at + side + 43, top + side * T / 2 - 12, "softmax", 12, MUTED)
        at += side + 88
        d.label(at + 30, 30, "weights", 13, INK, "bold")
        d.grid(at, top, weights[i][:, None].tolist(), 60, most=1, digits=2, high=side)
        d.path([(at + 72, top + side * T / 2), (at + 134, top + side * T / 2)], arrow=True)
        d.label(at + 103, top + side * T / 2 - 12, "mix", 12, MUTED)
        at += 148
        d.label(at + C * 52 / 2, 30, f"context of “{word}”", 13, INK, "bold")
        d.grid(at, top + side * (T - 1) / 2, [mixed.tolist()], 52, most=np.abs(x).max(), digits=2, high=side)
        d.label(
            d.width / 2, top + side * T + 28, "the row that asks is framed; blue: above zero, orange: below", 12, MUTED
        )
        drawings.append(d)
    return drawings
