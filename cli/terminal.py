"""The terminal that we were started on, lent to the process group of a command below us, as a shell does."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

FROM_KEYS = (signal.SIGINT, signal.SIGQUIT)
FOR_WANTING_IT = (signal.SIGTTIN, signal.SIGTTOU)  # stop a group that reads from, or writes to, what it has not got


class Terminal:
    """Our controlling terminal; without one, nothing here does anything. Whoever has it gets the keys, and their signals."""

    def __init__(self) -> None:
        try:
            self._opened: int | None = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        except OSError:
            self._opened = None

    def lend(self, group: int) -> None:
        """Give the terminal to a group, if it is ours to give: not where we run behind another one."""
        self._pass(os.getpgrp(), group)

    def take_back(self, group: int) -> bool:
        """Take the terminal back, if that group has it."""
        return self._pass(group, os.getpgrp())

    def is_lent_to(self, group: int) -> bool:
        """Tell whether a group has the terminal."""
        try:
            return self._opened is not None and os.tcgetpgrp(self._opened) == group
        except OSError:  # the terminal was hung up, or let go of meanwhile
            return False

    def close(self) -> None:
        """Let go of the terminal."""
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def _pass(self, holder: int, group: int) -> bool:
        if self._opened is None:
            return False
        former = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it stops a group that does this from behind
        try:
            if os.tcgetpgrp(self._opened) != holder:
                return False
            os.tcsetpgrp(self._opened, group)
        except OSError:  # the group has ended, or the terminal was hung up
            return False
        finally:
            signal.signal(signal.SIGTTOU, former or signal.SIG_DFL)
        return True


@contextmanager
def lent_terminal(group: int) -> Iterator[Terminal]:
    """Let a process group have our terminal while it runs."""
    terminal = Terminal()
    try:
        terminal.lend(group)
        yield terminal
    finally:
        terminal.take_back(group)
        terminal.close()


def end_by_key(number: int) -> NoReturn:
    """End, and our group with us, as the key of a terminal that another group had would have ended us all.

    A script that started us ends by Ctrl-C only if it gets the signal itself and sees us die of it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.killpg(os.getpgrp(), number)
    raise SystemExit(128 + number)  # where the signal is blocked
