"""Memory that a training step frees is kept for the next step."""

import numpy as np

LARGEST = 2**25 - 2**13  # bytes; glibc adapts up to 32 MiB


def keep_freed_memory():
    """Let glibc, the C library of most Linux systems, keep up to 64 MiB of freed memory; elsewhere nothing changes.

    It gives memory back to the system after each step and asks for it anew, page by page, in the next: of a small
    model's step on NumPy that is a third of the time. But it adapts: once a large array was freed, it keeps up to twice
    as much ("dynamic mmap threshold" in mallopt(3)). So one array of the largest size is made, never touched, and
    freed.
    """
    np.empty(LARGEST, np.uint8)
