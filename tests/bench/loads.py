"""Cycles a second: threads, tasks or processes that acquire and release without a pause."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial

from slotkeeper import Client

from .crowd import Readings, Window, counted, counted_in_task, in_tasks, in_threads, spread, timed
from .processes import Gate, in_processes
from .semaphores import TOKENS, client_of, fresh, opened, owner


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who cycles, on what. Those who wait stand in line for a slot; the others expect one to be free."""

    clients: int
    tokens: int = TOKENS
    bucket_size: int | None = None
    waits: bool = False
    lease_s: int | None = None
    hold_s: float = 0.0


def threads(url: str, seconds: float, *, crowd: Crowd) -> Readings:
    """Cycle in threads that share one client."""
    with client_of(url) as client, fresh(client, crowd.tokens, crowd.bucket_size) as name:
        window = Window.opening(seconds)
        done = in_threads(crowd.clients, lambda number: counted(_cycle(client, name, crowd, number, window), window))
    return {"cycles": sum(done) / window.seconds}


def tasks(url: str, seconds: float, *, crowd: Crowd) -> Readings:
    """Cycle in tasks of one loop that share one client."""
    return asyncio.run(_tasks(url, seconds, crowd))


async def _tasks(url: str, seconds: float, crowd: Crowd) -> Readings:
    async with opened(url, crowd.tokens) as (client, name):
        window = Window.opening(seconds)

        def work(number: int) -> Coroutine[None, None, int]:
            mine, acquire = owner(number), client.acquire if crowd.waits else client.try_acquire

            async def cycle() -> None:
                hold = await acquire(name, mine, lease_s=crowd.lease_s)
                assert hold is not None, "every client has a slot of its own"
                await hold.release()

            return counted_in_task(cycle, window)

        done = await in_tasks(crowd.clients, work)
    return {"cycles": sum(done) / window.seconds}


def processes(url: str, seconds: float, *, count: int, crowd: Crowd) -> Readings:
    """Cycle in processes, `crowd.clients` threads in each, all on one semaphore."""
    with client_of(url) as client, fresh(client, crowd.tokens, crowd.bucket_size) as name:
        done = in_processes(count, partial(_process, url, name, crowd), seconds)
    return {"cycles": sum(done) / seconds}


def _process(url: str, name: str, crowd: Crowd, number: int, gate: Gate) -> int:
    first = number * crowd.clients
    with client_of(url) as client:
        window = gate()

        def work(thread: int) -> int:
            return counted(_cycle(client, name, crowd, first + thread, window), window)

        return sum(in_threads(crowd.clients, work))


def _cycle(client: Client, name: str, crowd: Crowd, number: int, window: Window) -> Callable[[], None]:
    mine = owner(number)
    acquire = client.acquire if crowd.waits else client.try_acquire

    def cycle() -> None:
        hold = acquire(name, mine, lease_s=crowd.lease_s)
        assert hold is not None, "every client has a slot of its own"
        if crowd.hold_s and not window.over:
            time.sleep(crowd.hold_s)
        hold.release()

    return cycle


def latency(url: str, seconds: float, *, tokens: int = TOKENS) -> Readings:
    """Time the acquires of one lone thread, in ms."""
    with client_of(url) as client, fresh(client, tokens) as name:
        return spread(lone(client, name, seconds))


def lone(client: Client, name: str, seconds: float) -> list[float]:
    """Return how many ms each acquire of a lone thread took."""
    mine = owner(0)
    took = timed(
        lambda: client.try_acquire(name, mine), Window.opening(seconds), between=lambda: client.release(name, mine)
    )
    client.release(name, mine)
    return took
