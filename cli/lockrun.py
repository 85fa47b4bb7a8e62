"""A command that runs while a lock is held, and never longer than the lock is surely ours.

The lock is counted on our own clock (`trusted_until`). When it cannot be renewed, the command is asked to end early enough
that it can be killed before anybody else may get the lock. A watchdog beside us does the same when we are killed or stopped.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from .child import Child, Ended, Signalled, Stopped, started
from .watchdog import Watchdog

LOOK_S = 0.1  # how soon a loss is seen that comes before the lease's end: somebody else has released the lock
SHORTEST_LOOK_S = 0.005
GROUP_LEFT_S = 0.02
MARGIN_S = 0.2  # for the killing itself, and for our own delay


class Grant(Protocol):
    """A held lock that somebody renews."""

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def fence(self) -> int: ...

    @property
    def is_lost(self) -> bool: ...

    @property
    def trusted_until(self) -> float:
        """The moment, on time.monotonic, until which the lock is surely ours unless it is renewed."""
        ...


@dataclass(frozen=True)
class Ending:
    """How a command has ended: its code, whether the lock was lost, and the signal of the terminal's key that ended it."""

    code: int
    lost: bool
    key: int | None


class LockRun:
    """A command below a lock."""

    def __init__(self, grant: Grant, child: Child, kill_after_s: float) -> None:
        self._grant, self._child, self._kill_after_s = grant, child, kill_after_s
        self.lost = False
        self._kill_at = float("inf")

    def to_its_end(self) -> Ending:
        """Wait for the command's end."""
        with self._watched() as watchdog:
            while True:
                watchdog.until(self._ends_at)
                self._look()
                match self._child.next(self._pause_s()):
                    case Ended(code):
                        if self._grant.is_lost or time.monotonic() >= self._ends_at:
                            self.lost, self._kill_at = True, time.monotonic()
                        self._see_the_group_end()
                        return Ending(code, self.lost, self._child.ended_by_key(code))
                    case Signalled(number):
                        self._child.pass_on(number)
                    case Stopped() if not self.lost:  # the lease does not wait: it may be lost when we go on
                        self._child.stop_too()

    @property
    def _ends_at(self) -> float:
        """The moment at which nothing of the command may be left, unless the lock is renewed."""
        return self._grant.trusted_until - MARGIN_S

    @contextmanager
    def _watched(self) -> Iterator[Watchdog]:
        watchdog = Watchdog(self._child.pid, self._kill_after_s, self._ends_at)
        try:
            yield watchdog
        finally:
            watchdog.close()

    def _look(self) -> None:
        """Ask the command to end when the lock is lost or about to be; kill it when it had its time."""
        now, ends_at = time.monotonic(), self._ends_at
        if not self.lost and (self._grant.is_lost or now >= ends_at - self._kill_after_s):
            self.lost = True
            self._kill_at = min(ends_at, now + self._kill_after_s)  # nobody else is inside before the lease ends
            self._child.signal(signal.SIGTERM)
            self._child.signal(signal.SIGCONT)
        if now >= self._kill_at:
            self._child.signal(signal.SIGKILL)

    def _pause_s(self) -> float:
        next_at = self._kill_at if self.lost else self._ends_at - self._kill_after_s
        return max(SHORTEST_LOOK_S, min(LOOK_S, next_at - time.monotonic()))

    def _see_the_group_end(self) -> None:
        """After a loss, wait for what the command has started too, and kill what does not end."""
        while self.lost and self._child.signal(0):
            if time.monotonic() >= self._kill_at:
                self._child.signal(signal.SIGKILL)
                return
            time.sleep(GROUP_LEFT_S)


def run_under(grant: Grant, command: Sequence[str], kill_after_s: float, env: Mapping[str, str]) -> Ending:
    """Run a command while a lock is held.

    The command finds the lock in its environment. Raises CommandNotFound, CommandNotExecutable.
    """
    with started(command, {**env, **told(grant)}) as child:
        try:
            return LockRun(grant, child, kill_after_s).to_its_end()
        except BaseException:
            child.signal(signal.SIGKILL)  # whatever it was: nobody would look after the command any more
            raise


def told(grant: Grant) -> dict[str, str]:
    """Return the variables that tell a command under which lock it runs."""
    return {
        "SLOTKEEPER_LOCK_NAME": grant.name,
        "SLOTKEEPER_LOCK_ID": grant.id,
        "SLOTKEEPER_LOCK_FENCE": str(grant.fence),
    }
