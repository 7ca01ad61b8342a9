"""A computation graph as a picture: boxes for values and their gradients, arrows from inputs to results."""

import numpy as np

from . import style
from .figures import Picture, figure

SIGNS = {"__add__": "+", "__mul__": "×", "__sub__": "−", "__truediv__": "÷", "__pow__": "power", "__matmul__": "@"}


def plot_graph(result, names, *, alt):
    """Run ``result.backward()`` and draw the graph of ``result``, a single number made from NumPy-track Tensors.

    ``names``: {name: Tensor} for the leaves worth naming. Every box holds a value and below it the gradient that
    arrived. Afterwards the graph is used up, and the gradients have been added to the leaves. Before that, raises
    TypeError for anything but a Tensor of the NumPy track, and ValueError for more than one number or an empty ``alt``.
    """
    Picture(b"", alt, 0)
    if not all(hasattr(result, name) for name in ("parents", "operation", "retain_grad", "backward")):
        raise TypeError(f"plot_graph draws the graph of a Tensor of the NumPy track; got a {type(result).__name__}")
    if result.data.size != 1:
        raise ValueError(f"plot_graph starts from a single number; got shape {result.data.shape}")
    nodes, parents = [], {}
    stack = [result]
    while stack:
        node = stack.pop()
        if id(node) not in parents:
            parents[id(node)] = node.parents
            nodes.append(node)
            stack.extend(node.parents)
    operations = {id(node): SIGNS.get(node.operation, node.operation) for node in nodes}
    for node in nodes:
        node.retain_grad()
    result.backward()
    names = {id(tensor): name for name, tensor in names.items()}
    columns = columns_of(result, parents)
    positions = positions_of(columns)
    tall = max(len(column) for column in columns)
    with figure(1.55 * len(columns) + 0.4, tall + 0.5, alt=alt) as ax:
        for node in nodes:
            x, y = positions[id(node)]
            for parent in parents[id(node)]:
                px, py = positions[id(parent)]
                ax.annotate(
                    "", (x - 0.24, y), (px + 0.24, py), arrowprops={"arrowstyle": "->", "color": style.INK, "lw": 1}
                )
            title = names.get(id(node), operations[id(node)] or "number")
            value = f"{title}\n{_number(node.data)}"
            value += "" if node.grad is None else f"\ngrad {_number(node.grad)}"
            face = style.PALETTE[0] if id(node) in names else style.INK
            ax.text(
                x,
                y,
                value,
                ha="center",
                va="center",
                fontsize=9,
                parse_math=False,
                bbox={"boxstyle": "round,pad=0.35", "facecolor": style.CARD, "edgecolor": face, "linewidth": 1.4},
            )
        ax.set_xlim(-0.5, len(columns) - 0.5)
        ax.set_ylim(-0.6, tall - 0.4)
        ax.axis("off")


def columns_of(result, parents):
    """Return the nodes in columns by their longest path to the result, the result in the last one."""
    depth, layer, by_id = {}, [result], {}
    level = 0
    while layer:
        following = {}  # each node once: otherwise repeating k = k + k would double the work at every level
        for node in layer:
            depth[id(node)], by_id[id(node)] = level, node
            following.update((id(parent), parent) for parent in parents[id(node)])
        layer, level = list(following.values()), level + 1
    return [[by_id[key] for key, d in depth.items() if d == at] for at in range(level - 1, -1, -1)]


def positions_of(columns):
    """Return {id: (x, y)} of each node, every column centred."""
    tall = max(len(column) for column in columns)
    return {
        id(node): (x, (tall - len(column)) / 2 + len(column) - 1 - row)
        for x, column in enumerate(columns)
        for row, node in enumerate(column)
    }


def _number(array):
    return f"{np.asarray(array).reshape(-1)[0]:.4g}"
