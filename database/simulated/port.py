"""The port whose every wait is the scheduler's business. What becomes of a request is decided by a network."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from math import inf
from types import coroutine
from typing import Any, Generic, Protocol, TypeVar

from ..batch import Batch, Outcome, Slice
from ..errors import DatabaseError
from ..port import Event, Mutex, Pending
from ..store import Store
from ..table import Key, Row, Table
from ..turn import Turn
from .scheduler import Scheduler, Sleepers, Wait

T = TypeVar("T")


class Network(Protocol):
    """Takes requests, and answers each now, later or never."""

    def commit(self, batch: Batch, pending: SimulatedPending[Outcome]) -> None: ...

    def read(
        self,
        table: Table,
        partition: Key,
        slices: tuple[Slice, ...],
        serial: bool,
        pending: SimulatedPending[list[Row]],
    ) -> None: ...


class Straight:
    """A network that loses nothing and takes no time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, batch: Batch, pending: SimulatedPending[Outcome]) -> None:
        """Commit a batch at once."""
        pending.settle(lambda: self._store.commit(batch))

    def read(
        self,
        table: Table,
        partition: Key,
        slices: tuple[Slice, ...],
        serial: bool,
        pending: SimulatedPending[list[Row]],
    ) -> None:
        """Read at once."""
        pending.settle(lambda: self._store.read(table, partition, slices, serial=serial))


@coroutine
def _suspended(until: float, sleepers: Sleepers | None) -> Generator[Wait, None, None]:
    """Wait for a moment, a flag, or both."""
    yield until, sleepers


class Flag:
    """An event of the schedule. Setting it wakes whoever sleeps on it."""

    __slots__ = ("_is_set", "_scheduler", "_sleepers")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False
        self._sleepers: Sleepers = []

    def set(self) -> None:
        self._is_set = True
        if self._sleepers:
            sleepers, self._sleepers = self._sleepers, []
            for task, epoch in sleepers:
                self._scheduler.wake(task, epoch)

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    async def wait(self, timeout_s: float) -> bool:
        if not self._is_set:
            await _suspended(self._scheduler.now + timeout_s, self._sleepers)
        return self._is_set


class SimulatedPending(Flag, Generic[T]):
    """A request on its way. Whoever took it answers it once."""

    __slots__ = ("_answer", "_error")

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._answer: T | None = None
        self._error: Exception | None = None

    def settle(self, work: Callable[[], T]) -> None:
        """Answer with what some work returns or raises."""
        try:
            self.answer(work())
        except DatabaseError as error:
            self.fail(error)

    def answer(self, answer: T, _: object = None) -> None:
        """Answer it."""
        self._answer = answer
        self.set()

    def fail(self, error: Exception) -> None:
        """Answer it with an error."""
        self._error = error
        self.set()

    def done(self) -> bool:
        return self._is_set

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._answer  # type: ignore[return-value]


class SimulatedPort:
    """What one simulated process sees: the network, the schedule's clock, and a wall clock that may be wrong."""

    wakes_at_once = 2

    def __init__(
        self, scheduler: Scheduler, network: Network, *, group: object = None, wall_offset_ms: int = 1_700_000_000_000
    ) -> None:
        self.wall_offset_ms, self.is_dead = wall_offset_ms, False
        self._scheduler, self._network, self._group = scheduler, network, group

    async def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """See Port.read."""
        pending = self.begin_read(table, partition, slices, serial=serial)
        await pending.wait(inf)
        return pending.result()

    async def commit(self, batch: Batch) -> Outcome:
        """See Port.commit."""
        pending = self.begin_commit(batch)
        await pending.wait(inf)
        return pending.result()

    def begin_read(
        self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool
    ) -> Pending[list[Row]]:
        """See Port.begin_read."""
        pending: SimulatedPending[list[Row]] = SimulatedPending(self._scheduler)
        self._network.read(table, partition, slices, serial, pending)
        return pending

    def begin_commit(self, batch: Batch) -> Pending[Outcome]:
        """See Port.begin_commit."""
        pending: SimulatedPending[Outcome] = SimulatedPending(self._scheduler)
        self._network.commit(batch, pending)
        return pending

    async def sleep(self, seconds: float) -> None:
        """Let the others go on for a while."""
        await _suspended(self._scheduler.now + seconds, None)

    async def give_way(self) -> None:
        """Let the others that are ready go on first."""
        await _suspended(self._scheduler.now, None)

    def now(self) -> float:
        """Return the schedule's moment."""
        return self._scheduler.now

    def wall_ms(self) -> int:
        """Return what this process takes for milliseconds since the epoch."""
        return self.wall_offset_ms + int(self._scheduler.now * 1000)

    def event(self) -> Event:
        """Return a flag of the schedule."""
        return Flag(self._scheduler)

    def mutex(self) -> Mutex:
        """Return a mutex among tasks."""
        return Turn()

    def finish(self, core: Coroutine[Any, Any, None]) -> None:
        """Run a clean-up as a task of its own; a dead process runs none."""
        if self.is_dead:
            core.close()
        else:
            self._scheduler.spawn(core, "clean-up", self._group)
