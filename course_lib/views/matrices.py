"""A matrix as a heat map: scores, masks, embeddings, gradients."""

import numpy as np
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.ticker import MaxNLocator

from . import style
from .cells import hatching, ink_on
from .figures import figure, put_title
from .labels import drawn_words
from .tensors import as_mask, checked_numbers


def draw_heatmap(ax, matrix, row_labels=None, column_labels=None, *, limits=None, numbers=None, allow=None):
    """Draw the matrix as coloured cells, in blue on the card, or in blue and orange around 0 if values have both signs.

    The options, and what is raised, are those of ``plot_heatmap``.
    """
    matrix, row_labels, column_labels, limits, allowed = _checked(matrix, row_labels, column_labels, limits, allow)
    q, k = matrix.shape
    seen = matrix[allowed & np.isfinite(matrix)]
    low, high = limits or ((float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0))
    signed = low < 0 < high
    norm = CenteredNorm(0, max(-low, high)) if signed else Normalize(low, high if high > low else low + 1)
    colour_map = style.DIVERGING if signed else style.SEQUENTIAL
    rgba = colour_map(norm(np.where(np.isfinite(matrix), matrix, low)))
    image = ax.imshow(
        np.where(np.isfinite(matrix) & allowed, matrix, np.nan), norm=norm, cmap=colour_map, aspect="equal"
    )
    if (patch := hatching(allowed & np.isfinite(matrix))) is not None:
        ax.add_patch(patch)
    if max(q, k) <= 12 if numbers is None else numbers:
        text = numbers if isinstance(numbers, str) else "{:.2f}"
        size = min(9.0, 420 / max(q, k, 5) / 5)
        for i, j in np.argwhere(allowed & np.isfinite(matrix)):
            ax.text(
                j,
                i,
                text.format(matrix[i, j] + 0.0),
                ha="center",
                va="center",
                fontsize=size,
                color=str(ink_on(rgba[i, j])),
            )
    for axis, names, turn in ((ax.yaxis, row_labels, 0), (ax.xaxis, column_labels, None)):
        if names is None:
            axis.set_major_locator(MaxNLocator(integer=True))
            continue
        names = [drawn_words(str(n)) for n in names]
        turned = (
            {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
            if turn is None and max(map(len, names)) > 4
            else {}
        )
        axis.set_ticks(range(len(names)), names, parse_math=False, **turned)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    return image


def _checked(matrix, row_labels, column_labels, limits, allow):
    """Return the arguments of a heat map in one form; raise TypeError or ValueError for what does not fit."""
    matrix = checked_numbers(matrix, "matrix", 2)
    labels = []
    for name, names, count in zip(("row", "column"), (row_labels, column_labels), matrix.shape, strict=True):
        labels.append(names if names is None else list(names))
        if names is not None and len(labels[-1]) != count:
            raise ValueError(f"{len(labels[-1])} {name} labels for the {count} {name}s of a matrix {matrix.shape}")
    if limits is not None:
        limits = tuple(float(v) for v in limits)
        if len(limits) != 2 or not np.isfinite(limits).all() or not limits[0] < limits[1]:
            raise ValueError(f"limits {limits}: expected two finite numbers, the smaller first")
    allowed = np.ones(matrix.shape, dtype=bool) if allow is None else as_mask(allow)
    if allowed.shape != matrix.shape:
        raise ValueError(f"allow has shape {allowed.shape}, but the matrix has {matrix.shape}: expected the same")
    return matrix, *labels, limits, allowed


def plot_heatmap(
    matrix,
    row_labels=None,
    column_labels=None,
    *,
    alt,
    title=None,
    limits=None,
    numbers=None,
    allow=None,
    xlabel="",
    ylabel="",
    width=None,
    height=None,
):
    """Show a matrix as a heat map with a colour bar; width and height in inches.

    ``limits``: the values at the ends of the colour bar. ``numbers``: True, False or a format such as "{:.1f}"; by
    default up to 12 rows and columns have their numbers. Cells where ``allow`` is False, and values that are not
    finite, are hatched. Raises TypeError for a matrix without real numbers, ValueError for one without two axes or for
    labels, limits or a mask that do not fit it.
    """
    q, k = checked_numbers(matrix, "matrix", 2).shape
    cell = min(0.52, 4.6 / max(q, k))
    with figure(width or max(3.6, k * cell + 2.2), height or max(2.2, q * cell + 1.25), alt=alt) as ax:
        image = draw_heatmap(ax, matrix, row_labels, column_labels, limits=limits, numbers=numbers, allow=allow)
        side = max(q, k)  # the bar is as high as the map, however flat that is
        beside = ax.inset_axes((1 + 0.03 * side / k, 0, 0.03 * side / k, 1))
        bar = ax.figure.colorbar(image, cax=beside, ticks=MaxNLocator(2 if 4 * q < k else 5))
        bar.outline.set(edgecolor=style.GRID, linewidth=0.8)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        ax.xaxis.set_label_position("top")
        put_title(ax, title)
