"""The two ports: one that blocks and never suspends, and one for an asyncio loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from .. import database
from ..database import AsyncioPort, BlockingPort, Store, drive
from .clock import Clock
from .port import Background

T = TypeVar("T")
NO_STORE = cast("Store", None)  # of a database port only the clock and the waiting are used here


def process_clock() -> Clock:
    """Return a clock over this process's own."""
    return Clock(time.time_ns, time.monotonic_ns)


class ThreadsPort(BlockingPort):
    """For threads, which may share it."""

    def __init__(self) -> None:
        super().__init__(NO_STORE)

    def begin(self, core: Coroutine[Any, Any, None]) -> Background:
        """Run something in a thread of its own."""
        return _Thread(core)

    async def run(self, work: Callable[[], T]) -> T:
        """Do it here and now."""
        return work()

    async def aside(self, work: Callable[[], T]) -> T:
        """Do it here and now: other threads go on."""
        return work()

    def over(self, store: Store) -> database.Port:
        """See Port.over."""
        return BlockingPort(store)

    async def close(self) -> None:
        """See Port.close. There is nothing."""


class LoopPort(AsyncioPort):
    """For the tasks of one loop. What blocks goes to two threads: one for what must be done in order, one for the rest."""

    def __init__(self) -> None:
        super().__init__(NO_STORE)
        self._in_order = ThreadPoolExecutor(1, thread_name_prefix="slotkeeper-journal")
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="slotkeeper-snapshot")

    def begin(self, core: Coroutine[Any, Any, None]) -> Background:
        """Run something as a task."""
        return _Task(asyncio.get_running_loop().create_task(core))

    async def run(self, work: Callable[[], T]) -> T:
        """See Port.run."""
        return await _uncancelled(self._in_order, work)

    async def aside(self, work: Callable[[], T]) -> T:
        """See Port.aside."""
        return await _uncancelled(self._beside, work)

    def over(self, store: Store) -> database.Port:
        """See Port.over."""
        return AsyncioPort(store)

    async def close(self) -> None:
        """End the threads. They are idle by then, or about to be."""
        await self.finished()
        await asyncio.to_thread(self._in_order.shutdown)
        await asyncio.to_thread(self._beside.shutdown)


class _Thread:
    def __init__(self, core: Coroutine[Any, Any, None]) -> None:
        self._thread = threading.Thread(target=drive, args=(core,), name="slotkeeper-tasks", daemon=True)
        self._thread.start()

    async def ended(self) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join()


class _Task:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    async def ended(self) -> None:
        if self._task is not asyncio.current_task():
            await asyncio.wait([self._task])
            self._task.result()


async def _uncancelled(executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """Wait for a thread. Who is cancelled meanwhile takes nothing back: not even what has not begun."""
    future = executor.submit(work)
    future_here = asyncio.wrap_future(future)
    return await asyncio.shield(future_here)
