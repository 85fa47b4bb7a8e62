"""The two faces: `Client` for threads, `AsyncClient` for asyncio. The same names, thin, and decide nothing."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Self
from uuid import UUID

from .. import schema
from ..database import AsyncioPort, BlockingPort, ClosedError, Settings, Store, drive, open_store
from ..owner import Owner
from .core import Core, Holder
from .errors import StaleFence
from .hold import Hold
from .metadata import Description, domain_id
from .operations import Full, Granted, NotHeld, Released, Stale

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
        self._store: Store | None = None
        self._opened_core: Core | None = None

    def __repr__(self) -> str:
        where = self._store if self._store is not None else "not open"
        return f"<{type(self).__name__} {self.client_id} domain={self.domain_id} {where}>"

    @property
    def _core(self) -> Core:
        if self._opened_core is None:
            raise ClosedError(f"This {type(self).__name__} is not open: call open(), or use it in a with statement.")
        return self._opened_core

    def _connect(self) -> Store:
        store = open_store(self._database) if isinstance(self._database, str) else self._database
        return store if not isinstance(store, Settings) else open_store(store)

    def _begin(self, store: Store, port: BlockingPort | AsyncioPort) -> None:
        self._store = store
        self._opened_core = Core(port, self.domain_id, client_id=self.client_id, dice=random.Random().random)

    def _end(self) -> Store | None:
        store, self._store, self._opened_core = self._store, None, None
        return store if store is not self._database else None  # a store that was lent is not ours to close


def _released(name: str, owner: Owner | str, fence: int | None, answer: Released | NotHeld | Stale) -> bool:
    if isinstance(answer, Stale):
        raise StaleFence(name, str(owner), fence=fence, current=answer.fence)
    return isinstance(answer, Released)


def _hold(name: str, owner: Owner | str, answer: Granted | Full) -> Hold | None:
    if isinstance(answer, Full):
        return None
    who = owner if isinstance(owner, Owner) else Owner.parse(owner)
    return Hold(name, who, answer.token, answer.fence, answer.again)


class Client(_Opened):
    """Semaphores of one domain, for threads: they may share one client. A forked child opens its own.

    `database` is a URL, settings, or an open store (which stays open). Every call ends within `timeout_s` seconds, and raises
    Unavailable when nothing happened until then, OutcomeUnknown when something may have.
    """

    def open(self) -> Self:
        """Connect, and check that the schema fits. Raises SchemaError, SettingsError, Unavailable, LoginRefused."""
        if self._opened_core is None:
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
        """Let go of the database. Safe to call twice. What is held stays held."""
        if (store := self._end()) is not None:
            store.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

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

    def try_acquire(self, name: str, owner: Owner | str) -> Hold | None:
        """Take a slot for an owner, or return None when none is free. An owner that holds one already gets that one again."""
        return _hold(name, owner, drive(self._core.acquire(name, owner, self._timeout_s)))

    def release(self, name: str, owner: Owner | str, *, fence: int | None = None) -> bool:
        """Give an owner's slot back. False: it held none, and nothing was changed.

        With `fence`, only that hold is given back: raises StaleFence when the owner's hold has another one.
        """
        return _released(name, owner, fence, drive(self._core.release(name, owner, fence, self._timeout_s)))

    def holders(self, name: str) -> list[Holder]:
        """Return who holds what, by token."""
        return drive(self._core.holders(name))

    def holder_of(self, name: str, token: int) -> Holder | None:
        """Return who holds a token. Raises IndexError for a token that the semaphore has not."""
        return drive(self._core.holder_of(name, token))

    def token_of(self, name: str, owner: Owner | str) -> Holder | None:
        """Return what an owner holds."""
        return drive(self._core.token_of(name, owner))


class AsyncClient(_Opened):
    """Semaphores of one domain, for the tasks of one asyncio loop: they may share one client. As `Client`, with `await`."""

    async def open(self) -> Self:
        """Connect, and check that the schema fits. Raises SchemaError, SettingsError, Unavailable, LoginRefused."""
        if self._opened_core is None:
            store = await asyncio.to_thread(self._connect)
            port = AsyncioPort(store)
            self._begin(store, port)
            try:
                await schema.check(port, store.consistency)
            except BaseException:
                await self.close()
                raise
        return self

    async def close(self) -> None:
        """Let go of the database. Safe to call twice. What is held stays held."""
        if (store := self._end()) is not None:
            await asyncio.to_thread(store.close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

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

    async def try_acquire(self, name: str, owner: Owner | str) -> Hold | None:
        """See Client.try_acquire."""
        return _hold(name, owner, await self._core.acquire(name, owner, self._timeout_s))

    async def release(self, name: str, owner: Owner | str, *, fence: int | None = None) -> bool:
        """See Client.release."""
        return _released(name, owner, fence, await self._core.release(name, owner, fence, self._timeout_s))

    async def holders(self, name: str) -> list[Holder]:
        """See Client.holders."""
        return await self._core.holders(name)

    async def holder_of(self, name: str, token: int) -> Holder | None:
        """See Client.holder_of."""
        return await self._core.holder_of(name, token)

    async def token_of(self, name: str, owner: Owner | str) -> Holder | None:
        """See Client.token_of."""
        return await self._core.token_of(name, owner)
