"""Task stores of both faces over every journal behind one set of plain methods, so that a behaviour is written once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from eitherface import EitherFace
from servedtasks import Behind, ServedTasks

from slotkeeper.database import Store
from slotkeeper.taskstore import AsyncTaskStore, Clock, Journal, MemoryJournal, TaskStore
from slotkeeper.taskstore.disk import DiskJournal
from slotkeeper.taskstore.record import Record
from slotkeeper.taskstore.remote import AsyncTaskClient, TaskClient
from slotkeeper.taskstore.rows import DatabaseJournal

SECOND_NS = 1_000_000_000
START_NS = 1_800_000_000 * SECOND_NS
BOUND_S = 30.0


class Hands:
    """A wall clock and a monotonic one that stand still until a test moves them."""

    def __init__(self) -> None:
        self.wall_ns, self.steady_ns = START_NS, 5 * SECOND_NS

    def clock(self) -> Clock:
        """Return a clock over these, as a process that starts now has it."""
        return Clock(lambda: self.wall_ns, lambda: self.steady_ns)

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        self.wall_ns += int(seconds * SECOND_NS)
        self.steady_ns += int(seconds * SECOND_NS)


class Place(Protocol):
    """Where a journal lies: each journal made here finds what the one before left."""

    def journal(self) -> Journal | Behind: ...


class MemoryPlace:
    """A journal in memory."""

    def __init__(self) -> None:
        self._journal = MemoryJournal(keep=True)

    def journal(self) -> MemoryJournal:
        """Return the one journal."""
        return self._journal


class DiskPlace:
    """A journal in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def journal(self) -> DiskJournal:
        """Return another journal in the same directory."""
        return DiskJournal(self.directory)


class DatabasePlace:
    """A journal in a database."""

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name

    def journal(self) -> DatabaseJournal:
        """Return another journal in the same rows."""
        return DatabaseJournal(self.store, self.name, segment_commits=50)


class ServicePlace(MemoryPlace):
    """A journal in memory, behind a service: its stores are clients over HTTP."""

    def journal(self) -> Behind:  # type: ignore[override]
        """Return the one journal, for a service to open."""
        return Behind(super().journal())


class Tasks(EitherFace):
    """A store of either face. A journal that is behind a service gets one, and the store is a client of it."""

    def __init__(self, face: str, journal: Journal | Behind | str, **options: Any) -> None:
        self._service = ServedTasks(journal.journal, **options) if isinstance(journal, Behind) else None
        self.store: Any
        if self._service is not None:
            self.store = (TaskClient if face == "threads" else AsyncTaskClient)(self._service.url)
        else:
            self.store = (TaskStore if face == "threads" else AsyncTaskStore)(journal, **options)  # type: ignore[arg-type]
        super().__init__(face, self.store)

    def later(self, method: str, *values: Any, **named: Any) -> Callable[[], Any]:
        """Return a call for `together`."""
        return partial(getattr(self.store, method), *values, **named)

    def together(self, *calls: Callable[[], Any]) -> list[Any]:
        """Make several calls at the same time, in threads or in tasks; return their results, or what they raise, in order."""
        if self._runner is not None:
            return self.run(_gathered(calls))  # type: ignore[no-any-return]
        with ThreadPoolExecutor(len(calls)) as threads:
            return [_result(each) for each in [threads.submit(call) for call in calls]]

    def end(self) -> None:
        """Close the store and its loop, and end its service."""
        try:
            self.close()
        finally:
            super().end()
            if self._service is not None:
                self._service.stop()


async def soon(holds: Callable[[], Awaitable[object]], *, bound_s: float = BOUND_S) -> None:
    """Wait until something that has to be asked for holds, and let the loop go on meanwhile."""
    deadline = time.monotonic() + bound_s
    while not await holds():
        assert time.monotonic() < deadline, f"{holds} did not come about within {bound_s:g} s"
        await asyncio.sleep(0.001)


async def _gathered(calls: tuple[Callable[[], Any], ...]) -> list[Any]:
    async with asyncio.timeout(BOUND_S):
        return list(await asyncio.gather(*(call() for call in calls), return_exceptions=True))


def _result(future: Any) -> Any:
    error = future.exception(BOUND_S)
    return future.result() if error is None else error


@contextmanager
def opened(face: str, journal: Journal | Behind | str, **options: Any) -> Iterator[Tasks]:
    """Open a store, and close it."""
    tasks = Tasks(face, journal, **options)
    try:
        tasks.open()
        yield tasks
    finally:
        tasks.end()


class FailingJournal(MemoryJournal):
    """A journal in memory that fails when it is told to: `failures` are raised by the next appends, one each."""

    def __init__(self) -> None:
        super().__init__(keep=True)
        self.failures: list[BaseException | None] = []
        self.settled: list[bool | BaseException] = []

    async def append(self, records: Sequence[Record], deadline: float) -> None:
        """Fail, or append."""
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        await super().append(records, deadline)

    async def settle(self, deadline: float) -> bool:
        """Say what the test wants to be said."""
        answer = self.settled.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer
