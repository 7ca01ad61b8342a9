"""Figures of the course: `with figure(...)` for anything, and ready-made losses, lines, bars and heat maps.

JupyterLab 4.6 and nbconvert 7 both ignore an `alt` in the output's metadata, so `show` puts the words next to the
picture as well, in a line that only screen readers get (GitHub, which removes the styling, shows it as a caption).
"""

import textwrap
from contextlib import contextmanager

import numpy as np
from IPython.display import display
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.ticker import MaxNLocator

from . import heatmaps, style
from .labels import drawn, escaped

# Out of sight, yet read aloud. JupyterLab's class survives its own cleaning, the style serves other pages; <em> is one of
# the few tags that nbconvert's strict cleaning keeps (a <p> would be shown as text).
_HIDDEN = ('class="jp-sr-only" style="position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; '
           'clip-path: inset(50%); white-space: nowrap"')


class Picture:
    """PNG bytes with their alternative text: what a cell displays. As text it is `Figure: …`, the same on every machine."""

    def __init__(self, png, alt, width):
        if not alt or not alt.strip():
            raise ValueError("a picture needs alt=: one sentence that says what it shows")
        self.png, self.alt, self.width = png, " ".join(alt.split()), width

    def __repr__(self):
        return f"Figure: {self.alt}"

    def _repr_mimebundle_(self, **_keywords):
        return ({"image/png": style.png_text(self.png), "text/plain": repr(self)},
                {"image/png": {"alt": self.alt, "width": self.width}})


class Words:
    """The alternative text of the picture above, for screen readers only."""

    def __init__(self, alt):
        self.alt = alt

    def __repr__(self):
        return self.alt

    def _repr_mimebundle_(self, **_keywords):
        return {"text/html": f"<em {_HIDDEN}>Figure: {escaped(self.alt)}</em>", "text/plain": self.alt}


def picture(fig, alt):
    """The figure as a Picture, without showing it."""
    return Picture(style.png_bytes(fig), alt, style.shown_width(fig))


def show(fig, alt):
    """Display the figure as a PNG with its alternative text. Nothing stays open: these figures are not pyplot's."""
    shown = picture(fig, alt)
    display(shown)
    display(Words(shown.alt))
    fig.clear()


@contextmanager
def figure(width=7.0, height=3.2, *, alt, rows=1, columns=1, **keywords):
    """Axes in the course's style, shown when the block ends; inches; keywords go to `Figure.subplots`.

    with figure(6, 3, alt="A parabola that touches zero at zero") as ax:
        ax.plot(x, x**2)

    With rows or columns above 1 the block gets the array of axes.
    """
    Picture(b"", alt, 0)  # complain about a missing text before the drawing, not after it
    fig = style.card_figure(width, height, layout="constrained")
    fig.get_layout_engine().set(w_pad=0.14, h_pad=0.14, wspace=0.03, hspace=0.04)
    with style.rules():
        yield fig.subplots(rows, columns, **keywords)
    show(fig, alt)


def draw_lines(ax, lines, x=None):
    """{label: values} as lines that differ in colour and in dashes, with a legend if there are several."""
    for n, (label, values) in enumerate(lines.items()):
        values = np.asarray(values, dtype=float)
        places = np.arange(1, len(values) + 1) if x is None else np.asarray(x)
        ax.plot(places, values, label=label, color=style.PALETTE[n % len(style.PALETTE)],
                linestyle=style.DASHES[n % len(style.DASHES)], marker="o" if len(values) <= 12 else None, markersize=4.5)
    if len(lines) > 1 or "" not in lines:
        ax.legend(**({} if len(lines) < 5 else {"ncols": 2}))


def plot_lines(lines, x=None, *, alt, title=None, xlabel="", ylabel="", log_x=False, log_y=False, width=7.0, height=3.2):
    """Lines {label: values} over x (default 1, 2, 3, …); one label "" leaves the legend out."""
    with figure(width, height, alt=alt) as ax:
        draw_lines(ax, lines, x)
        ax.set(xlabel=xlabel, ylabel=ylabel, **({"xscale": "log"} if log_x else {}), **({"yscale": "log"} if log_y else {}))
        _title(ax, title)


def smoothed(values, window):
    """Mean over `window` steps with each step in their middle; at the ends over those that exist.

    >>> smoothed([1, 2, 3, 6, 9], 3).round(2).tolist()
    [1.5, 2.0, 3.67, 6.0, 7.5]
    """
    sums = np.concatenate(([0.0], np.cumsum(np.asarray(values, dtype=float))))
    here, half = np.arange(len(sums) - 1), window // 2
    starts, ends = np.maximum(0, here - half), np.minimum(len(here), here + half + 1)
    return (sums[ends] - sums[starts]) / (ends - starts)


def draw_losses(ax, losses, floor=None, smooth=None):
    """{label: losses of steps 1, 2, 3 …}: pale as measured, strong as a running mean; `floor` is a dashed level line."""
    longest = max((len(values) for values in losses.values()), default=0)
    window = max(1, longest // 40) if smooth is None else smooth
    for n, (label, values) in enumerate(losses.items()):
        steps, colour = np.arange(1, len(values) + 1), style.PALETTE[n % len(style.PALETTE)]
        if window > 1:
            ax.plot(*thinned(steps, np.asarray(values, dtype=float)), color=colour, alpha=0.28, linewidth=0.9)
        ax.plot(*thinned(steps, smoothed(values, window)), color=colour, linestyle=style.DASHES[n % len(style.DASHES)],
                label=label)
    if floor is not None:
        name, level = floor if isinstance(floor, tuple) else (f"floor {floor:.4g}", floor)
        ax.axhline(level, color=style.INK, linewidth=1, linestyle=(0, (4, 3)))
        ax.annotate(name, (1, level), xycoords=("axes fraction", "data"), xytext=(-4, 4), textcoords="offset points",
                    ha="right", fontsize=9, color=style.INK,
                    bbox={"facecolor": style.CARD, "edgecolor": "none", "alpha": 0.85, "pad": 1})
    ax.set(xlabel="step", ylabel="loss (nats per token)")
    if losses and (len(losses) > 1 or "" not in losses):
        ax.legend(loc="upper right")


def thinned(x, y, most=2000):
    """At most about `most` of the points, evenly chosen, the last always among them."""
    if len(x) <= most:
        return x, y
    keep = np.unique(np.concatenate((np.arange(0, len(x), -(-len(x) // most)), [len(x) - 1])))
    return x[keep], y[keep]


def plot_losses(losses, *, alt, floor=None, smooth=None, title=None, log_y=False, width=7.0, height=3.2):
    """Loss curves {label: losses}; floor: a number or (label, number); smooth: steps of the running mean, 1 for none."""
    with figure(width, height, alt=alt) as ax:
        draw_losses(ax, losses, floor, smooth)
        if log_y:
            ax.set_yscale("log")
        _title(ax, title)


def plot_bars(labels, values, *, alt, title=None, xlabel="", ylabel="", number_format="{:.3g}", highlight=(), floor=None,
              horizontal=False, width=7.0, height=3.2):
    """One bar a label with its number at the end; the places in `highlight` get the second colour."""
    values = np.asarray(values, dtype=float)
    names = [drawn(str(label)) if str(label).strip() == "" else str(label) for label in labels]
    with figure(width, height, alt=alt) as ax:
        colours = [style.PALETTE[1 if n in highlight else 0] for n in range(len(values))]
        places = np.arange(len(values))
        bars = ax.barh(places, values, color=colours) if horizontal else ax.bar(places, values, color=colours, width=0.7)
        ax.bar_label(bars, [number_format.format(v) for v in values], padding=3, fontsize=9, color=style.INK)
        if horizontal:
            ax.set_yticks(places, names, parse_math=False)
            ax.invert_yaxis()
        else:
            room = (width - 1) / max(1, len(names)) - 0.1  # inches a label may take; long ones go on at a second line
            names = [textwrap.fill(n.replace("+ ", "+\u00a0"), max(4, int(room / 0.078)), break_long_words=False,
                                   break_on_hyphens=False) for n in names]
            crowded = max(heatmaps.text_width(line, 9) for n in names for line in n.split("\n")) > room * 1.15
            ax.set_xticks(places, names, parse_math=False, rotation=30 if crowded else 0, ha="right" if crowded else "center",
                          rotation_mode="anchor" if crowded else "default")
        ax.grid(False, axis="y" if horizontal else "x")
        ax.margins(**{"x" if horizontal else "y": 0.14})
        if floor is not None:
            (ax.axvline if horizontal else ax.axhline)(floor, color=style.INK, linewidth=1, linestyle=(0, (4, 3)))
        ax.set(xlabel=xlabel, ylabel=ylabel)
        _title(ax, title)


def draw_heatmap(ax, matrix, row_labels=None, column_labels=None, *, limits=None, numbers=None, allow=None):
    """The matrix as coloured cells: cividis, or blue–white–orange around 0 if values have both signs."""
    matrix = np.asarray(matrix, dtype=float)
    q, k = matrix.shape
    allowed = np.ones((q, k), dtype=bool) if allow is None else np.asarray(allow)
    seen = matrix[allowed & np.isfinite(matrix)]
    low, high = limits or ((float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0))
    signed = low < 0 < high
    norm = CenteredNorm(0, max(-low, high)) if signed else Normalize(low, high if high > low else low + 1)
    colour_map = style.DIVERGING if signed else style.SEQUENTIAL
    rgba = colour_map(norm(np.where(np.isfinite(matrix), matrix, low)))
    image = ax.imshow(np.where(np.isfinite(matrix) & allowed, matrix, np.nan), norm=norm, cmap=colour_map, aspect="equal")
    if (patch := heatmaps.hatching(allowed & np.isfinite(matrix))) is not None:
        ax.add_patch(patch)
    if max(q, k) <= 12 if numbers is None else numbers:
        text = numbers if isinstance(numbers, str) else "{:.2f}"
        size = min(9.0, 420 / max(q, k, 5) / 5)
        for i, j in np.argwhere(allowed & np.isfinite(matrix)):
            ax.text(j, i, text.format(matrix[i, j] + 0.0), ha="center", va="center", fontsize=size,
                    color=str(heatmaps.ink_on(rgba[i, j])))
    for axis, names, turn in ((ax.yaxis, row_labels, 0), (ax.xaxis, column_labels, None)):
        if names is None:
            axis.set_major_locator(MaxNLocator(integer=True))
            continue
        names = [drawn(str(n)) for n in names]
        turned = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"} if turn is None and max(map(len, names)) > 4 else {}
        axis.set_ticks(range(len(names)), names, parse_math=False, **turned)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return image


def plot_heatmap(matrix, row_labels=None, column_labels=None, *, alt, title=None, limits=None, numbers=None, allow=None,
                 xlabel="", ylabel="", width=None, height=None):
    """A matrix as a heat map with a colour bar; `allow` False is hatched; numbers: True, False or a format like "{:.1f}"."""
    q, k = np.shape(matrix)
    cell = min(0.52, 4.6 / max(q, k))
    with figure(width or max(3.6, k * cell + 2.2), height or max(2.2, q * cell + 1.25), alt=alt) as ax:
        image = draw_heatmap(ax, matrix, row_labels, column_labels, limits=limits, numbers=numbers, allow=allow)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.85, aspect=16)
        bar.outline.set_visible(False)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.xaxis.set_label_position("top")
        _title(ax, title)


def _title(ax, title):
    if title:
        ax.set_title(title, parse_math=False)
