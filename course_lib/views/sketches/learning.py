"""Training as a picture: the paths of optimisers down a valley, and one training shared by several processes."""

import numpy as np

from ... import get_track
from .. import style
from ..figures import figure
from ..style import INK
from .marks import TONES, Sketch, signed

STEEP = (0.5, 25.0)  # height = 0.5 x² + 25 y²: 50 times steeper along y


def valley_path(optimizer_of, steps=60, start=(1.0, 1.0)):
    """Return where an optimiser goes in the valley 0.5 x² + 25 y², (steps + 1, 2), from ``start``.

    ``optimizer_of`` makes the optimiser of the NumPy track from a list of parameters.
    """
    track = get_track("numpy")
    p, steep = track.Parameter(np.array([start], float)), np.array([STEEP])
    optimizer, path = optimizer_of([p]), [p.detach().numpy()[0].copy()]
    for _ in range(steps):
        optimizer.zero_grad()
        (p * p * steep).sum().backward()
        optimizer.step()
        path.append(p.detach().numpy()[0].copy())
    return np.array(path)


def plot_valley(optimizers, steps=60, *, height=3.1):
    """Show where ``optimizers``, {label: function of the parameters}, go in the valley 0.5 x² + 25 y², one map each.

    plot_valley({"SGD 0.01": lambda p: numpy_track.SGD(p, 0.01), "AdamW 0.1": lambda p: numpy_track.AdamW(p, 0.1)})
    """
    paths = {label: valley_path(optimizer_of, steps) for label, optimizer_of in optimizers.items()}
    heights = {label: float((path[-1] ** 2 * STEEP).sum()) for label, path in paths.items()}
    ends = "; ".join(f"{label} ends at ({signed(p[-1, 0], 2)}, {signed(p[-1, 1], 2)})" for label, p in paths.items())
    alt = (
        f"A valley as a map with contour lines, long from left to right and 50 times steeper across, one map per "
        f"optimiser, each with its path of {steps} steps from the upper right: {ends}. The lowest point is (0, 0)."
    )
    x, y = np.meshgrid(np.linspace(-0.45, 1.2, 120), np.linspace(-1.25, 1.25, 120))
    with figure(3.1 * len(paths), height, columns=len(paths), alt=alt, squeeze=False, sharey=True) as grid:
        for n, (ax, (label, path)) in enumerate(zip(grid[0], paths.items())):
            ax.grid(False)
            ax.contourf(x, y, STEEP[0] * x**2 + STEEP[1] * y**2, [0, 0.05, 0.2, 0.6, 1.5, 4, 9, 16, 25, 99],
                        colors=style.SEQUENTIAL(np.linspace(0.02, 0.42, 9)))  # fmt: skip
            ax.contour(x, y, STEEP[0] * x**2 + STEEP[1] * y**2, [0.05, 0.2, 0.6, 1.5, 4, 9, 16, 25], colors="#ffffff",
                       linewidths=0.7)  # fmt: skip
            ax.plot(*path.T, color=style.PALETTE[1], linewidth=1, marker="o", markersize=2.4)
            ax.plot(*path[0], marker="o", color=style.INK, markersize=6)
            ax.plot(0, 0, marker="*", color=style.INK, markersize=11)
            ax.set(xlim=(-0.45, 1.2), ylim=(-1.25, 1.25), xlabel="flat direction")
            ax.set_title(f"{label}: height {heights[label]:.2g}", parse_math=False)
            if not n:
                ax.set_ylabel("steep direction")


def draw_data_parallel(world=2, batch=8):
    """Draw data-parallel training: a batch dealt to ``world`` processes, their gradients averaged, one step for all.

    Raises ValueError unless the processes get equally many windows.
    """
    if batch % world:
        raise ValueError(f"{batch} windows cannot be dealt equally to {world} processes")
    wide, tones = min(420, 880 // world), [TONES[name] for name in ("blue", "green", "pink", "grey")]
    d = Sketch(
        40 + wide * world, 470,
        f"Data-parallel training with {world} processes. A batch of {batch} windows is dealt out, every process takes "
        f"{batch // world}. Each has a copy of the same weights, runs forward and backward, and has a gradient of its "
        "own windows. The gradients are averaged over all processes, which gives every process the gradient of the "
        "whole batch; all make the same step, and have the same weights again.",
    )  # fmt: skip
    middle, cell = d.width / 2, min(34, (d.width - 60) / batch)
    start = middle - cell * batch / 2
    d.label(middle, 34, f"one batch: {batch} windows", 14, weight="bold")
    for n in range(batch):
        pale, strong = tones[n % world % 4]
        d.shape(start + n * cell, 48, cell - 4, 26, pale, strong, 1.3, 3)
        d.label(start + n * cell + cell / 2 - 2, 65.5, str(n), 12)
    for rank in range(world):
        pale, strong = tones[rank % 4]
        x, mine = 20 + wide * (rank + 0.5), range(rank, batch, world)
        d.shape(x - wide / 2 + 10, 110, wide - 20, 330, "none", strong, 1.3, 10, "5 4")
        d.label(x - wide / 2 + 24, 132, f"process {rank}", 13, strong, "bold", "start")
        small = min(cell, (wide - 60) / len(mine))
        for k, n in enumerate(mine):
            at = x + (k - len(mine) / 2) * small
            d.shape(at, 150, small - 4, 26, pale, strong, 1.3, 3)
            d.label(at + small / 2 - 2, 167.5, str(n), 12)
        d.path([(middle + (x - middle) * 0.35, 80), (x, 144)], strong, 1.8, arrow=True)
        d.path([(x, 180), (x, 199)], arrow=True)
        d.part(x, 219, min(230, wide - 40), "the model", "forward, backward", height=40)
        d.path([(x, 239), (x, 258)], arrow=True)
        d.part(x, 277, min(230, wide - 40), "gradient of its windows", fill=pale, edge=strong)
        d.path([(x, 294), (x, 317)], arrow=True)
        d.path([(x, 354), (x, 381)], arrow=True)
        d.part(x, 402, min(230, wide - 40), "step", "same weights again", height=40)
    d.shape(44, 318, d.width - 88, 36, TONES["orange"][0], TONES["orange"][1], 2.2)
    d.label(middle, 341, "mean of the gradients = gradient of the whole batch", 13, INK, "bold")
    return d
