"""What grows with use: with the tokens of a bucket, with its line, with its past, and with the leases that a client holds."""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import tracemalloc
from contextlib import suppress
from functools import partial
from time import monotonic

from slotkeeper import AsyncClient, Client
from slotkeeper.database import Store, open_store
from slotkeeper.semaphore import AsyncHold, SemaphoreError

from .crowd import Readings, in_threads, percentile, spread
from .loads import lone
from .processes import Gate, in_processes
from .semaphores import DOMAIN, client_of, fresh, opened, owner

SAMPLES = 30
THREADS = 64


def first_acquire(url: str, seconds: float, *, tokens: int, samples: int = SAMPLES) -> Readings:
    """Time the first acquire of a new client, which reads the whole bucket, where every token has been used; in ms."""
    store = open_store(url)
    try:
        with Client(store, domain=DOMAIN) as client, fresh(client, tokens) as name:
            _use_all(client, name, tokens)
            return spread(_firsts(store, name, samples))
    finally:
        store.close()


def _use_all(client: Client, name: str, tokens: int) -> None:
    def work(number: int) -> None:
        for token in range(number, tokens, THREADS):
            client.try_acquire(name, owner(token))

    in_threads(min(tokens, THREADS), work)
    in_threads(min(tokens, THREADS), lambda n: [client.release(name, owner(t)) for t in range(n, tokens, THREADS)])


def _firsts(store: Store, name: str, samples: int) -> list[float]:
    took = []
    for number in range(samples):
        with Client(store, domain=DOMAIN) as newcomer:
            began_at = monotonic()
            hold = newcomer.try_acquire(name, owner(number))
            took.append((monotonic() - began_at) * 1000)
            assert hold is not None
            hold.release()
    return took


def release_before(url: str, seconds: float, *, waiters: int, samples: int = SAMPLES) -> Readings:
    """Time the releases of the only slot while so many stand in line; in ms."""
    return asyncio.run(_release_before(url, waiters, samples))


async def _release_before(url: str, waiters: int, samples: int) -> Readings:
    async with opened(url, 1) as (client, name):
        hold = await client.acquire(name, owner(0))
        admitted: asyncio.Queue[AsyncHold] = asyncio.Queue()
        line = await _stand_in_line(client, name, waiters, admitted)
        took = []
        for _ in range(min(samples, waiters) or samples):
            began_at = monotonic()
            await hold.release()
            took.append((monotonic() - began_at) * 1000)
            hold = await (admitted.get() if waiters else client.acquire(name, owner(0)))
        for task in line:
            task.cancel()
        await asyncio.gather(*line, return_exceptions=True)
    return spread(took)


async def _stand_in_line(
    client: AsyncClient, name: str, waiters: int, admitted: asyncio.Queue[AsyncHold]
) -> list[asyncio.Task[None]]:
    async def stand(number: int) -> None:
        with suppress(SemaphoreError):
            admitted.put_nowait(await client.acquire(name, owner(number)))

    line = [asyncio.create_task(stand(number + 1)) for number in range(waiters)]
    while len(await client.waiters(name)) < waiters:  # noqa: ASYNC110 - the line is in the database, it sets no event
        await asyncio.sleep(0.02)
    return line


def after_many(url: str, seconds: float, *, cycles: int, samples: int = SAMPLES) -> Readings:
    """Time a lone acquire before and after so many cycles, and the first one of a new client; in ms.

    Every cycle has an owner of its own, as in a workflow engine, and leaves its tombstones; a quarter stands in line.
    """
    store = open_store(url)
    try:
        with Client(store, domain=DOMAIN) as client, fresh(client, THREADS * 3 // 4) as name:
            start, first = _p99(client, name, seconds), _firsts(store, name, samples)
            began_at = monotonic()
            _churn(client, name, cycles)
            rate = cycles / (monotonic() - began_at)
            end, last = _p99(client, name, seconds), _firsts(store, name, samples)
    finally:
        store.close()
    firsts = {"first before": percentile(first, 50), "first after": percentile(last, 50)}
    return {"p99 before": start, "p99 after": end, "cycles": rate, **firsts}


def _p99(client: Client, name: str, seconds: float) -> float:
    return statistics.median(percentile(lone(client, name, seconds), 99) for _ in range(3))


def _churn(client: Client, name: str, cycles: int) -> None:
    holds = itertools.count(1)

    def work(number: int) -> None:
        while (hold := next(holds)) <= cycles:
            client.acquire(name, owner(number, hold)).release()

    in_threads(THREADS, work)


def memory(url: str, seconds: float, *, leases: int = 1000) -> Readings:
    """Count what Python has allocated for so many held leases, in KiB, in a process of its own."""
    with client_of(url) as client, fresh(client, 2 * leases, min(leases, 100)) as name:
        return {"KiB": in_processes(1, partial(_held, url, name, leases), seconds)[0]}


def _held(url: str, name: str, leases: int, number: int, gate: Gate) -> float:
    with client_of(url) as client:
        for someone in range(leases):  # so that every bucket is known before the counting begins
            client.release(name, owner(someone))
        gate()
        gc.collect()
        tracemalloc.start()
        holds = [client.try_acquire(name, owner(someone), lease_s=600) for someone in range(leases)]
        assert all(holds), "half of the slots stay free"
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1024
