"""What a training run leaves behind: plain numbers, no tensors (a tensor would keep its whole graph alive)."""

from dataclasses import dataclass, field


@dataclass(repr=False)
class History:
    """One entry per step, as Python floats: ``losses`` in nats per token, ``rates``, ``norms`` before clipping.

    ``evaluations`` holds (step, validation loss), ``seconds`` the time spent; ``stopped`` tells of the stop button.
    """

    losses: list = field(default_factory=list)
    rates: list = field(default_factory=list)
    norms: list = field(default_factory=list)
    evaluations: list = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False

    @property
    def steps(self):
        """How many steps were made."""
        return len(self.losses)

    def __repr__(self):
        """One line, with ~ before the number that differs a little between machines."""
        last = f", last loss ~{self.losses[-1]:.2f} nats per token" if self.losses else ""
        return f"History: {self.steps:,} steps{last}{', stopped' if self.stopped else ''}"

    def mean_loss(self, last):
        """Mean of the ``last`` losses (1 or more): one step alone is noisy."""
        if last < 1:
            raise ValueError(f"the mean is over at least 1 loss, not {last}")
        if not self.losses:
            raise ValueError("no step was made yet")
        tail = self.losses[-last:]
        return sum(tail) / len(tail)
