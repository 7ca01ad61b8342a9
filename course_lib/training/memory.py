"""Keep the memory that a training step frees for the next step."""

import numpy as np

LARGEST = 2**25 - 2**13  # bytes; glibc adapts up to 32 MiB


def keep_freed_memory():
    """Let glibc, the C library of most Linux systems, keep up to 64 MiB of freed memory; elsewhere nothing changes.

    Normally it returns memory to the system after each step and asks for it again, page by page, in the next: a third
    of the time of a small model's step on NumPy. But it adapts: once a large array has been freed, it keeps up to twice
    that much ("dynamic mmap threshold" in mallopt(3)). So we make one array of the largest size, touch none of it, and
    free it.
    """
    np.empty(LARGEST, np.uint8)
