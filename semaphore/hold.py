"""A hold: a slot that an owner has, and the lease that it lasts."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from ..owner import Owner
from .errors import LeaseLost, StaleFence
from .keeper import Keeper
from .lease import Lease
from .operations import Granted, Renewed

log = logging.getLogger(__name__)


class _Held:
    """What both faces' holds have in common.

    `fence` only grows for a token: hand it to whatever the holder writes elsewhere, and let that refuse a smaller one.
    `again` tells that the owner held the token already.
    """

    def __init__(self, name: str, owner: Owner | str, granted: Granted | Renewed, lease_s: int | None) -> None:
        self.semaphore = name
        self.owner = owner if isinstance(owner, Owner) else Owner.parse(owner)
        self.token, self.fence = granted.token, granted.fence
        self.again = granted.again if isinstance(granted, Granted) else True
        self.lease_s = lease_s
        self._lease: Lease | None = None
        self._keeper: Keeper | None = None
        self._ended = False  # given back, or handed over

    def __repr__(self) -> str:
        state = "lost" if self.is_lost else "ended" if self._ended else "held"
        lease = "" if self.lease_s is None else f" lease={self.lease_s}s"
        return f"<{type(self).__name__} {self.semaphore}#{self.token} {self.owner} fence={self.fence}{lease} {state}>"

    @property
    def is_lost(self) -> bool:
        """Tell whether the lease has ended against the holder's will. Its count is asked: a thread may be late to say so."""
        if self._lease is not None and self._lease.trusted_until <= time.monotonic():
            self._lease.lose()
        return self._lease is not None and self._lease.lost

    @property
    def trusted_until(self) -> float | None:
        """The moment (of `time.monotonic`) until which the slot is surely the owner's; None: until it is released."""
        return None if self._lease is None else self._lease.trusted_until

    def check(self) -> None:
        """Raise LeaseLost when the slot may be somebody else's by now."""
        if self.is_lost:
            raise LeaseLost(self.semaphore, str(self.owner), token=self.token, fence=self.fence)

    def detach(self) -> int:
        """Stop renewing without giving the slot back, and return the fence: another process may `attach` with it."""
        self.check()
        self._let_go()
        self._ended = True
        return self.fence

    def _keep(self, keeper: Keeper, began_at: float, on_lost: Callable[[], None]) -> None:
        if self.lease_s is not None:
            owner_id = str(self.owner)
            self._lease = Lease(self.semaphore, owner_id, self.fence, self.lease_s, began_at=began_at, on_lost=on_lost)
            self._keeper = keeper
            keeper.add(self._lease)

    def _let_go(self) -> None:
        if self._keeper is not None and self._lease is not None:
            self._lease.let_go = True
            self._keeper.drop(self._lease)

    def _lost_now(self) -> None:
        log.warning("lost the lease of %r", self)

    def _exit_problem(self, error: BaseException | None, problem: Exception) -> None:
        """Raise what went wrong at the end of a with block, unless its body failed: that error is the one to see."""
        if error is None:
            raise problem
        error.add_note(f"and the slot was not given back: {problem}")


class _Releases(Protocol):
    def release(self, name: str, owner: Owner | str, *, fence: int | None = None) -> bool: ...


class _ReleasesLater(Protocol):
    async def release(self, name: str, owner: Owner | str, *, fence: int | None = None) -> bool: ...


class Hold(_Held):
    """A slot held through a Client. `lost` is set when its lease has ended against the holder's will.

    As a context manager it gives the slot back at the end, and raises LeaseLost when it was lost before.
    """

    def __init__(
        self,
        client: _Releases,
        keeper: Keeper,
        name: str,
        owner: Owner | str,
        granted: Granted | Renewed,
        lease_s: int | None,
    ) -> None:
        super().__init__(name, owner, granted, lease_s)
        self._client, self.lost = client, threading.Event()
        self._keep(keeper, granted.began_at, self._on_lost)

    def _on_lost(self) -> None:
        self._lost_now()
        self.lost.set()

    def release(self) -> bool:
        """Give the slot back. False: it had ended before. Raises LeaseLost when it was lost."""
        if self._ended:
            return False
        self.check()
        self._let_go()
        try:
            released = self._client.release(self.semaphore, self.owner, fence=self.fence)
        except StaleFence:  # this hold has ended, and the owner has another one
            released = False
        self._ended = True  # not where the database failed: then it may be tried again
        return released

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.release()
        except Exception as problem:
            self._exit_problem(error, problem)


class AsyncHold(_Held):
    """A slot held through an AsyncClient. As `Hold`, with `await`; `lost` is an asyncio.Event."""

    def __init__(
        self,
        client: _ReleasesLater,
        keeper: Keeper,
        name: str,
        owner: Owner | str,
        granted: Granted | Renewed,
        lease_s: int | None,
    ) -> None:
        super().__init__(name, owner, granted, lease_s)
        self._client, self.lost = client, asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._keep(keeper, granted.began_at, self._on_lost)

    def _on_lost(self) -> None:
        self._lost_now()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.lost.set)

    async def release(self) -> bool:
        """Give the slot back. False: it had ended before. Raises LeaseLost when it was lost."""
        if self._ended:
            return False
        self.check()
        self._let_go()
        try:
            released = await self._client.release(self.semaphore, self.owner, fence=self.fence)
        except StaleFence:
            released = False
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
