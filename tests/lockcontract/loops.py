"""A locker for asyncio behind the names of one for threads: what it awaits runs on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from slotkeeper.locktable import DEFAULT_LEASE_S, AsyncLocker, AsyncLockHold, Lock

T = TypeVar("T")
BOUND_S = 120.0


class LoopThread:
    """A loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="lockers", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something there to its end."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(BOUND_S)

    def close(self) -> None:
        """End the loop."""
        self.run(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class LoopLost:
    """The event of a hold, for threads."""

    def __init__(self, thread: LoopThread, hold: AsyncLockHold) -> None:
        self._thread, self._hold = thread, hold

    def wait(self, timeout_s: float) -> bool:
        return self._thread.run(self._waited(timeout_s))

    async def _waited(self, timeout_s: float) -> bool:
        try:
            return await asyncio.wait_for(self._hold.lost.wait(), timeout_s)
        except TimeoutError:
            return False


class LoopHold:
    """A hold, for threads."""

    def __init__(
        self, thread: LoopThread, context: AbstractAsyncContextManager[AsyncLockHold], hold: AsyncLockHold
    ) -> None:
        self._thread, self._context, self._hold = thread, context, hold
        self.id, self.fence, self.lost = hold.id, hold.fence, LoopLost(thread, hold)
        self.check = hold.check

    @property
    def is_lost(self) -> bool:
        return self._hold.is_lost

    @property
    def trusted_until(self) -> float:
        return self._hold.trusted_until

    def release(self) -> None:
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool | None:
        return self._thread.run(self._left(kind, error, at))

    async def _left(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool | None:
        return await self._context.__aexit__(kind, error, at)


class LoopLocker:
    """A locker, for threads."""

    def __init__(self, thread: LoopThread, locker: AsyncLocker) -> None:
        self._thread, self._locker = thread, locker

    def acquire(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> Lock:
        asked = self._locker.acquire(name, holder=holder, lease_s=lease_s, wait_s=wait_s, request=request)
        return self._thread.run(asked)

    def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        return self._thread.run(self._locker.renew(lock, lease_s))

    def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        return self._thread.run(self._locker.release(lock, lock_id))

    def release_request(self, name: str, request: str) -> bool:
        return self._thread.run(self._locker.release_request(name, request))

    def locks(self) -> list[Lock]:
        return self._thread.run(self._locker.locks())

    def hold(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> Any:
        context = self._locker.hold(name, holder=holder, lease_s=lease_s, wait_s=wait_s, request=request)
        return LoopHold(self._thread, context, self._thread.run(context.__aenter__()))


@contextmanager
def on_a_loop(*lockers: Any) -> Iterator[list[LoopLocker]]:
    """Open lockers on a loop of their own, for threads."""
    thread = LoopThread()
    try:
        yield [LoopLocker(thread, thread.run(locker.open())) for locker in lockers]
        for locker in lockers:
            thread.run(locker.close())
    finally:
        thread.close()
