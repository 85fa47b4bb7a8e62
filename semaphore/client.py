"""The two faces: `Client` for threads, `AsyncClient` for asyncio. The same names, thin, and decide nothing."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from uuid import UUID

from .. import schema
from ..database import AsyncioPort, BlockingPort, ClosedError, ForkedError, Settings, Store, drive, open_store
from ..owner import Owner
from .bound import AsyncSemaphore, Semaphore
from .core import Core, Holder, Standing, Waiting
from .errors import NotAcquired, StaleFence
from .hold import AsyncHold, Hold
from .keeper import Keeper
from .metadata import Description, domain_id
from .operations import Full, Granted, NotHeld, Released, Renewed, Stale

TIMEOUT_S = 20.0  # twice the longest request: an answered error can be settled once
PAGE = 100


class _Opened:
    """What both faces are given, and what they open."""

    def __init__(
        self, database: Settings | str | Store, *, domain: str | UUID = "default", timeout_s: float = TIMEOUT_S
    ):
        self._database, self._timeout_s = database, timeout_s
        self.domain_id = domain_id(domain)
        self.client_id = secrets.token_hex(8)
        self._dice = random.Random().random
        self._store: Store | None = None
        self._parts: tuple[Core, Keeper] | None = None
        self._pid = 0

    def __repr__(self) -> str:
        where = self._store if self._store is not None else "not open"
        return f"<{type(self).__name__} {self.client_id} domain={self.domain_id} {where}>"

    @property
    def _core(self) -> Core:
        return self._opened()[0]

    @property
    def _keeper(self) -> Keeper:
        return self._opened()[1]

    def _opened(self) -> tuple[Core, Keeper]:
        if self._parts is None:
            raise ClosedError(f"This {type(self).__name__} is not open: call open(), or use it in a with statement.")
        if os.getpid() != self._pid:
            raise ForkedError  # before anything waits for a thread of the parent, which the child has not
        return self._parts

    def _connect(self) -> Store:
        database = self._database
        return open_store(database) if isinstance(database, str | Settings) else database

    def _begin(self, store: Store, port: BlockingPort | AsyncioPort) -> None:
        self._store, self._pid = store, os.getpid()
        core = Core(port, self.domain_id, client_id=self.client_id, dice=self._dice)
        leases_id = f"{self.client_id}-leases"
        self._parts = core, Keeper(store, self.domain_id, client_id=leases_id, dice=self._dice, known=core.known)

    def _end(self) -> Store | None:
        """Stop what waits and what renews leases, and return the store if it is ours to close: one that was lent is not."""
        if self._parts is not None:
            core, keeper = self._parts
            core.close()
            keeper.close()
        store, self._store, self._parts = self._store, None, None
        return store if store is not self._database else None


class Client(_Opened):
    """Semaphores of one domain, for threads: they may share one client. A forked child opens its own.

    `database` is a URL, settings, or an open store (which stays open). Every call ends within `timeout_s` seconds (waiting
    in line aside), and raises Unavailable when nothing happened until then, OutcomeUnknown when something may have.
    """

    def open(self) -> Self:
        """Connect, and check that the schema fits. Raises SchemaError, SettingsError, Unavailable, LoginRefused."""
        if self._parts is None:
            store = self._connect()
            port = BlockingPort(store)
            self._begin(store, port)
            try:
                drive(schema.check(port, store.consistency))
            except BaseException:
                self.close()
                raise
        return self

    def close(self) -> None:
        """Let go of the database. Safe to call twice. What is held stays held until its lease ends."""
        if (store := self._end()) is not None:
            store.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def semaphore(self, name: str) -> Semaphore:
        """Return a semaphore bound to its name. It need not exist yet."""
        return Semaphore(self, name)

    def create(self, name: str, size: int, bucket_size: int | None = None) -> Description:
        """Create a semaphore of `size` slots; without `bucket_size` they are split evenly into buckets of at most 100.

        An equal one that is there already is fine. Raises SemaphoreExists for another one, BadName, BadSize.
        """
        return drive(self._core.create(name, size, bucket_size, self._timeout_s))[0]

    def describe(self, name: str) -> Description:
        """Return what a semaphore is. Raises NoSuchSemaphore."""
        return drive(self._core.describe(name))

    def semaphores(self, after: str | None = None) -> Iterator[Description]:
        """Iterate over the domain's semaphores in the order of their names, from behind `after`; a page is read at a time."""
        while page := drive(self._core.page(after, PAGE)):
            yield from page
            after = page[-1].name

    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a semaphore. Raises SemaphoreHeld while it has holders, unless forced, and NoSuchSemaphore."""
        drive(self._core.delete(name, force=force, timeout_s=self._timeout_s))

    def try_acquire(self, name: str, owner: Owner | str, *, lease_s: int | None = None) -> Hold | None:
        """Take a slot for an owner, or return None when none is free. An owner that holds one already gets that one again.

        With `lease_s` the hold ends by itself when this process dies; it is renewed in the background until then.
        """
        answer = drive(self._core.acquire(name, owner, wait_s=0, lease_s=lease_s, timeout_s=self._timeout_s))
        return self._hold(name, owner, answer, lease_s) if isinstance(answer, Granted) else None

    def acquire(
        self, name: str, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None
    ) -> Hold:
        """Take a slot for an owner; where none is free, stand in line for it (None: as long as it takes).

        The line is first come, first served, across processes. Raises NotAcquired after `wait_s` seconds, WaitCancelled.
        """
        answer = drive(self._core.acquire(name, owner, wait_s=wait_s, lease_s=lease_s, timeout_s=self._timeout_s))
        if isinstance(answer, Full):
            raise NotAcquired(name, str(owner), waited_s=wait_s or 0.0)
        return self._hold(name, owner, answer, lease_s)

    def hold(self, name: str, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None) -> Hold:
        """Acquire, for a with statement: the slot is given back on every way out."""
        return self.acquire(name, owner, wait_s=wait_s, lease_s=lease_s)

    def attach(self, name: str, owner: Owner | str, fence: int, *, lease_s: int | None = None) -> Hold:
        """Go on with a hold that another process has detached. Raises StaleFence where it has ended."""
        renewed = drive(self._core.renew(name, owner, fence=fence, lease_s=lease_s, timeout_s=self._timeout_s))
        return self._hold(name, owner, _renewed(name, owner, fence, renewed), lease_s)

    def renew(self, name: str, owner: Owner | str, *, lease_s: int | None, fence: int | None = None) -> int:
        """Count an owner's lease anew (None: hold until released), and return its fence. Raises StaleFence."""
        renewed = drive(self._core.renew(name, owner, fence=fence, lease_s=lease_s, timeout_s=self._timeout_s))
        return _renewed(name, owner, fence, renewed).fence

    def release(self, name: str, owner: Owner | str, *, fence: int | None = None) -> bool:
        """Give an owner's slot back. False: it held none, and nothing was changed.

        With `fence`, only that hold is given back: raises StaleFence when the owner's hold has another one.
        """
        return _released(name, owner, fence, drive(self._core.release(name, owner, fence, self._timeout_s)))

    def cancel(self, name: str, owner: Owner | str) -> bool:
        """Take an owner out of the line, whoever waits for it. False: it did not stand in it."""
        return drive(self._core.cancel(name, owner, self._timeout_s)).ticket is not None

    def holders(self, name: str) -> list[Holder]:
        """Return who holds what, by token."""
        return drive(self._core.holders(name))

    def waiters(self, name: str) -> list[Waiting]:
        """Return who stands in line, bucket by bucket, the next one first."""
        return drive(self._core.waiters(name))

    def standing(self, name: str, owner: Owner | str) -> Standing | None:
        """Return why an owner still waits: its position, who holds, when the next lease ends. None: it does not wait."""
        return drive(self._core.standing(name, owner))

    def holder_of(self, name: str, token: int) -> Holder | None:
        """Return who holds a token. Raises IndexError for a token that the semaphore has not."""
        return drive(self._core.holder_of(name, token))

    def token_of(self, name: str, owner: Owner | str) -> Holder | None:
        """Return what an owner holds."""
        return drive(self._core.token_of(name, owner))

    def _hold(self, name: str, owner: Owner | str, answer: Granted | Renewed, lease_s: int | None) -> Hold:
        return Hold(self, self._keeper, name, owner, answer, lease_s)


class AsyncClient(_Opened):
    """Semaphores of one domain, for the tasks of one asyncio loop: they may share one client. As `Client`, with `await`."""

    async def open(self) -> Self:
        """Connect, and check that the schema fits. Raises SchemaError, SettingsError, Unavailable, LoginRefused."""
        if self._parts is None:
            store = await asyncio.to_thread(self._connect)
            self._port = AsyncioPort(store)
            self._begin(store, self._port)
            try:
                await schema.check(self._port, store.consistency)
            except BaseException:
                await self.close()
                raise
        return self

    async def close(self) -> None:
        """Let go of the database. Safe to call twice. What is held stays held until its lease ends."""
        if self._parts is None:
            return
        await self._port.finished()  # what cancelled callers left is given back first
        if (store := await asyncio.to_thread(self._end)) is not None:
            await asyncio.to_thread(store.close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def semaphore(self, name: str) -> AsyncSemaphore:
        """See Client.semaphore."""
        return AsyncSemaphore(self, name)

    async def create(self, name: str, size: int, bucket_size: int | None = None) -> Description:
        """See Client.create."""
        return (await self._core.create(name, size, bucket_size, self._timeout_s))[0]

    async def describe(self, name: str) -> Description:
        """See Client.describe."""
        return await self._core.describe(name)

    async def semaphores(self, after: str | None = None) -> AsyncIterator[Description]:
        """See Client.semaphores."""
        while page := await self._core.page(after, PAGE):
            for found in page:
                yield found
            after = page[-1].name

    async def delete(self, name: str, *, force: bool = False) -> None:
        """See Client.delete."""
        await self._core.delete(name, force=force, timeout_s=self._timeout_s)

    async def try_acquire(self, name: str, owner: Owner | str, *, lease_s: int | None = None) -> AsyncHold | None:
        """See Client.try_acquire."""
        answer = await self._core.acquire(name, owner, wait_s=0, lease_s=lease_s, timeout_s=self._timeout_s)
        return self._hold(name, owner, answer, lease_s) if isinstance(answer, Granted) else None

    async def acquire(
        self, name: str, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None
    ) -> AsyncHold:
        """See Client.acquire."""
        answer = await self._core.acquire(name, owner, wait_s=wait_s, lease_s=lease_s, timeout_s=self._timeout_s)
        if isinstance(answer, Full):
            raise NotAcquired(name, str(owner), waited_s=wait_s or 0.0)
        return self._hold(name, owner, answer, lease_s)

    @asynccontextmanager
    async def hold(
        self, name: str, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None
    ) -> AsyncIterator[AsyncHold]:
        """See Client.hold: `async with client.hold(...) as hold`."""
        async with await self.acquire(name, owner, wait_s=wait_s, lease_s=lease_s) as held:
            yield held

    async def attach(self, name: str, owner: Owner | str, fence: int, *, lease_s: int | None = None) -> AsyncHold:
        """See Client.attach."""
        renewed = await self._core.renew(name, owner, fence=fence, lease_s=lease_s, timeout_s=self._timeout_s)
        return self._hold(name, owner, _renewed(name, owner, fence, renewed), lease_s)

    async def renew(self, name: str, owner: Owner | str, *, lease_s: int | None, fence: int | None = None) -> int:
        """See Client.renew."""
        renewed = await self._core.renew(name, owner, fence=fence, lease_s=lease_s, timeout_s=self._timeout_s)
        return _renewed(name, owner, fence, renewed).fence

    async def release(self, name: str, owner: Owner | str, *, fence: int | None = None) -> bool:
        """See Client.release."""
        return _released(name, owner, fence, await self._core.release(name, owner, fence, self._timeout_s))

    async def cancel(self, name: str, owner: Owner | str) -> bool:
        """See Client.cancel."""
        return (await self._core.cancel(name, owner, self._timeout_s)).ticket is not None

    async def holders(self, name: str) -> list[Holder]:
        """See Client.holders."""
        return await self._core.holders(name)

    async def waiters(self, name: str) -> list[Waiting]:
        """See Client.waiters."""
        return await self._core.waiters(name)

    async def standing(self, name: str, owner: Owner | str) -> Standing | None:
        """See Client.standing."""
        return await self._core.standing(name, owner)

    async def holder_of(self, name: str, token: int) -> Holder | None:
        """See Client.holder_of."""
        return await self._core.holder_of(name, token)

    async def token_of(self, name: str, owner: Owner | str) -> Holder | None:
        """See Client.token_of."""
        return await self._core.token_of(name, owner)

    def _hold(self, name: str, owner: Owner | str, answer: Granted | Renewed, lease_s: int | None) -> AsyncHold:
        return AsyncHold(self, self._keeper, name, owner, answer, lease_s)


def _released(name: str, owner: Owner | str, fence: int | None, answer: Released | NotHeld | Stale) -> bool:
    if isinstance(answer, Stale):
        raise StaleFence(name, str(owner), fence=fence, current=answer.fence)
    return isinstance(answer, Released)


def _renewed(name: str, owner: Owner | str, fence: int | None, answer: Renewed | NotHeld | Stale) -> Renewed:
    if isinstance(answer, Renewed):
        return answer
    raise StaleFence(name, str(owner), fence=fence, current=answer.fence if isinstance(answer, Stale) else None)
