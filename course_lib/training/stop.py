"""The stop button of Jupyter."""

import contextlib
import signal
import threading


class StopButton:
    """A context that catches the interrupt from Jupyter's stop button, so that no step is left half done.

    A second press interrupts at once. Nothing changes where signals cannot be caught (outside the main thread of the
    main interpreter), where the program ignores them, and where its handler was installed from C: Python could not put
    that one back.
    """

    pressed = False

    def __enter__(self):
        self.before = None
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) not in (None, signal.SIG_IGN):  # None: installed from C
            with contextlib.suppress(ValueError):  # a second interpreter in this process
                self.before = signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, number, frame):
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *exception):
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
