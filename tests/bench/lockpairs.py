"""Pairs of an acquire and a release without a service: in memory, and straight in the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from uuid import uuid4

from slotkeeper import Client
from slotkeeper.database import Event
from slotkeeper.locktable import AsyncTable, Grant, Request, Table
from slotkeeper.locktable.core import Locks
from slotkeeper.locktable.direct import DirectLocks
from slotkeeper.locktable.ports import LoopPort

from .crowd import Readings, Window, in_threads, spread

Pair = Callable[[], float]  # carries one out, and returns how many ms its acquire took


def in_memory(url: str, seconds: float, *, threads: int) -> Readings:
    """Let threads share one table, each on a name of its own."""
    table = Table()
    table.rebuild(table.generation, [])

    def pair_of(number: int) -> Pair:
        request = Request(f"bench {number}")

        def pair() -> float:
            began_at = monotonic()
            lock = table.acquire(request).lock
            took_ms = (monotonic() - began_at) * 1000
            assert table.release(lock.name, lock.id) is not None
            return took_ms

        return pair

    return paired([pair_of(number) for number in range(threads)], seconds)


def in_a_loop(url: str, seconds: float) -> Readings:
    """Let one task have a table to itself. More tasks would take turns: a free lock lets nobody wait."""
    took, window = asyncio.run(_in_a_loop(seconds))
    return {"cycles": len(took) / window.seconds, **spread(took)}


async def _in_a_loop(seconds: float) -> tuple[list[float], Window]:
    table, request, took = AsyncTable(), Request("bench"), list[float]()
    await table.rebuild(table.generation, [])
    window = Window.opening(seconds)
    while not window.over:
        began_at = monotonic()
        lock = (await table.acquire(request)).lock
        took_ms = (monotonic() - began_at) * 1000
        assert await table.release(lock.name, lock.id) is not None
        if window.counts:
            took.append(took_ms)
    return took, window


def direct(url: str, seconds: float, *, threads: int) -> Readings:
    """Let threads share one client of the database, each on a name of its own."""
    with DirectLocks(url, cluster=f"bench-{uuid4().hex}") as locks:

        def pair_of(number: int) -> Pair:
            def pair() -> float:
                began_at = monotonic()
                lock = locks.acquire(f"bench {number}")
                took_ms = (monotonic() - began_at) * 1000
                assert locks.release(lock)
                return took_ms

            return pair

        pairs = [pair_of(number) for number in range(threads)]
        try:
            for pair in pairs:  # so that each name has its rows before the counting begins
                pair()
            return paired(pairs, seconds)
        finally:
            _delete(url, locks, threads)


def _delete(url: str, locks: DirectLocks, names: int) -> None:
    with Client(url, domain=locks.domain_id) as client:
        for number in range(names):
            client.delete(f"bench {number}", force=True)


def paired(pairs: list[Pair], seconds: float) -> Readings:
    """Repeat each pair in a thread of its own until the window is over."""
    window = Window.opening(seconds)

    def work(number: int) -> list[float]:
        pair, took = pairs[number], list[float]()
        while not window.over:
            took_ms = pair()
            if window.counts:
                took.append(took_ms)
        return took

    took = [ms for each in in_threads(len(pairs), work) for ms in each]
    return {"cycles": len(took) / window.seconds, **spread(took)}


# --- who is woken -------------------------------------------------------------------------------------------------------


class _Counted:
    """An event that counts how often somebody wakes by it."""

    def __init__(self, event: Event, woken: list[None]) -> None:
        self._event, self._woken = event, woken

    def is_set(self) -> bool:
        """See Event."""
        return self._event.is_set()

    def set(self) -> None:
        """See Event."""
        self._event.set()

    def clear(self) -> None:
        """See Event."""
        self._event.clear()

    async def wait(self, timeout_s: float) -> bool:
        """See Event."""
        was_set = await self._event.wait(timeout_s)
        self._woken.append(None)
        return was_set


class _CountingPort(LoopPort):
    def __init__(self) -> None:
        super().__init__()
        self.woken: list[None] = []

    def event(self) -> Event:
        """See Port.event."""
        return _Counted(super().event(), self.woken)


def woken(url: str, seconds: float, *, waiters: int) -> Readings:
    """Count who wakes when a lock with a line is released, for each release; and time it until the next one has it."""
    return asyncio.run(_woken(waiters))


async def _woken(waiters: int) -> Readings:
    port, ids = _CountingPort(), iter(range(waiters + 1))
    table = Locks(port, new_id=lambda: str(next(ids)))
    await table.rebuild(table.generation, [])
    granted: asyncio.Queue[tuple[float, Grant]] = asyncio.Queue()

    async def stand() -> None:
        grant = await table.acquire(Request("bench", wait_s=600))
        granted.put_nowait((monotonic(), grant))

    async with asyncio.TaskGroup() as line:
        for _ in range(waiters + 1):
            line.create_task(stand())
        _, grant = await granted.get()
        took = []
        while table.waiting:
            began_at = monotonic()
            await table.release(grant.lock.name, grant.lock.id)
            at, grant = await granted.get()
            took.append((at - began_at) * 1000)
    return {"woken": len(port.woken) / waiters, **spread(took)}
