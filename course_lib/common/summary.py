"""A model as a table: its parts, their shapes and parameter counts; on request the shapes that flow through it."""

import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from html import escape
from math import prod


@dataclass(frozen=True)
class Row:
    """One part of a model, or ``times`` equal parts, one per block."""

    part: str
    kind: str  # its class
    weights: str  # name and shape of each of its parameters; for a shared one, the name under which it is counted
    parameters: int  # of all ``times`` parts together
    output: tuple | None = None  # shape of its output; None: not asked for, or not called
    times: int = 1


@dataclass(frozen=True)
class Summary:
    """The result of ``model.summary()``: an HTML table in a notebook, aligned text anywhere else."""

    title: str
    rows: tuple
    total: int
    output: tuple | None = None  # of the whole model; None: not run

    def _table(self):
        """Return the rows of the table as text: the headings first, the total last."""
        columns = ["part", "layer", "weights", "output", "parameters"]
        cells = []
        for row in self.rows:
            kind = row.kind + (f" × {row.times}" if row.times > 1 else "")
            output = "" if row.output is None else str(row.output)
            cells.append([row.part, kind, row.weights, output, f"{row.parameters:,}" if row.weights else ""])
        last = ["total", "", "", str(self.output), f"{self.total:,}"]
        shown = [i for i in range(5) if i != 3 or self.output is not None]
        return [[row[i] for i in shown] for row in (columns, *cells, last)]

    def __repr__(self):
        table = self._table()
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = []
        for row in table:
            cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths)]
            lines.append("  ".join([*cells, row[-1].rjust(widths[-1])]).rstrip())
        rule = "-" * len(lines[0])
        return "\n".join([self.title, rule, lines[0], rule, *lines[1:-1], rule, lines[-1]])

    def _repr_html_(self):
        heads, *rows, last = self._table()
        left, right = 'style="text-align: left"', 'style="text-align: right"'
        sides = [left] * (len(heads) - 1) + [right]

        def line(cells, tag="td"):
            first = f'<th scope="row" {left}>{escape(cells[0])}</th>'
            return first + "".join(f"<{tag} {s}>{escape(c)}</{tag}>" for c, s in zip(cells[1:], sides[1:]))

        head = "".join(f'<th scope="col" {s}>{escape(c)}</th>' for c, s in zip(heads, sides))
        body = "\n".join(f"<tr>{line(cells)}</tr>" for cells in rows)
        return (
            f"<table>\n<caption>{escape(self.title)}</caption>\n<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody>\n<tfoot><tr>{line(last, 'th')}</tr></tfoot>\n</table>"
        )


def summarize(model, inside, ids=None):
    """Return the Summary of ``model``; ``inside`` is (name, module or parameter) for everything in it, in order.

    With ``ids`` (B, T) the model is run once, in evaluation mode, and each row gets the shape of its output.
    """
    outputs = {} if ids is None else output_shapes(model, [value for _, value in inside if _is_module(value)], ids)
    rows, first = {}, {}  # both by name; a part or parameter that turns up again is counted under its first name
    for name, value in inside:
        again = first.setdefault(id(value), name) != name
        if _is_module(value):
            if not again and value is not model:
                rows[name] = Row(name, type(value).__name__, "", 0, outputs.get(id(value)))
            continue
        owner, _, own = name.rpartition(".")
        shape, size = str(tuple(value.shape)), 0 if again else prod(value.shape)
        if owner not in rows:  # the model itself holds it
            rows[name] = Row(name, "Parameter", shape, size)
            continue
        row, weights = rows[owner], f"{own} = {first[id(value)]}" if again else f"{own} {shape}"
        rows[owner] = replace(
            row, weights=", ".join(filter(None, (row.weights, weights))), parameters=row.parameters + size
        )
    shown = _folded(row for row in rows.values() if row.weights or row.output is not None)
    total = model.num_parameters()
    title = f"{type(model).__name__}: {total:,} parameters"
    if ids is not None:
        title += f"; output shapes for ids {tuple(ids.shape)}"
    return Summary(title, tuple(shown), total, outputs.get(id(model)))


def output_shapes(model, modules, ids):
    """Return {id of a module: shape of its first output} in one run of ``model``; of (logits, loss), the logits."""
    shapes = {}

    def watched(module, forward):
        def call(*args, **kwargs):
            out = forward(*args, **kwargs)
            shapes.setdefault(id(module), tuple((out[0] if isinstance(out, tuple) else out).shape))
            return out

        return call

    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(replaced(module, watched(module, module.forward)))
        stack.enter_context(model.evaluating())
        model(ids)
    return shapes


def _is_module(value):
    return not hasattr(value, "requires_grad")


def _folded(rows):
    """Merge rows that differ only in the number of their block: blocks.0.norm, blocks.1.norm -> blocks.*.norm."""
    groups = {}
    for row in rows:
        pattern = re.sub(r"(?<![^.])\d+(?![^.])", "*", row.part)
        groups.setdefault((pattern, row.kind, row.weights, row.output), []).append(row)
    return [
        rows[0]
        if len(rows) == 1
        else replace(rows[0], part=key[0], times=len(rows), parameters=sum(r.parameters for r in rows))
        for key, rows in groups.items()
    ]


@contextmanager
def replaced(module, forward):
    """Let ``module`` alone, not its class, compute ``forward`` instead of its own inside ``with``; nests."""
    before = vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.forward  # the method of its class is visible again
        else:
            module.forward = before
