"""A command that runs below us: in a process group of its own, which has the terminal while it runs and gets our signals.

All that its keeper waits for comes through one queue: a signal that we were sent, the child's stop, its end.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType

from ..errors import SlotkeeperError
from .terminal import FOR_WANTING_IT, FROM_KEYS, Terminal, lent_terminal

PASSED_ON = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGTSTP", "SIGCONT")
)
# Python ignores these for itself, and what is ignored stays so in a child: it is to find them as any shell would give them.
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class CommandNotFound(SlotkeeperError):
    """There is no such command. Check its spelling, and PATH."""


class CommandNotExecutable(SlotkeeperError):
    """The command is there and cannot be run. Check its permissions, and its first line where it is a script."""


@dataclass(frozen=True)
class Signalled:
    """We were sent a signal."""

    number: int


@dataclass(frozen=True)
class Stopped:
    """The child was stopped, as by Ctrl-Z."""


@dataclass(frozen=True)
class Ended:
    """The child has ended; `code` is what a shell would say: its own, or 128 and the signal that killed it."""

    code: int


Event = Signalled | Stopped | Ended


class Child:
    """A started command. `next` tells what happens to it, or to us."""

    def __init__(self, pid: int, events: SimpleQueue[Event], terminal: Terminal) -> None:
        self.pid = pid
        self._events, self._terminal = events, terminal
        threading.Thread(target=self._watch, name=f"slotkeeper-child-{pid}", daemon=True).start()

    def next(self, timeout_s: float) -> Event | None:
        """Wait for what happens next; None: nothing did in that time."""
        with suppress(Empty):
            return self._events.get(timeout=max(0.0, timeout_s))
        return None

    def signal(self, number: int) -> bool:
        """Send a signal to the child's group: to itself and to what it has started. Tell whether anybody is left of it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except (
            PermissionError
        ):  # macOS, for a group of nothing but zombies; elsewhere: a child that became another user
            return True
        return True

    def pass_on(self, number: int) -> None:
        """Send the child's group a signal that was meant for it and reached us. Going on, it gets the terminal back."""
        if number == signal.SIGCONT:
            self._terminal.lend(self.pid)
        self.signal(number)

    def stop_too(self) -> None:
        """Stop as the child was stopped, so that whoever started us sees it; returns when somebody has us go on."""
        self._terminal.take_back(self.pid)
        os.kill(os.getpid(), signal.SIGSTOP)

    def ended_by_key(self, code: int) -> int | None:
        """Return the signal by which a key of our terminal has ended the child. Those beside us would have got it too."""
        had_terminal = self._terminal.take_back(self.pid)
        return code - 128 if had_terminal and code - 128 in FROM_KEYS else None

    def _watch(self) -> None:
        while True:
            _, status = os.waitpid(self.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                break
            if os.WSTOPSIG(status) in FOR_WANTING_IT and self._terminal.is_lent_to(self.pid):
                self.signal(signal.SIGCONT)  # it wanted the terminal just before it got it
            else:
                self._events.put(Stopped())
        code = os.waitstatus_to_exitcode(status)
        self._events.put(Ended(code if code >= 0 else 128 - code))


@contextmanager
def started(command: Sequence[str], env: Mapping[str, str]) -> Iterator[Child]:
    """Run a command, and have our signals come as its events. Raises CommandNotFound, CommandNotExecutable.

    The caller sees to its end: the context gives back the terminal and the signals' former handlers, no more.
    """
    events: SimpleQueue[Event] = SimpleQueue()
    with caught(PASSED_ON, lambda number: events.put(Signalled(number))):
        pid = _spawn(command, env)
        with lent_terminal(pid) as terminal:
            yield Child(pid, events, terminal)


def _spawn(command: Sequence[str], env: Mapping[str, str]) -> int:
    try:
        return os.posix_spawnp(command[0], list(command), env, setpgroup=0, setsigmask=(), setsigdef=IGNORED_BY_PYTHON)
    except OSError as error:
        raise _refused(command[0], error) from error


def _refused(name: str, error: OSError) -> SlotkeeperError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return CommandNotFound(f"{name!r} is no command: nothing of that name was found. Check its spelling, and PATH.")
    return CommandNotExecutable(
        f"{name!r} cannot be run ({error.strerror}). Check its permissions, and its first line."
    )


@contextmanager
def caught(numbers: Sequence[int], handle: Callable[[int], None]) -> Iterator[None]:
    """Have signals handled; those that we were started to ignore (as under nohup) stay ignored."""

    def handler(number: int, frame: FrameType | None) -> None:
        handle(number)

    former = {number: signal.getsignal(number) for number in numbers}
    mine = [number for number in numbers if former[number] is not signal.SIG_IGN]
    for number in mine:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, former[number] or signal.SIG_DFL)
