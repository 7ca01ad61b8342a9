"""The learning rate as a function of the step."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class WarmupCosine:
    """Up in a line for ``warmup`` steps, then down half a cosine, from ``peak`` to ``final`` at step ``total``.

    Step 0 already has a positive rate; step ``warmup`` has exactly ``peak``; from ``total`` on it is ``final``.

    >>> rate = WarmupCosine(peak=1e-3, warmup=4, total=10, final=1e-4)
    >>> [round(rate(step), 7) for step in (0, 3, 4, 7, 10, 11)]
    [0.0002, 0.0008, 0.001, 0.00055, 0.0001, 0.0001]
    """

    peak: float
    warmup: int
    total: int
    final: float = 0.0

    def __call__(self, step):
        if step < self.warmup:
            return self.peak * (step + 1) / (self.warmup + 1)
        if step >= self.total:
            return self.final
        done = (step - self.warmup) / (self.total - self.warmup)
        return self.final + (self.peak - self.final) * 0.5 * (1 + math.cos(math.pi * done))
