"""A daemon thread for what goes on beside a client, whatever the client's own threads or loop are busy with.

It runs an asyncio loop of its own, so that work that is not answered holds up no other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Generic, TypeVar

K = TypeVar("K")
Work = Callable[[K], Coroutine[Any, Any, None]]


class LoopThread(Generic[K]):
    """Works at each key, which is added once, until that is done or dropped. It starts with the first and ends with `close`.

    `opened` gives the work: it is entered in the thread's own loop, and left there when all work has stopped.
    """

    _work: Work[K]

    def __init__(self, name: str, opened: Callable[[], AbstractAsyncContextManager[Work[K]]]) -> None:
        self._name, self._opened = name, opened
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_open, self._stop = asyncio.Event(), asyncio.Event()
        self._tasks: dict[K, asyncio.Task[None]] = {}
        self._closed = False

    def add(self, key: K) -> None:
        """Begin to work at a key. Nobody does once it is closed."""
        self._soon(self._started(), self._begin, key)

    def drop(self, key: K) -> None:
        """Stop the work at a key, if there is any."""
        self._soon(self._loop, self._end, key)

    def close(self) -> None:
        """Stop all work, and end the thread. Safe to call twice."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            self._closed = True
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(self._stop.set)
            thread.join()

    def _soon(self, loop: asyncio.AbstractEventLoop | None, step: Callable[[K], None], key: K) -> None:
        if loop is not None:
            with suppress(RuntimeError):  # another thread has closed it in this moment
                loop.call_soon_threadsafe(step, key)

    def _started(self) -> asyncio.AbstractEventLoop | None:
        with self._lock:
            if self._loop is None and not self._closed:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        async with self._opened() as self._work:
            self._is_open.set()
            await self._stop.wait()
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: K) -> None:
        if not self._stop.is_set():
            self._tasks[key] = asyncio.ensure_future(self._worked(key))

    async def _worked(self, key: K) -> None:
        try:
            await self._is_open.wait()
            await self._work(key)
        finally:
            self._tasks.pop(key, None)

    def _end(self, key: K) -> None:
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()
