"""The two faces: `DirectLocks` for threads, `AsyncDirectLocks` for asyncio. The same names as every client of locks."""

from __future__ import annotations

import asyncio
import platform
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from uuid import UUID

from ...database import AsyncioPort, BlockingPort, ClosedError, Settings, Store, drive
from ...semaphore import AsyncClient, Client
from ...semaphore.core import Core as Semaphores
from ..hold import AsyncLockHold, LockHold
from ..keeper import LockKeeper
from ..lock import DEFAULT_LEASE_S, Lock, Request
from ..table import new_id
from .core import Core, cluster_id
from .ids import lock_id_of

TIMEOUT_S = 20.0


class _Slots(Client):
    """A client of semaphores whose core is at hand."""

    def parts(self) -> tuple[Store, Semaphores]:
        """Return what it works on. Raises ClosedError, ForkedError."""
        core = self._core
        assert self._store is not None
        return self._store, core


class _AsyncSlots(AsyncClient):
    """As `_Slots`, for asyncio."""

    def parts(self) -> tuple[Store, Semaphores]:
        """See _Slots.parts."""
        core = self._core
        assert self._store is not None
        return self._store, core


class _Direct:
    """What both faces are given, and what they open."""

    _slots: _Slots | _AsyncSlots

    def __init__(self, cluster: str | UUID, node: str | None, timeout_s: float) -> None:
        self.domain_id = cluster_id(cluster)
        self.node = platform.node() if node is None else node
        self._timeout_s = timeout_s
        self._keeper: LockKeeper | None = None
        self._core: Core | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} node={self.node} {self._slots!r}>"

    def _begin(self, port: BlockingPort | AsyncioPort) -> None:
        _, semaphores = self._slots.parts()
        self._core = self._built(semaphores, port)
        self._keeper = LockKeeper(self._renewing, f"slotkeeper-locks-{self._slots.client_id}")

    def _built(self, semaphores: Semaphores, port: BlockingPort | AsyncioPort) -> Core:
        return Core(semaphores, port, timeout_s=self._timeout_s, new_id=new_id)

    def _opened(self) -> Core:
        if self._core is None:
            raise ClosedError(f"This {type(self).__name__} is not open: call open(), or use it in a with statement.")
        self._slots.parts()  # a forked child opens its own
        return self._core

    def _kept(self) -> LockKeeper:
        assert self._keeper is not None
        return self._keeper

    @asynccontextmanager
    async def _renewing(self) -> AsyncIterator[Core]:
        """Open what renews locks in the keeper's own loop."""
        store, semaphores = self._slots.parts()
        port, client_id = AsyncioPort(store), f"{self._slots.client_id}-locks"
        dice = random.Random().random
        beside = Semaphores(port, self.domain_id, client_id=client_id, dice=dice, known=semaphores.known)
        yield self._built(beside, port)
        await port.finished()

    async def _acquire(self, name: str, holder: str, lease_s: float, wait_s: float, request: str | None) -> Lock:
        return await self._opened().acquire(Request(name, self.node, holder, lease_s, wait_s, request or ""))

    async def _release(self, lock: Lock | str, lock_id: str) -> bool:
        core = self._opened()
        return await (core.release_lock(lock) if isinstance(lock, Lock) else core.release(lock, lock_id))

    def _end(self) -> None:
        """Stop renewing."""
        keeper, self._keeper, self._core = self._keeper, None, None
        if keeper is not None:
            keeper.close()


class DirectLocks(_Direct):
    """Locks in a database, for threads: they may share one. A forked child opens its own.

    `database` is a URL, settings, or an open store (which stays open). `cluster` tells locks apart that have nothing to do
    with one another, `node` says where holders are (None: this host's name). Every call ends within `timeout_s` seconds,
    waiting in line aside.
    """

    _slots: _Slots

    def __init__(
        self,
        database: Settings | str | Store,
        *,
        cluster: str | UUID = "default",
        node: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__(cluster, node, timeout_s)
        self._slots = _Slots(database, domain=self.domain_id, timeout_s=timeout_s)

    def open(self) -> Self:
        """Connect, and check that the schema fits. Raises SchemaError, SettingsError, Unavailable, LoginRefused."""
        if self._core is None:
            self._slots.open()
            self._begin(BlockingPort(self._slots.parts()[0]))
        return self

    def close(self) -> None:
        """Let go of the database. Safe to call twice. What is held stays held until its lease ends."""
        self._end()
        self._slots.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

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

        A lease has whole seconds, at least two. Nobody renews it: `hold` does. With a `request` id of one's own, a repeated
        call gets the same lock, its lease counted anew.
        Raises LockHeld, LockUnavailable, LockUnknown, AlreadyReleased, BadLockRequest.
        """
        return drive(self._acquire(name, holder, lease_s, wait_s, request))

    def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        """See Locker.renew."""
        return drive(self._opened().renew(lock, lease_s))

    def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        """See Locker.release."""
        return drive(self._release(lock, lock_id))

    def release_request(self, name: str, request: str) -> bool:
        """See Locker.release_request. A repeated request is granted anew afterwards: nothing here remembers it."""
        return drive(self._release(name, lock_id_of(name, request)))

    def locks(self) -> list[Lock]:
        """Return what is held, by name. It reads a row for each name that was ever used."""
        return drive(self._opened().locks())

    def hold(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> LockHold:
        """See Locker.hold."""
        lock = self.acquire(name, holder=holder, lease_s=lease_s, wait_s=wait_s, request=request)
        return LockHold(self, self._kept(), lock, lease_s)


class AsyncDirectLocks(_Direct):
    """Locks in a database, for the tasks of one asyncio loop: they may share one. As `DirectLocks`, with `await`."""

    _slots: _AsyncSlots

    def __init__(
        self,
        database: Settings | str | Store,
        *,
        cluster: str | UUID = "default",
        node: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__(cluster, node, timeout_s)
        self._slots = _AsyncSlots(database, domain=self.domain_id, timeout_s=timeout_s)

    async def open(self) -> Self:
        """See DirectLocks.open."""
        if self._core is None:
            await self._slots.open()
            self._begin(AsyncioPort(self._slots.parts()[0]))
        return self

    async def close(self) -> None:
        """See DirectLocks.close."""
        await asyncio.to_thread(self._end)
        await self._slots.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def acquire(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> Lock:
        """See DirectLocks.acquire. Who is cancelled meanwhile leaves no place behind, and no lock."""
        return await self._acquire(name, holder, lease_s, wait_s, request)

    async def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        """See DirectLocks.renew."""
        return await self._opened().renew(lock, lease_s)

    async def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        """See DirectLocks.release."""
        return await self._release(lock, lock_id)

    async def release_request(self, name: str, request: str) -> bool:
        """See DirectLocks.release_request."""
        return await self._release(name, lock_id_of(name, request))

    async def locks(self) -> list[Lock]:
        """See DirectLocks.locks."""
        return await self._opened().locks()

    @asynccontextmanager
    async def hold(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> AsyncIterator[AsyncLockHold]:
        """See DirectLocks.hold: `async with locks.hold(...) as hold`."""
        lock = await self._acquire(name, holder, lease_s, wait_s, request)
        async with AsyncLockHold(self, self._kept(), lock, lease_s) as hold:
            yield hold
