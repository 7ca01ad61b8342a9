"""The stop button of Jupyter."""

import signal
import threading


class StopButton:
    """Catches the interrupt that Jupyter's stop button sends, so that no step is left half done.

    The second press interrupts at once. Outside the main thread signals cannot be caught, and nothing is changed.
    """

    pressed = False

    def __enter__(self):
        self.catches = threading.current_thread() is threading.main_thread()
        if self.catches:
            self.before = signal.signal(signal.SIGINT, self._press)
        return self

    def _press(self, number, frame):
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *exception):
        if self.catches:
            signal.signal(signal.SIGINT, self.before)
