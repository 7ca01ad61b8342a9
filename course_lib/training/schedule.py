"""The learning rate as a function of the step."""

import math
from dataclasses import dataclass

from ..common.checks import check_whole


@dataclass(frozen=True)
class WarmupCosine:
    """A linear warm-up over ``warmup_steps``, then half a cosine from ``lr`` down to ``min_lr`` at ``total_steps``.

    Step 0 already has a positive rate, step ``warmup_steps`` exactly ``lr``, and every step from ``total_steps`` on
    ``min_lr``. Raises ValueError for a warm-up that is longer than the run, or settings below 0 or not finite.

    >>> schedule = WarmupCosine(lr=1e-3, warmup_steps=4, total_steps=10, min_lr=1e-4)
    >>> [round(schedule(step), 7) for step in (0, 3, 4, 7, 10, 11)]
    [0.0002, 0.0008, 0.001, 0.00055, 0.0001, 0.0001]
    """

    lr: float
    warmup_steps: int
    total_steps: int
    min_lr: float = 0.0

    def __post_init__(self):
        for name in ("warmup_steps", "total_steps"):
            check_whole(name, getattr(self, name), 0)
        for name in ("lr", "min_lr"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be 0 or a positive number, not {getattr(self, name)}")
        if self.warmup_steps > self.total_steps:
            raise ValueError(
                f"a warm-up of {self.warmup_steps} steps is longer than the run of {self.total_steps}: the rate would"
                " never reach lr"
            )

    def __call__(self, step):
        if step < self.warmup_steps:
            return self.lr * (step + 1) / (self.warmup_steps + 1)
        if step >= self.total_steps:
            return self.min_lr
        done = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        return self.min_lr + (self.lr - self.min_lr) * 0.5 * (1 + math.cos(math.pi * done))
