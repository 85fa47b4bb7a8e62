"""The two faces: `LockClient` for threads, `AsyncLockClient` for asyncio. A locker's names and errors, over HTTP."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from ...database import drive
from ...web.address import Address
from ...web.caller import Caller, bearer
from ...web.callers import LoopCaller, ThreadsCaller
from ..hold import AsyncLockHold, LockHold
from ..keeper import LockKeeper
from ..lock import DEFAULT_LEASE_S, Lock, Request
from ..node.status import Status
from .core import Core, Finish
from .errors import ForkedLockClient, LockClientClosed

URL = "http://127.0.0.1:8049"
TIMEOUT_S = 20.0


class _Remote:
    """What both faces are given, and what they open."""

    def __init__(
        self,
        urls: str | Sequence[str] = URL,
        *,
        token: str | None = None,
        tls_ca_file: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.addresses = tuple(Address.parse(url) for url in _split(urls))
        if token is not None:
            bearer(token)
        self._token, self._tls_ca_file, self._timeout_s = token, tls_ca_file, timeout_s
        self._core: Core | None = None
        self._keeper: LockKeeper | None = None
        self._process = 0

    def __repr__(self) -> str:
        nodes = ",".join(map(str, self.addresses))
        return f"<{type(self).__name__} {nodes} {'open' if self.is_open else 'not open'}>"

    @property
    def is_open(self) -> bool:
        """Tell whether the client is open."""
        return self._core is not None

    def _begin(self, callers: Sequence[Caller], finish: Finish) -> None:
        self._core = Core(callers, timeout_s=self._timeout_s, finish=finish)
        self._keeper = LockKeeper(self._renewing, f"slotkeeper-locks-{secrets.token_hex(4)}")
        self._process = os.getpid()

    def _opened(self) -> Core:
        if self._core is None:
            raise LockClientClosed
        if self._process != os.getpid():
            raise ForkedLockClient
        return self._core

    def _kept(self) -> LockKeeper:
        self._opened()
        assert self._keeper is not None
        return self._keeper

    async def _acquire(self, name: str, holder: str, lease_s: float, wait_s: float, request: str | None) -> Lock:
        asked = Request(name, "", holder, lease_s, wait_s, request or str(uuid4()))
        return await self._opened().acquire(asked)

    async def _release(self, lock: Lock | str, lock_id: str) -> bool:
        if isinstance(lock, Lock):
            return await self._opened().release(lock.name, lock.id, until=lock.until)
        return await self._opened().release(lock, lock_id)

    def _end(self) -> LockKeeper | None:
        """Answer nobody any more, and return what is still to be closed."""
        keeper, self._core, self._keeper = self._keeper, None, None
        return keeper

    @asynccontextmanager
    async def _renewing(self) -> AsyncIterator[Core]:
        """Open connections for the keeper's own loop."""
        async with AsyncExitStack() as stack:
            yield Core(await self._loop_callers(stack), timeout_s=self._timeout_s, finish=_leave)

    async def _loop_callers(self, stack: AsyncExitStack) -> list[LoopCaller]:
        callers = [LoopCaller(each, token=self._token, tls_ca_file=self._tls_ca_file) for each in self.addresses]
        for caller in callers:
            await caller.open()
            stack.push_async_callback(caller.close)
        return callers


class LockClient(_Remote):
    """Locks of a cluster of lock nodes, for threads, which may share it. Several URLs: any node of the cluster may answer.

    `token` is what the service knows this client by; `tls_ca_file` has the certificates to trust. See `Locker`.
    """

    def __init__(
        self,
        urls: str | Sequence[str] = URL,
        *,
        token: str | None = None,
        tls_ca_file: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__(urls, token=token, tls_ca_file=tls_ca_file, timeout_s=timeout_s)
        self._callers: list[ThreadsCaller] = []

    def open(self) -> Self:
        """Prepare the connections; none is made yet. Safe to call twice."""
        if self._core is None:
            self._callers = [
                ThreadsCaller(each, token=self._token, tls_ca_file=self._tls_ca_file) for each in self.addresses
            ]
            self._begin(self._callers, drive)
        return self

    def close(self) -> None:
        """Stop renewing, and give up the connections. What is held ends with its lease. Safe to call twice."""
        if (keeper := self._end()) is not None:
            keeper.close()
        for caller in self._callers:
            drive(caller.close())
        self._callers = []

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
        """See Locker.acquire. Interrupted, it takes its request back."""
        return drive(self._acquire(name, holder, lease_s, wait_s, request))

    def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        """See Locker.renew."""
        return drive(self._opened().renew(lock, lease_s))

    def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        """See Locker.release."""
        return drive(self._release(lock, lock_id))

    def release_request(self, name: str, request: str) -> bool:
        """Give back whatever a request was granted, or its place in line; if it is still on its way, it will be refused."""
        return drive(self._opened().release(name, request=request))

    def locks(self) -> list[Lock]:
        """See Locker.locks."""
        return drive(self._opened().locks())

    def status(self) -> Status:
        """Return how the node that answers sees the cluster."""
        return drive(self._opened().status())

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
        keeper = self._kept()
        lock = self.acquire(name, holder=holder, lease_s=lease_s, wait_s=wait_s, request=request)
        return LockHold(self, keeper, lock, lease_s)


class AsyncLockClient(_Remote):
    """Locks of a cluster of lock nodes, for the tasks of one asyncio loop. As `LockClient`, with `await`."""

    def __init__(
        self,
        urls: str | Sequence[str] = URL,
        *,
        token: str | None = None,
        tls_ca_file: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__(urls, token=token, tls_ca_file=tls_ca_file, timeout_s=timeout_s)
        self._stack = AsyncExitStack()
        self._finishing: set[asyncio.Task[None]] = set()

    async def open(self) -> Self:
        """See LockClient.open."""
        if self._core is None:
            self._stack = AsyncExitStack()
            self._begin(await self._loop_callers(self._stack), self._finish)
        return self

    async def close(self) -> None:
        """See LockClient.close. Requests that are being taken back are waited for."""
        if (keeper := self._end()) is not None:
            await asyncio.to_thread(keeper.close)
        while self._finishing:
            await asyncio.wait(set(self._finishing))
        await self._stack.aclose()

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
        """See Locker.acquire. Cancelled, it takes its request back."""
        return await self._acquire(name, holder, lease_s, wait_s, request)

    async def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        """See Locker.renew."""
        return await self._opened().renew(lock, lease_s)

    async def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        """See Locker.release."""
        return await self._release(lock, lock_id)

    async def release_request(self, name: str, request: str) -> bool:
        """See LockClient.release_request."""
        return await self._opened().release(name, request=request)

    async def locks(self) -> list[Lock]:
        """See Locker.locks."""
        return await self._opened().locks()

    async def status(self) -> Status:
        """See LockClient.status."""
        return await self._opened().status()

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
        """See Locker.hold."""
        keeper = self._kept()
        lock = await self.acquire(name, holder=holder, lease_s=lease_s, wait_s=wait_s, request=request)
        async with AsyncLockHold(self, keeper, lock, lease_s) as hold:
            yield hold

    def _finish(self, core: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(core)
        self._finishing.add(task)  # the loop itself keeps no hold of it
        task.add_done_callback(self._finishing.discard)


def _split(urls: str | Sequence[str]) -> Iterable[str]:
    """Return the URLs of a list, or of a text with commas."""
    given = urls.split(",") if isinstance(urls, str) else list(urls)
    return [url.strip() for url in given] or [""]


def _leave(core: Coroutine[Any, Any, None]) -> None:
    """Do nothing: the keeper's loop asks for no lock, so it takes none back."""
    core.close()
