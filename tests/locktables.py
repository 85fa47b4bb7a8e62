"""Lock tables of both faces behind one set of plain methods, and one in a schedule whose clock only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any, ClassVar, cast

from eitherface import EitherFace
from eventually import BOUND_S, until

from slotkeeper.database import Store
from slotkeeper.database.simulated import Scheduler, SimulatedPort, Straight
from slotkeeper.database.simulated.scheduler import Task
from slotkeeper.locktable import AsyncTable, Grant, Lock, Locks, Request, Table

LONG_S = 60.0
THEN = datetime(2026, 1, 1, tzinfo=UTC)


class Hands:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class Waiter:
    """An acquire on its way."""

    def __init__(self, tables: Tables, coming: Future[Grant] | asyncio.Task[Grant]) -> None:
        self._tables, self._coming = tables, coming

    def is_done(self) -> bool:
        """Tell whether it is answered, after whatever is ready has gone on."""
        self._tables.settle()
        return self._coming.done()

    def grant(self) -> Grant:
        """Return its grant, or raise what kept it from being granted."""
        if isinstance(self._coming, Future):
            return self._coming.result(BOUND_S)
        return cast("Grant", self._tables.run(asyncio.wait_for(self._coming, BOUND_S)))


class Tables(EitherFace):
    """A table of either face."""

    def __init__(self, face: str, **options: Any) -> None:
        self.hands = Hands()
        options.setdefault("now", self.hands)
        self.table: Any = (Table if face == "threads" else AsyncTable)(**options)
        super().__init__(face, self.table)
        self._threads = ThreadPoolExecutor(40)

    def settle(self) -> None:
        """Let the loop's tasks go on that are ready."""
        if self._runner is not None:
            self.run(_come_round())

    def empty(self) -> Tables:
        """Rebuild it from nodes that hold nothing."""
        assert self.rebuild(self.generation, []) == []
        return self

    def take(self, name: str, **named: Any) -> Lock:
        """Acquire a lock."""
        return cast("Lock", self.acquire(Request(name, **named)).lock)

    def wait(self, name: str, **named: Any) -> Waiter:
        """Begin to acquire a held lock; returns once it stands in line."""
        before = self.table.waiting
        waiter = self._begin(name, named)
        until(lambda: self.table.waiting > before or waiter.is_done())
        return waiter

    def wait_again(self, name: str, before: Waiter, **named: Any) -> Waiter:
        """Begin to acquire a held lock in the place of an earlier call; returns once it has taken it over."""
        waiter = self._begin(name, named)
        until(lambda: before.is_done() or waiter.is_done())
        return waiter

    def _begin(self, name: str, named: dict[str, Any]) -> Waiter:
        request = Request(name, **{"wait_s": LONG_S, **named})
        if self._runner is None:
            return Waiter(self, self._threads.submit(self.table.acquire, request))
        return Waiter(self, self.run(_begun(self.table, request)))

    def end(self) -> None:
        """End its threads or its loop."""
        self._threads.shutdown()
        super().end()


async def _begun(table: AsyncTable, request: Request) -> asyncio.Task[Grant]:
    return asyncio.ensure_future(table.acquire(request))


async def _come_round() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@contextmanager
def table(face: str, **options: Any) -> Iterator[Tables]:
    """Make a table, and see to its end."""
    tables = Tables(face, **options)
    try:
        yield tables
    finally:
        tables.end()


class Scheduled:
    """A table in a schedule: time passes only when the test lets it."""

    all: ClassVar[list[Scheduled]] = []

    def __init__(self, **options: Any) -> None:
        self.all.append(self)
        self.scheduler = Scheduler()
        self.port = SimulatedPort(self.scheduler, Straight(cast("Store", None)))
        ids = count(1)
        self.locks = Locks(self.port, **{"new_id": lambda: f"id-{next(ids)}", **options})
        self.do(self.locks.rebuild(0, []))

    def do(self, core: Any) -> Any:
        """Run something to its end, with nothing else being late."""
        task = self.scheduler.spawn(core)
        self.scheduler.run(until=self.scheduler.now)
        assert task.is_done, f"{core} waits"
        if task.error is not None:
            raise task.error
        return task.value

    def take(self, name: str, **named: Any) -> Lock:
        """Acquire a lock that is free."""
        return cast("Lock", self.do(self.locks.acquire(Request(name, **named))).lock)

    def wait(self, name: str, **named: Any) -> Task:
        """Begin to acquire a held lock."""
        task = self.scheduler.spawn(self.locks.acquire(Request(name, **{"wait_s": LONG_S, **named})))
        self.scheduler.run(until=self.scheduler.now)
        return task

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        self.scheduler.run(until=self.scheduler.now + seconds)

    @classmethod
    def end(cls) -> None:
        """End what still waits in any schedule, now and not when the memory is collected."""
        for scheduled in cls.all:
            for task in list(scheduled.scheduler.tasks):
                task.coroutine.close()
        cls.all.clear()


def known(name: str, lock_id: str, until_s: float, **named: Any) -> Lock:
    """Return a lock as a node tells it."""
    return Lock(
        name, lock_id, **{"node": "n1", "holder": "h", "acquired_at": THEN, "expires_at": THEN, **named}, until=until_s
    )


def raised(task: Task, kind: type[BaseException]) -> BaseException:
    """Return what a task was ended by."""
    assert isinstance(task.error, kind), f"{task} ended with {task.error!r} and {task.value!r}"
    return task.error


def events_set(port: SimulatedPort) -> Callable[[], int]:
    """Count how often an event of a port is set from now on."""
    made, number = port.event, [0]

    def counting() -> Any:
        event = made()
        set_ = event.set

        def counted() -> None:
            number[0] += 1
            set_()

        return _Counted(event, counted)

    port.event = counting  # type: ignore[method-assign]
    return lambda: number[0]


class _Counted:
    def __init__(self, event: Any, set_: Callable[[], None]) -> None:
        self._event, self.set = event, set_

    def __getattr__(self, name: str) -> Any:
        return getattr(self._event, name)
