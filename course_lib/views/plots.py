"""Ready-made figures: lines, loss curves, bars. Each needs ``alt=``, one sentence that says what the picture shows."""

import textwrap

import numpy as np

from . import style
from .cells import text_width
from .figures import figure, put_title
from .labels import drawn_words
from .tensors import as_array, checked_numbers


def draw_lines(ax, lines, x=None):
    """Draw {label: values} as lines that differ in colour and dashes, with a legend if there are several."""
    lines = {label: np.asarray(as_array(values), dtype=float) for label, values in lines.items()}
    for n, (label, values) in enumerate(lines.items()):
        ax.plot(
            np.arange(1, len(values) + 1) if x is None else np.asarray(x),
            values,
            label=label,
            color=style.PALETTE[n % len(style.PALETTE)],
            linestyle=style.DASHES[n % len(style.DASHES)],
            linewidth=_width(values, list(lines.values())[n + 1 :]),
            marker="o" if len(values) <= 12 else None,
            markersize=4.5,
        )
    if len(lines) > 1 or "" not in lines:
        _legend(ax, "best")


def _width(values, later):
    """Return the width of a line: a wide one is seen on both sides of a later one that covers it."""
    finite = np.isfinite(values)
    if not finite.any():
        return 1.8
    reach = 0.005 * max(np.ptp(values[finite]), 1e-12)
    covered = any(
        np.array_equal(np.isfinite(other), finite) and abs(other[finite] - values[finite]).max() <= reach
        for other in later
    )
    return 5 if covered else 1.8


def _legend(ax, place):
    """Draw the legend at ``place``, or above the axes if it has too many entries to fit between the lines."""
    entries = ax.get_legend_handles_labels()
    many = len(entries[1]) > 3
    legend = ax.figure.legend(*entries, loc="outside upper left", ncols=3) if many else ax.legend(loc=place)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a $ is a dollar, not the start of a formula


def plot_lines(lines, x=None, *, alt, xlabel="", ylabel="", log_x=False, log_y=False, height=3.2):
    """Show lines {label: values} over x (default 1, 2, 3, ...); a single label "" leaves out the legend."""
    with figure(height=height, alt=alt) as ax:
        draw_lines(ax, lines, x)
        ax.set(
            xlabel=xlabel, ylabel=ylabel, **({"xscale": "log"} if log_x else {}), **({"yscale": "log"} if log_y else {})
        )


def smoothed(values, window):
    """Return the mean over ``window`` steps centred on each step; at the ends over those that exist.

    Values that are not finite are left out; where no value of the window is finite, the mean is NaN.

    >>> smoothed([1, 2, 3, 6, 9], 3).round(2).tolist()
    [1.5, 2.0, 3.67, 6.0, 7.5]
    """
    values = np.asarray(values, dtype=float)
    finite = np.isfinite(values)
    sums = np.concatenate(([0.0], np.cumsum(np.where(finite, values, 0.0))))
    counts = np.concatenate(([0], np.cumsum(finite)))
    here, half = np.arange(len(sums) - 1), window // 2
    starts, ends = np.maximum(0, here - half), np.minimum(len(here), here + half + 1)
    count = counts[ends] - counts[starts]
    return np.where(count > 0, (sums[ends] - sums[starts]) / np.maximum(count, 1), np.nan)


def draw_losses(ax, losses, floor=None, smooth=None):
    """Draw {label: losses of steps 1, 2, ...}: pale as measured, strong as a running mean; a dashed ``floor``."""
    longest = max((len(values) for values in losses.values()), default=0)
    window = max(1, longest // 40) if smooth is None else smooth
    means = {label: smoothed(values, window) for label, values in losses.items()}
    for n, (label, values) in enumerate(losses.items()):
        steps, colour = np.arange(1, len(values) + 1), style.PALETTE[n % len(style.PALETTE)]
        if window > 1:
            ax.plot(*thinned(steps, np.asarray(values, dtype=float)), color=colour, alpha=0.28, linewidth=0.9)
        ax.plot(
            *thinned(steps, means[label]),
            color=colour,
            linewidth=_width(means[label], list(means.values())[n + 1 :]),
            linestyle=style.DASHES[n % len(style.DASHES)],
            label=label,
        )
    if floor is not None:
        name, level = floor if isinstance(floor, tuple) else (f"floor {floor:.4g}", floor)
        # named in the legend, because a label beside the line would cover a curve that comes near it
        ax.axhline(level, color=style.INK, linewidth=1, linestyle=(0, (4, 3)), label=name)
    ax.set(xlabel="step", ylabel="loss (nats per token)")
    if floor is not None or (losses and (len(losses) > 1 or "" not in losses)):
        # "best" looks at every point, which is slow; the curve of a long run falls, and leaves this corner free
        _legend(ax, "best" if longest <= 1000 else "upper right")


def thinned(x, y):
    """Return at most about 2000 of the points, evenly spaced and including the last."""
    most = 2000
    if len(x) <= most:
        return x, y
    keep = np.unique(np.concatenate((np.arange(0, len(x), -(-len(x) // most)), [len(x) - 1])))
    return x[keep], y[keep]


def plot_losses(losses, *, alt, floor=None, smooth=None, log_y=False):
    """Show loss curves {label: losses}.

    ``floor``: a number or (label, number), drawn as a dashed line. ``smooth``: the steps of the running mean, 1 for
    none; by default a fortieth of the longest curve.
    """
    with figure(alt=alt) as ax:
        draw_losses(ax, losses, floor, smooth)
        if log_y:
            ax.set_yscale("log")


def plot_bars(
    labels,
    values,
    *,
    alt,
    title=None,
    xlabel="",
    ylabel="",
    number_format="{:.3g}",
    highlight=(),
    horizontal=False,
    width=7.0,
    height=3.2,
):
    """Show one bar per label with its number at the end; the bars at the indices ``highlight`` get the second colour.

    Raises TypeError unless the values are real numbers, ValueError unless there is one label per value.
    """
    values, labels = checked_numbers(values, "values", 1), list(labels)
    if len(labels) != len(values):
        raise ValueError(f"{len(labels)} labels for {len(values)} values: expected one label per bar")
    names = [drawn_words(str(label), longest=40) for label in labels]
    with figure(width, height, alt=alt) as ax:
        colours = [style.PALETTE[1 if n in highlight else 0] for n in range(len(values))]
        positions = np.arange(len(values))
        bars = (
            ax.barh(positions, values, color=colours)
            if horizontal
            else ax.bar(positions, values, color=colours, width=0.7)
        )
        ax.bar_label(bars, [number_format.format(v) for v in values], padding=3, fontsize=9, color=style.INK)
        if horizontal:
            ax.set_yticks(positions, names, parse_math=False)
            ax.invert_yaxis()
        else:
            room = (width - 1) / max(1, len(names)) - 0.1  # inches a label may take; long ones wrap
            names = [
                textwrap.fill(
                    n.replace("+ ", "+\u00a0"),
                    max(4, int(room / 0.078)),
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                for n in names
            ]
            crowded = max(text_width(line, 9) for n in names for line in n.split("\n")) > room * 1.15
            ax.set_xticks(
                positions,
                names,
                parse_math=False,
                rotation=30 if crowded else 0,
                ha="right" if crowded else "center",
                rotation_mode="anchor" if crowded else "default",
            )
        ax.grid(False, axis="y" if horizontal else "x")
        ax.margins(**{"x" if horizontal else "y": 0.14})
        ax.set(xlabel=xlabel, ylabel=ylabel)
        put_title(ax, title)
