"""Run a system of the course in full, in both tracks, and print what was expected beside what was measured.

    python -m course_lib.reproduce                    all of them
    python -m course_lib.reproduce c small            some of them

a: the first GPT of notebooks 03 and 04. c: the GPT of notebook 08 on the text hello. small: a GPT of 0.8 million
parameters on tinyshakespeare. trajectories: both tracks side by side in float64. It takes minutes, one process per
core. The exit code is 0 only if everything holds.
"""

from .command import main
from .system_a import SystemAData, commonest_share, mean_test_loss, train_system_a
from .system_c import LINES, train_system_c
from .trajectories import largest_difference, trajectory

__all__ = [
    "LINES",
    "SystemAData",
    "commonest_share",
    "largest_difference",
    "main",
    "mean_test_loss",
    "train_system_a",
    "train_system_c",
    "trajectory",
]
