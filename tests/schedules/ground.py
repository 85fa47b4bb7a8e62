"""The ground that every schedule stands on: one random source, one clock, and trouble until it is calm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import Any, Protocol

from schedules.history import History
from schedules.network import Attempt
from slotkeeper.database import Batch, Key, Outcome, Row, Slice, Table
from slotkeeper.database.simulated import Scheduler, Task

LONGEST_LAG_S = 0.002
LONGEST_STALL_S = 4.0


class Process(Protocol):
    """A simulated process: a group of tasks. It stands still until a moment; of itself it does not know."""

    paused_until: float


class Ground(ABC):
    """A schedule without its subject. `trouble` is how likely a request fares badly, `stalls` how likely a task pauses."""

    def __init__(self, random: Random, *, recorded: bool = False) -> None:
        self.random = random.random
        self.history = History() if recorded else None
        self.scheduler = Scheduler(self._lag, self._failed)
        self.at = self.scheduler.at
        self.trouble = self.stalls = 0.0
        self.calm = self._is_over = False
        self.attempts, self.trouble_until, self.stalled_s = 0, 0.0, 0.0

    @property
    def now(self) -> float:
        """The schedule's moment."""
        return self.scheduler.now

    @abstractmethod
    def run(self) -> None:
        """Let the schedule run to its end. Raises Violation when a promise is broken."""

    def note(self, who: str, text: str) -> None:
        """Write a line of history."""
        if self.history is not None:
            self.history.note(self.now, who, text)

    def choice(self, among: Any) -> Any:
        """Pick one of several."""
        return among[int(self.random() * len(among))]

    def has_trouble(self, seconds: float) -> None:
        """Note that there is trouble for some time yet."""
        self.trouble_until = max(self.trouble_until, self.now + seconds)

    def stands_still(self, seconds: float) -> None:
        """Note that a process, or a task of one, stands still for some time."""
        self.stalled_s += seconds
        self.has_trouble(seconds)

    def begin_calm(self) -> None:
        """Let nothing go wrong from here on, but for what is on its way."""
        self.calm = True
        self.has_trouble(0.0)
        self.note("", "from here on, calm")

    def forget(self, *others: object) -> None:
        """Let go of everything, so that it is gone at once: a garbage collection would take a tenth of the time."""
        for part in (*others, self.scheduler, self):
            vars(part).clear()

    # --- the database ------------------------------------------------------------------------------------------------

    @abstractmethod
    def told(self, batch: Batch) -> str:
        """Say what a batch wants to do."""

    @abstractmethod
    def decide(self, attempt: Attempt) -> Outcome:
        """Let a batch reach the database."""

    @abstractmethod
    def settled(self, attempt: Attempt) -> None:
        """Note that whoever sent a batch has learned that it applied: every read shows it from now on."""

    @abstractmethod
    def seen(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """Return what a read shows."""

    # --- the scheduler's questions -----------------------------------------------------------------------------------

    def _lag(self, process: Any) -> float:
        """Tell how long a task that may go on does not."""
        lag = self.random()
        if lag < self.stalls and not self.calm and not self._is_over:
            lag_s = self.random() * LONGEST_STALL_S
            self.stands_still(lag_s)
        else:
            lag_s = lag * LONGEST_LAG_S
        if process is not None and process.paused_until > (now := self.scheduler.now) + lag_s:
            return process.paused_until - now  # type: ignore[no-any-return]
        return lag_s

    def _failed(self, task: Task, error: BaseException) -> None:
        """Learn of a task that ended with an error."""
        raise error
