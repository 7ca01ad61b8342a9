"""One writer at a time: a lock file that works on Linux, macOS and Windows."""

import contextlib
import os
import time

STALE = 5  # seconds after which a lock must be one that a killed kernel has left; a write takes milliseconds
WAIT = 10  # seconds after which we go on without the lock: saving late is worse than a rare double write


@contextlib.contextmanager
def locked(file):
    """Inside this block nobody else who asks for the lock of ``file`` is in theirs. Raises OSError as ``open`` does.

    The lock is a file beside it: creating one that must not exist yet (O_EXCL) succeeds for one process only. A lock
    that a killed kernel has left is taken away when it is STALE.
    """
    lock = file.with_name(f"{file.name}.lock")
    mine = _taken(lock)
    try:
        yield
    finally:
        if mine:
            with contextlib.suppress(OSError):
                lock.unlink()


def _taken(lock):
    """Wait for the lock and take it; False when it did not come free in time."""
    end = time.monotonic() + WAIT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            pass
        except PermissionError:
            # Windows says this, too, for a moment, of a file that is just being removed
            if os.name != "nt" or time.monotonic() > end - WAIT + 1:
                raise
        if _cleared(lock):
            continue
        if time.monotonic() > end:
            return False
        time.sleep(0.01)


def _cleared(lock):
    """Remove a stale lock. It is renamed first: of several kernels that wait for it only one can do that."""
    with contextlib.suppress(OSError):  # it may be gone already
        if time.time() - lock.stat().st_mtime > STALE:
            aside = lock.with_name(f"{lock.name}.{os.getpid()}")
            os.replace(lock, aside)
            aside.unlink()
            return True
    return False
