"""One daemon thread a client that renews its leases, whatever the client's own threads or loop are busy with.

It runs an asyncio loop of its own: leases that are due together are renewed together, a few batches a bucket, and a bucket
whose replicas are silent holds up no other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from ..database import AsyncioPort, Store
from .bucket import Dice
from .core import Core
from .lease import Lease, keep
from .metadata import Description


class Keeper:
    """Renews leases until they are let go or lost. The thread starts with the first one and ends with `close`."""

    def __init__(
        self, store: Store, domain_id: UUID, *, client_id: str, dice: Dice, known: dict[str, Description]
    ) -> None:
        self._client_id, self._dice = client_id, dice
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._port = AsyncioPort(store)
        self._core = Core(self._port, domain_id, client_id=client_id, dice=dice, known=known)
        self._tasks: dict[Lease, asyncio.Task[None]] = {}
        self._phase, self._closed = dice(), False

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
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _soon(self, loop: asyncio.AbstractEventLoop | None, work: Callable[[Lease], None], lease: Lease) -> None:
        if loop is not None:
            with suppress(RuntimeError):  # another thread has closed it in this moment
                loop.call_soon_threadsafe(work, lease)

    def _started(self) -> asyncio.AbstractEventLoop | None:
        with self._lock:
            if self._loop is None and not self._closed:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name=f"slotkeeper-leases-{self._client_id}", daemon=True
                )
                self._thread.start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(self._port.finished())
        finally:
            loop.close()

    def _keep(self, lease: Lease) -> None:
        if not lease.over:
            self._tasks[lease] = asyncio.ensure_future(self._kept(lease))

    async def _kept(self, lease: Lease) -> None:
        try:
            await keep(lease, self._port, self._core, self._dice, self._phase)
        finally:
            self._tasks.pop(lease, None)

    def _forget(self, lease: Lease) -> None:
        if (task := self._tasks.pop(lease, None)) is not None:
            task.cancel()
