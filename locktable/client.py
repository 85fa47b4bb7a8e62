"""What every client of locks can do, whoever grants them: a service, or the database itself. The same names everywhere.

In a lock that a client returns, `until` is on `time.monotonic` of its own process, and the holder may trust it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from .hold import AsyncLockHold, LockHold
from .lock import DEFAULT_LEASE_S, Lock


class Locker(Protocol):
    """Grants locks to the threads of a program."""

    def acquire(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> Lock:
        """Take a lock, for `lease_s` seconds; where it is held, stand in line for it up to `wait_s` seconds.

        Nobody renews it: `hold` does. With a `request` id of one's own, a repeated call gets the same lock.
        Raises LockHeld with the holder's lock, LockUnavailable when nothing happened, LockUnknown when something may have.
        """
        ...

    def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        """Count a lock's lease anew, and return it. Raises NotHeld when it has ended, LockUnavailable, LockUnknown."""
        ...

    def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        """Give a lock back; one that is not at hand, by its name and id. False: it had ended before."""
        ...

    def release_request(self, name: str, request: str) -> bool:
        """Give back what a request was granted, where its answer was lost. False: it holds nothing."""
        ...

    def locks(self) -> list[Lock]:
        """Return what is held, by name."""
        ...

    def hold(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> LockHold:
        """Acquire, for a with statement: the lock is renewed in the background, and given back on every way out."""
        ...


class AsyncLocker(Protocol):
    """Grants locks to the tasks of an asyncio loop. As `Locker`, with `await`."""

    async def acquire(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> Lock:
        """See Locker.acquire."""
        ...

    async def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        """See Locker.renew."""
        ...

    async def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        """See Locker.release."""
        ...

    async def release_request(self, name: str, request: str) -> bool:
        """See Locker.release_request."""
        ...

    async def locks(self) -> list[Lock]:
        """See Locker.locks."""
        ...

    def hold(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> AbstractAsyncContextManager[AsyncLockHold]:
        """See Locker.hold: `async with client.hold(...) as hold`."""
        ...
