"""Signals that end a program: all clean up as Ctrl+C does."""

from __future__ import annotations

import signal
import threading
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(KeyboardInterrupt):
    """A signal other than Ctrl+C's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def clean_up_when_stopped() -> None:
    """From now on such a signal raises `Stopped`, once; a signal that is ignored, as with nohup, stays so."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, _: FrameType | None) -> None:
    for other in SIGNALS:  # the next would interrupt the cleaning up
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(number)


def interruption(error: BaseException | None) -> int:
    """128 and the signal's number, as shells count, if a signal is behind an error; 0 if not.

    Inside compiled code and imports an interrupt comes out as another error.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return 0 if error is None else 128 + (error.number if isinstance(error, Stopped) else signal.SIGINT)
