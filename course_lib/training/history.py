"""The record of a training run: plain numbers, no tensors (a tensor would keep its whole graph alive)."""

from dataclasses import dataclass, field


def stopped(*histories):
    """Return True if the stop button ended one of these runs: then its model need not be what a page promises."""
    return any(history.stopped for history in histories)


@dataclass(repr=False)
class History:
    """The record of a run, one float per step: ``losses`` in nats per token, ``lrs``, and ``norms`` before clipping.

    ``evaluations`` holds pairs (step, validation loss), ``seconds`` is the time spent; ``stopped`` is True if the stop
    button ended the run.
    """

    losses: list = field(default_factory=list)
    lrs: list = field(default_factory=list)
    norms: list = field(default_factory=list)
    evaluations: list = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False

    @property
    def steps(self):
        """Return the number of steps so far."""
        return len(self.losses)

    def __repr__(self):
        """Return one line, with ~ before the number that differs slightly between machines."""
        last = f", last loss ~{self.losses[-1]:.2f} nats per token" if self.losses else ""
        return f"History: {self.steps:,} steps{last}{', stopped' if self.stopped else ''}"

    def mean_loss(self, last):
        """Return the mean of the ``last`` losses: a single step is noisy. Raises ValueError for none."""
        if last < 1:
            raise ValueError(f"the mean is over at least 1 loss, not {last}")
        if not self.losses:
            raise ValueError("no step has been taken yet")
        tail = self.losses[-last:]
        return sum(tail) / len(tail)
