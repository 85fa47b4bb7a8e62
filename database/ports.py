"""The two ports that run on real stores: one that blocks and never suspends, and one for an asyncio loop."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from .batch import Batch, Outcome, Slice
from .port import Event, Mutex, Pending
from .store import Store
from .table import Key, Row, Table
from .turn import Turn

T = TypeVar("T")
LONGEST_WAIT_S = 86_400.0
BLINK_S = 0.000_05
SHARED_S = 0.5  # alarms of long waits ring so often, for all together


class _Clock:
    now = staticmethod(time.monotonic)  # seconds

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


class BlockingPort(_Clock):
    """A port whose methods never suspend: `drive` runs a coroutine over it to its end in one go. Threads may share it."""

    wakes_at_once = 8  # more of them would only stand in line for the interpreter

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """See Port.read."""
        return self._store.read(table, partition, slices, serial=serial)

    async def commit(self, batch: Batch) -> Outcome:
        """See Port.commit."""
        return self._store.commit(batch)

    def begin_read(
        self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool
    ) -> Pending[list[Row]]:
        """See Port.begin_read."""
        return _ThreadPending(self._store.read_begun(table, partition, slices, serial=serial))

    def begin_commit(self, batch: Batch) -> Pending[Outcome]:
        """See Port.begin_commit."""
        return _ThreadPending(self._store.commit_begun(batch))

    async def sleep(self, seconds: float) -> None:
        """Block this thread for a while."""
        time.sleep(seconds)  # noqa: ASYNC251 - this port never suspends, and no loop runs it

    async def give_way(self) -> None:
        """Let other threads have the interpreter."""
        time.sleep(BLINK_S)  # noqa: ASYNC251 - as above

    def event(self) -> Event:
        """Return an event for threads."""
        return _ThreadEvent()

    def mutex(self) -> Mutex:
        """Return a mutex for threads."""
        return _ThreadMutex()

    def finish(self, core: Coroutine[Any, Any, None]) -> None:
        """Run a clean-up at once, in this thread."""
        drive(core)


class AsyncioPort(_Clock):
    """A port for the running asyncio loop. Nothing here blocks it."""

    wakes_at_once = sys.maxsize

    def __init__(self, store: Store) -> None:
        self._store = store
        self._alarms: _Alarms | None = None  # of the running loop
        self._finishing: set[asyncio.Task[None]] = set()

    async def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """See Port.read."""
        return await asyncio.wrap_future(self._store.read_soon(table, partition, slices, serial=serial))

    async def commit(self, batch: Batch) -> Outcome:
        """See Port.commit. A caller that is cancelled meanwhile takes nothing back: its outcome is unknown."""
        return await asyncio.wrap_future(self._store.commit_soon(batch))

    def begin_read(
        self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool
    ) -> Pending[list[Row]]:
        """See Port.begin_read."""
        return _LoopPending(self._store.read_soon(table, partition, slices, serial=serial), self.event())

    def begin_commit(self, batch: Batch) -> Pending[Outcome]:
        """See Port.begin_commit."""
        return _LoopPending(self._store.commit_soon(batch), self.event())

    async def sleep(self, seconds: float) -> None:
        """Let the loop go on for a while."""
        await asyncio.sleep(seconds)

    async def give_way(self) -> None:
        """Let the loop come round once."""
        await asyncio.sleep(0)

    def event(self) -> Event:
        """Return an event for tasks of this loop, which any thread may set."""
        loop = asyncio.get_running_loop()
        if self._alarms is None or self._alarms.loop is not loop:
            self._alarms = _Alarms(loop)
        return _LoopEvent(loop, self._alarms)

    def mutex(self) -> Mutex:
        """Return a mutex for tasks of this loop."""
        return Turn()

    def finish(self, core: Coroutine[Any, Any, None]) -> None:
        """Run a clean-up as a task of its own."""
        task = asyncio.get_running_loop().create_task(core)
        self._finishing.add(task)  # the loop itself keeps no hold of it
        task.add_done_callback(self._finishing.discard)

    async def finished(self) -> None:
        """Wait until every clean-up has ended."""
        while self._finishing:
            await asyncio.wait(set(self._finishing))


class _ThreadPending(Generic[T]):
    def __init__(self, future: Future[T]) -> None:
        self._future = future

    def done(self) -> bool:
        return self._future.done()

    async def wait(self, timeout_s: float) -> bool:
        with suppress(TimeoutError, CancelledError):
            self._future.exception(_bounded(timeout_s))
        return self._future.done()

    def result(self) -> T:
        return self._future.result(0)


class _LoopPending(Generic[T]):
    def __init__(self, future: Future[T], arrived: Event) -> None:
        self._future, self._arrived = future, arrived
        future.add_done_callback(lambda _: self._arrived.set())

    def done(self) -> bool:
        return self._future.done()

    async def wait(self, timeout_s: float) -> bool:
        return self._future.done() or await self._arrived.wait(timeout_s)

    def result(self) -> T:
        return self._future.result(0)


class _ThreadMutex:
    """A mutex that is a lock's own methods, as every call takes it and gives it back."""

    __slots__ = ("give", "take")

    def __init__(self) -> None:
        lock = threading.Lock()
        self.take, self.give = partial(lock.acquire, False), lock.release


class _ThreadEvent:
    """An event as a bare lock, free when it is set: a third of the price of threading.Event, and every call in a crowd pays."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        try:  # noqa: SIM105 - suppress would cost more than all the rest
            self._lock.release()
        except RuntimeError:  # it is set
            pass

    def clear(self) -> None:
        self._lock.acquire(blocking=False)

    def is_set(self) -> bool:
        return not self._lock.locked()

    async def wait(self, timeout_s: float) -> bool:
        if not self._lock.acquire(timeout=_bounded(timeout_s)):
            return False
        self.set()  # for whoever else waits
        return True


class _Alarms:
    """Rings for those who wait in a loop.

    A timer for each of them would cost as much as all the rest of the waiting, and nearly none ever rings. So long waits share
    one, which rings a little early, and its waiters wait for the rest by themselves.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._shared: dict[int, set[asyncio.Future[bool]]] = {}

    async def wait(self, waiter: asyncio.Future[bool], seconds: float) -> bool:
        """Wait until somebody else releases the waiter, or for so long, or a little less where that is long. Tell whether
        it was somebody else.
        """
        if seconds < 2 * SHARED_S:
            timer = self.loop.call_later(seconds, _release, waiter, False)
            try:
                return await waiter
            finally:
                timer.cancel()
        together = self._together(int((self.loop.time() + seconds) / SHARED_S))
        together.add(waiter)
        try:
            return await waiter
        finally:
            together.discard(waiter)

    def _together(self, tick: int) -> set[asyncio.Future[bool]]:
        together = self._shared.get(tick)
        if together is None:
            together = self._shared[tick] = set()
            self.loop.call_at(tick * SHARED_S, self._ring, tick)
        return together

    def _ring(self, tick: int) -> None:
        for waiter in self._shared.pop(tick):
            _release(waiter, False)


class _LoopEvent:
    """Like asyncio.Event, but any thread may set it, and a wait with a timeout costs no task."""

    def __init__(self, loop: asyncio.AbstractEventLoop, alarms: _Alarms) -> None:
        self._loop, self._alarms, self._thread = loop, alarms, threading.get_ident()
        self._is_set = False
        self._waiters: list[asyncio.Future[bool]] = []

    def set(self) -> None:
        self._is_set = True  # at once, also for the thread that asks before the loop comes round
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._wake)

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    async def wait(self, timeout_s: float) -> bool:
        until = time.monotonic() + _bounded(timeout_s)
        while not self._is_set:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                was_set = await self._alarms.wait(waiter, until - time.monotonic())
            finally:
                self._waiters.remove(waiter)
            if was_set or time.monotonic() >= until:
                break
        return self._is_set

    def _wake(self) -> None:
        for waiter in self._waiters:
            _release(waiter, True)


def _release(waiter: asyncio.Future[bool], by_event: bool) -> None:
    if not waiter.done():
        waiter.set_result(by_event)


def _bounded(timeout_s: float) -> float:
    """Return a timeout that every clock can take: waiting for ever is waiting again."""
    return min(max(timeout_s, 0.0), LONGEST_WAIT_S)


def drive(core: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose port never suspends. A slip is an error at once, never a hang."""
    try:
        core.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    core.close()
    raise RuntimeError("a coroutine over a blocking port suspended: it awaits something that is not its port's")
