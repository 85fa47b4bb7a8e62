"""Threads that share a table, and tasks that do: one inside at a time, everybody served, nothing left, no loop blocked."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from locktables import LONG_S

from slotkeeper.database import Event, drive
from slotkeeper.locktable import AsyncTable, Held, Limits, LockHeld, Request, Table
from slotkeeper.locktable.core import Locks
from slotkeeper.locktable.lock import Lock, Moment
from slotkeeper.locktable.ports import ThreadsPort
from slotkeeper.locktable.table import new_id

NAMES = ("a", "b", "c")
THREADS, ROUNDS = 8, 60


class Rooms:
    """What the locks guard: each room may have one inside, and remembers the fences of those who came."""

    def __init__(self) -> None:
        self.inside: dict[str, str] = {}
        self.fences: dict[str, list[int]] = {name: [] for name in NAMES}

    def enter(self, lock: Lock) -> None:
        """Come in."""
        assert self.inside.setdefault(lock.name, lock.id) == lock.id, f"two are in {lock.name}"
        self.fences[lock.name].append(lock.fence)

    def leave(self, lock: Lock) -> None:
        """Go."""
        assert self.inside.pop(lock.name) == lock.id

    def check(self, visits: int) -> None:
        """See that all came, one after the other."""
        assert sum(map(len, self.fences.values())) == visits
        assert all(fences == sorted(set(fences)) for fences in self.fences.values())


def test_threads_share_a_table() -> None:
    table, rooms = Table(), Rooms()
    table.rebuild(0, [])

    def work(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(ROUNDS):
            lock = table.acquire(Request(dice.choice(NAMES), wait_s=LONG_S)).lock
            rooms.enter(lock)
            if dice.random() < 0.3:
                table.renew(lock.name, lock.id, 60)
            time.sleep(0)
            rooms.leave(lock)
            assert table.release(lock.name, lock.id) is not None

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, range(THREADS), timeout=LONG_S))

    rooms.check(THREADS * ROUNDS)
    assert (table.locks(), table.waiting) == ([], 0)


async def test_tasks_share_a_table_and_some_are_cancelled() -> None:
    table, rooms, served = AsyncTable(), Rooms(), [0]
    await table.rebuild(0, [])

    async def work(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(ROUNDS):
            lock = (await table.acquire(Request(dice.choice(NAMES), wait_s=LONG_S))).lock
            rooms.enter(lock)
            served[0] += 1
            try:
                await asyncio.sleep(0)
            finally:
                rooms.leave(lock)
                await table.release(lock.name, lock.id)

    tasks = [asyncio.ensure_future(work(seed)) for seed in range(30)]
    dice = random.Random(5)
    for task in tasks[20:]:
        for _ in range(dice.randrange(20)):
            await asyncio.sleep(0)
        task.cancel()
    async with asyncio.timeout(LONG_S):
        await asyncio.gather(*tasks, return_exceptions=True)

    assert not any(task.cancelled() or task.exception() for task in tasks[:20])
    rooms.check(served[0])
    assert (await table.locks(), table.waiting) == ([], 0)


def test_threads_and_tasks_share_a_table() -> None:
    table, rooms, rounds = Table(), Rooms(), 40
    table.rebuild(0, [])

    def work(_: int) -> None:
        for _ in range(rounds):
            lock = table.acquire(Request("a", wait_s=LONG_S)).lock
            rooms.enter(lock)
            time.sleep(0)
            rooms.leave(lock)
            table.release("a", lock.id)

    async def work_later() -> None:
        tasks = table.for_tasks()
        for _ in range(rounds):
            lock = (await tasks.acquire(Request("a", wait_s=LONG_S))).lock
            rooms.enter(lock)
            await asyncio.sleep(0)
            rooms.leave(lock)
            await tasks.release("a", lock.id)

    async def all_tasks() -> None:
        async with asyncio.timeout(LONG_S):
            await asyncio.gather(*(work_later() for _ in range(4)))

    with ThreadPoolExecutor(4) as threads:
        results = threads.map(work, range(4), timeout=LONG_S)
        asyncio.run(all_tasks())
        list(results)

    rooms.check(8 * rounds)
    assert (table.locks(), table.waiting) == ([], 0)


def test_leases_that_end_under_threads_let_one_in_at_a_time() -> None:
    table = Table()
    table.rebuild(0, [])
    grants = []

    def work(_: int) -> None:
        for _ in range(5):
            grants.append(table.acquire(Request("a", wait_s=LONG_S, lease_s=0.002)).lock)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, range(THREADS), timeout=LONG_S))

    ordered = sorted(grants, key=lambda lock: lock.fence)
    starts = [lock.until - 0.002 for lock in ordered]
    assert len(starts) == THREADS * 5
    assert all(start >= before.until - 1e-6 for before, start in zip(ordered, starts[1:], strict=False))


def test_an_interrupted_thread_leaves_no_place_and_no_lock() -> None:
    class Interrupting(ThreadsPort):
        """A port whose waits are interrupted, as by Ctrl-C."""

        def event(self) -> Event:
            return cast("Event", _Interrupted())

    locks = Locks(Interrupting(), new_id=new_id, guard=threading.Lock())
    drive(locks.rebuild(0, []))
    lock = drive(locks.acquire(Request("a"))).lock

    with pytest.raises(KeyboardInterrupt):
        drive(locks.acquire(Request("a", wait_s=LONG_S)))

    assert locks.waiting == 0
    drive(locks.release("a", lock.id))
    assert drive(locks.locks()) == []


class _Interrupted:
    async def wait(self, timeout_s: float) -> bool:
        raise KeyboardInterrupt


def test_threads_share_what_is_held() -> None:
    held = Held(time.monotonic, guard=threading.Lock())

    def work(number: int) -> None:
        for turn in range(200):
            lock = Request("a").granted(f"{number}/{turn}", 1, Moment(time.monotonic(), 0))
            held.add(lock)
            held.locks()
            assert held.remove("a", lock.id) == lock

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(work, range(THREADS), timeout=LONG_S))
    assert held.locks() == []


@pytest.fixture
def blockbuster() -> Iterator[BlockBuster]:
    """Let whatever blocks a loop raise an error."""
    with blockbuster_ctx() as blockbuster:
        yield blockbuster


@pytest.mark.usefixtures("blockbuster")
async def test_the_asyncio_face_never_blocks_its_loop() -> None:
    table = AsyncTable(limits=Limits(waiters=3))
    await table.rebuild(0, [])
    lock = (await table.acquire(Request("a", lease_s=0.01))).lock
    assert (await table.acquire(Request("a", wait_s=LONG_S, request="r"))).lock != lock
    waiting = asyncio.ensure_future(table.acquire(Request("a", wait_s=LONG_S)))
    with pytest.raises(LockHeld):
        await table.acquire(Request("a", wait_s=0.001))
    await table.release("a", request="r")
    lock = (await waiting).lock
    await table.renew("a", lock.id)
    await table.forget("a", lock.id)
    await table.granted()
    await table.locks()
    await table.drop()
