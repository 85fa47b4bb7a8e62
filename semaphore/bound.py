"""A semaphore bound to its name: what `client.semaphore(name)` returns. Its methods are the client's, the name filled in."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from ..owner import Owner

if TYPE_CHECKING:
    from .client import AsyncClient, Client
    from .core import Holder, Standing, Waiting
    from .hold import AsyncHold, Hold
    from .metadata import Description


class Semaphore:
    """One semaphore, through a Client."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name

    def __repr__(self) -> str:
        return f"<Semaphore {self.name!r} {self._client!r}>"

    def create(self, size: int, bucket_size: int | None = None) -> Description:
        """See Client.create."""
        return self._client.create(self.name, size, bucket_size)

    def describe(self) -> Description:
        """See Client.describe."""
        return self._client.describe(self.name)

    def delete(self, *, force: bool = False) -> None:
        """See Client.delete."""
        self._client.delete(self.name, force=force)

    def try_acquire(self, owner: Owner | str, *, lease_s: int | None = None) -> Hold | None:
        """See Client.try_acquire."""
        return self._client.try_acquire(self.name, owner, lease_s=lease_s)

    def acquire(self, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None) -> Hold:
        """See Client.acquire."""
        return self._client.acquire(self.name, owner, wait_s=wait_s, lease_s=lease_s)

    def hold(self, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None) -> Hold:
        """See Client.hold."""
        return self._client.hold(self.name, owner, wait_s=wait_s, lease_s=lease_s)

    def attach(self, owner: Owner | str, fence: int, *, lease_s: int | None = None) -> Hold:
        """See Client.attach."""
        return self._client.attach(self.name, owner, fence, lease_s=lease_s)

    def renew(self, owner: Owner | str, *, lease_s: int | None, fence: int | None = None) -> int:
        """See Client.renew."""
        return self._client.renew(self.name, owner, lease_s=lease_s, fence=fence)

    def release(self, owner: Owner | str, *, fence: int | None = None) -> bool:
        """See Client.release."""
        return self._client.release(self.name, owner, fence=fence)

    def cancel(self, owner: Owner | str) -> bool:
        """See Client.cancel."""
        return self._client.cancel(self.name, owner)

    def holders(self) -> list[Holder]:
        """See Client.holders."""
        return self._client.holders(self.name)

    def waiters(self) -> list[Waiting]:
        """See Client.waiters."""
        return self._client.waiters(self.name)

    def standing(self, owner: Owner | str) -> Standing | None:
        """See Client.standing."""
        return self._client.standing(self.name, owner)

    def holder_of(self, token: int) -> Holder | None:
        """See Client.holder_of."""
        return self._client.holder_of(self.name, token)

    def token_of(self, owner: Owner | str) -> Holder | None:
        """See Client.token_of."""
        return self._client.token_of(self.name, owner)


class AsyncSemaphore:
    """One semaphore, through an AsyncClient."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client, self.name = client, name

    def __repr__(self) -> str:
        return f"<AsyncSemaphore {self.name!r} {self._client!r}>"

    async def create(self, size: int, bucket_size: int | None = None) -> Description:
        """See Client.create."""
        return await self._client.create(self.name, size, bucket_size)

    async def describe(self) -> Description:
        """See Client.describe."""
        return await self._client.describe(self.name)

    async def delete(self, *, force: bool = False) -> None:
        """See Client.delete."""
        await self._client.delete(self.name, force=force)

    async def try_acquire(self, owner: Owner | str, *, lease_s: int | None = None) -> AsyncHold | None:
        """See Client.try_acquire."""
        return await self._client.try_acquire(self.name, owner, lease_s=lease_s)

    async def acquire(
        self, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None
    ) -> AsyncHold:
        """See Client.acquire."""
        return await self._client.acquire(self.name, owner, wait_s=wait_s, lease_s=lease_s)

    def hold(
        self, owner: Owner | str, *, wait_s: float | None = None, lease_s: int | None = None
    ) -> AbstractAsyncContextManager[AsyncHold]:
        """See Client.hold."""
        return self._client.hold(self.name, owner, wait_s=wait_s, lease_s=lease_s)

    async def attach(self, owner: Owner | str, fence: int, *, lease_s: int | None = None) -> AsyncHold:
        """See Client.attach."""
        return await self._client.attach(self.name, owner, fence, lease_s=lease_s)

    async def renew(self, owner: Owner | str, *, lease_s: int | None, fence: int | None = None) -> int:
        """See Client.renew."""
        return await self._client.renew(self.name, owner, lease_s=lease_s, fence=fence)

    async def release(self, owner: Owner | str, *, fence: int | None = None) -> bool:
        """See Client.release."""
        return await self._client.release(self.name, owner, fence=fence)

    async def cancel(self, owner: Owner | str) -> bool:
        """See Client.cancel."""
        return await self._client.cancel(self.name, owner)

    async def holders(self) -> list[Holder]:
        """See Client.holders."""
        return await self._client.holders(self.name)

    async def waiters(self) -> list[Waiting]:
        """See Client.waiters."""
        return await self._client.waiters(self.name)

    async def standing(self, owner: Owner | str) -> Standing | None:
        """See Client.standing."""
        return await self._client.standing(self.name, owner)

    async def holder_of(self, token: int) -> Holder | None:
        """See Client.holder_of."""
        return await self._client.holder_of(self.name, token)

    async def token_of(self, owner: Owner | str) -> Holder | None:
        """See Client.token_of."""
        return await self._client.token_of(self.name, owner)
