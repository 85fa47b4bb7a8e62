"""The two clients behind one set of plain methods, so that a behaviour of semaphores is written once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

from slotkeeper.database import BlockingPort, Slice, Store, Value
from slotkeeper.owner import Owner, bucket_of
from slotkeeper.semaphore import AsyncClient, Client, Description
from slotkeeper.semaphore.rows import TOKENS

from .faces import Face

Call = Callable[[], Any]
BOUND_S = 60.0
_numbers = count(1)


def some_owner() -> Owner:
    """Return an owner that no other test has."""
    return Owner("wf", "run-1", next(_numbers))


def owner_in(bucket: int, buckets: int) -> Owner:
    """Return an owner that belongs to a bucket."""
    return next(owner for owner in iter(some_owner, None) if bucket_of(str(owner), buckets) == bucket)


class Slots:
    """A client of either face: it has the client's methods, and what the asyncio face awaits runs to its end."""

    def __init__(self, store: Store, face: Face, **options: Any) -> None:
        self.store, self._face = store, face
        self._blocking = face.port_over is BlockingPort
        self.client: Any = (Client if self._blocking else AsyncClient)(store, **options)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        bound: Callable[..., Any] = getattr(self.client, method)
        return bound if self._blocking else lambda *values, **named: self._face.run(bound(*values, **named))

    def semaphores(self, after: str | None = None) -> list[Description]:
        """List what the client iterates over."""
        found = self.client.semaphores(after)
        return list(found) if self._blocking else self._face.run(_listed(found))

    def take(self, name: str, owner: Owner | str) -> Any:
        """Acquire what must be free."""
        hold = self.try_acquire(name, owner)
        assert hold is not None, f"{name} is full: {self.holders(name)}"
        return hold

    def later(self, method: str, *values: Any) -> Call:
        """Return a call for `together`, of this client or of another one of the same face."""
        return partial(getattr(self.client, method), *values)

    def together(self, *calls: Call) -> list[Any]:
        """Make several calls at the same time, in threads or in tasks, and return their results in order."""
        if not self._blocking:
            return self._face.run(_gathered(calls))
        with ThreadPoolExecutor(len(calls)) as threads:
            return [each.result(BOUND_S) for each in [threads.submit(call) for call in calls]]


def stored(client: Slots, name: str, bucket: int = 0) -> list[dict[str, Value]]:
    """Read the rows of a bucket as they lie in the store."""
    rows = client.store.read(TOKENS, (client.client.domain_id, name, bucket), (Slice(),), serial=True)
    return [dict(row) for row in rows]


@contextmanager
def slots(store: Store, face: Face, **options: Any) -> Iterator[Slots]:
    """Open a client of the face on a store that has the tables."""
    opened = Slots(store, face, **options)
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


async def _gathered(calls: tuple[Call, ...]) -> list[Any]:
    async with asyncio.timeout(BOUND_S):
        return list(await asyncio.gather(*(call() for call in calls)))


async def _listed(found: Any) -> list[Description]:
    return [each async for each in found]
