"""A held lock that is renewed in the background, and given back at the end of a with block."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from .errors import LockLost
from .keeper import LockKeeper
from .lease import Lease
from .lock import Lock, lease

log = logging.getLogger(__name__)


class _Releases(Protocol):
    def release(self, lock: Lock | str, lock_id: str = "") -> bool: ...


class _ReleasesLater(Protocol):
    async def release(self, lock: Lock | str, lock_id: str = "") -> bool: ...


class _Held:
    """What both faces' holds have in common.

    `fence` only grows for a name: hand it to whatever the holder writes elsewhere, and let that refuse a smaller one.
    """

    def __init__(self, keeper: LockKeeper, lock: Lock, lease_s: float, on_lost: Callable[[], None]) -> None:
        self.name, self.id, self.fence, self.holder = lock.name, lock.id, lock.fence, lock.holder
        self.lease_s = lease(lease_s)
        self._lease, self._keeper = Lease(lock, self.lease_s, on_lost), keeper
        self._ended = False
        keeper.add(self._lease)

    def __repr__(self) -> str:
        state = "lost" if self.is_lost else "ended" if self._ended else "held"
        return f"<{type(self).__name__} {self.name} {self.id} fence={self.fence} lease={self.lease_s:g}s {state}>"

    @property
    def lock(self) -> Lock:
        """The lock as it was last renewed."""
        return self._lease.lock

    @property
    def is_lost(self) -> bool:
        """Tell whether the lease has ended against the holder's will. Its count is asked: a thread may be late to say so."""
        if self._lease.trusted_until <= time.monotonic():
            self._lease.lose()
        return self._lease.lost

    @property
    def trusted_until(self) -> float:
        """The moment (of `time.monotonic`) until which the lock is surely the holder's, unless it is renewed."""
        return self._lease.trusted_until

    def check(self) -> None:
        """Raise LockLost when the lock may be somebody else's by now."""
        if self.is_lost:
            raise LockLost(self.name, self.id, fence=self.fence)

    def _let_go(self) -> None:
        self._lease.let_go = True
        self._keeper.drop(self._lease)

    def _lost_now(self) -> None:
        log.warning("lost lock %s (%s, fence %d)", self.name, self.id, self.fence)

    def _exit_problem(self, error: BaseException | None, problem: Exception) -> None:
        """Raise what went wrong at the end of a with block, unless its body failed: that error is the one to see."""
        if error is None:
            raise problem
        error.add_note(f"and the lock was not given back: {problem}")


class LockHold(_Held):
    """A lock held by a thread. `lost` is set when it has ended against the holder's will.

    As a context manager it gives the lock back at the end, and raises LockLost when it was lost before.
    """

    def __init__(self, client: _Releases, keeper: LockKeeper, lock: Lock, lease_s: float) -> None:
        self._client, self.lost = client, threading.Event()
        super().__init__(keeper, lock, lease_s, self._on_lost)

    def _on_lost(self) -> None:
        self._lost_now()
        self.lost.set()

    def release(self) -> bool:
        """Give the lock back. False: it had ended before. Raises LockLost when it was lost."""
        if self._ended:
            return False
        self.check()
        self._let_go()
        released = self._client.release(self.lock)
        self._ended = True  # not where the release failed: then it may be tried again
        return released

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.release()
        except Exception as problem:
            self._exit_problem(error, problem)


class AsyncLockHold(_Held):
    """A lock held by a task. As `LockHold`, with `await`; `lost` is an asyncio.Event."""

    def __init__(self, client: _ReleasesLater, keeper: LockKeeper, lock: Lock, lease_s: float) -> None:
        self._client, self.lost = client, asyncio.Event()
        self._loop = asyncio.get_running_loop()
        super().__init__(keeper, lock, lease_s, self._on_lost)

    def _on_lost(self) -> None:
        self._lost_now()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.lost.set)

    async def release(self) -> bool:
        """Give the lock back. False: it had ended before. Raises LockLost when it was lost."""
        if self._ended:
            return False
        self.check()
        self._let_go()
        released = await self._client.release(self.lock)
        self._ended = True
        return released

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await self.release()
        except Exception as problem:
            self._exit_problem(error, problem)
