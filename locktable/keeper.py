"""One daemon thread a client that renews its locks, whatever the client's own threads or loop are busy with.

It runs an asyncio loop of its own, so that a renewal that is not answered holds up no other.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress

from .lease import Lease, Renewer, keep
from .lock import Lock

log = logging.getLogger(__name__)

Opened = Callable[[], AbstractAsyncContextManager[Renewer]]


class LockKeeper:
    """Renews leases until they are let go or lost. The thread starts with the first one and ends with `close`.

    `opened` makes what renews them: it is entered in the thread's own loop, and left there.
    """

    def __init__(self, opened: Opened, name: str = "slotkeeper-locks") -> None:
        self._opened, self._name = opened, name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._tasks: dict[Lease, asyncio.Task[None]] = {}
        self._early: list[Lease] = []
        self._renewer: Renewer | None = None
        self._closed = False

    def add(self, lease: Lease) -> None:
        """Begin to renew a lease. Nobody renews it once the client is closed."""
        self._soon(self._started(), self._keep, lease)

    def drop(self, lease: Lease) -> None:
        """Stop renewing a lease, at once."""
        lease.let_go = True
        self._soon(self._loop, self._forget, lease)

    def close(self) -> None:
        """Stop renewing all leases, and end the thread. Safe to call twice."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            self._closed = True
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(self._stop.set)
            thread.join()

    def _soon(self, loop: asyncio.AbstractEventLoop | None, work: Callable[[Lease], None], lease: Lease) -> None:
        if loop is not None:
            with suppress(RuntimeError):  # another thread has closed it in this moment
                loop.call_soon_threadsafe(work, lease)

    def _started(self) -> asyncio.AbstractEventLoop | None:
        with self._lock:
            if self._loop is None and not self._closed:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._renew_all())
        finally:
            loop.close()

    async def _renew_all(self) -> None:
        async with AsyncExitStack() as stack:
            self._renewer = await _entered(stack, self._opened)
            for lease in self._early:
                self._keep(lease)
            await self._stop.wait()
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _keep(self, lease: Lease) -> None:
        if self._renewer is None:
            self._early.append(lease)
        elif not lease.over:
            self._tasks[lease] = asyncio.ensure_future(self._kept(lease, self._renewer))

    async def _kept(self, lease: Lease, renewer: Renewer) -> None:
        try:
            await keep(lease, _Clock(), renewer, random.random)
        finally:
            self._tasks.pop(lease, None)

    def _forget(self, lease: Lease) -> None:
        if (task := self._tasks.pop(lease, None)) is not None:
            task.cancel()


async def _entered(stack: AsyncExitStack, opened: Opened) -> Renewer:
    try:
        return await stack.enter_async_context(opened())
    except Exception as error:  # nobody can renew: each lease is lost when its time has come, and its holder told
        log.warning("locks will not be renewed: %s", error, exc_info=True)
        return _Broken(error)


class _Broken:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float) -> Lock:
        raise self._error


class _Clock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
