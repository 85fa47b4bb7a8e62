"""Clients of one table under random schedules: late wake-ups, callers that go, requests repeated, leases that run out."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count
from typing import cast

import pytest
from locktables import Scheduled

from slotkeeper.database import Store
from slotkeeper.database.simulated import Scheduler, SimulatedPort, Straight
from slotkeeper.database.simulated.scheduler import Task
from slotkeeper.locktable import AlreadyReleased, Lock, LockHeld, Locks, NotHeld, NotRebuilt, Request, TakenOver

NAMES = ("a", "b")
CLIENTS, ROUNDS = 6, 12


class Gone(BaseException):
    """A caller is gone."""


@dataclass
class Watch:
    """What the clients were told: a lock may have one holder at a time, and its fences only grow."""

    scheduler: Scheduler
    held: dict[str, Lock] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    told: int = 0

    def begins(self, lock: Lock) -> None:
        """Note that a client was told of its lock, or of its renewal."""
        other = self.held.get(lock.name)
        if other is not None and other.id != lock.id:
            assert other.until <= self.scheduler.now, f"{lock} while {other} is held"
        assert lock.fence >= self.fences.get(lock.name, 0)
        self.held[lock.name], self.fences[lock.name] = lock, lock.fence
        self.told += 1

    def ends(self, lock: Lock) -> None:
        """Note that a client lets go."""
        if (other := self.held.get(lock.name)) is not None and other.id == lock.id:
            del self.held[lock.name]


class Play:
    """Some clients, and one who drops the table now and then and rebuilds it from what it granted."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.scheduler = Scheduler(lag=lambda group: self.dice.choice((0.0, 0.0, 0.01, 0.3)))
        port = SimulatedPort(self.scheduler, Straight(cast("Store", None)))
        self.port, self.ids = port, count(1)
        self.table = Locks(port, new_id=lambda: f"lock {next(self.ids)}")
        self.watch = Watch(self.scheduler)
        self.clients = [self.scheduler.spawn(self._client(n), f"client {n}") for n in range(CLIENTS)]
        self.clients.append(self.scheduler.spawn(self._speaker(), "speaker"))

    async def _client(self, number: int) -> None:
        for turn in range(ROUNDS):
            await self.port.sleep(self.dice.random())
            dice = self.dice
            request = Request(
                dice.choice(NAMES),
                lease_s=dice.choice((0.4, 1.0, 5.0)),
                wait_s=dice.choice((0.0, 0.5, 4.0)),
                request=dice.choice(("", f"request {number}/{turn}")),
            )
            if (lock := await self._asked(request)) is not None:
                await self._used(lock)
            elif request.request and dice.random() < 0.5:
                await self.table.release(request.name, request=request.request)

    async def _asked(self, request: Request) -> Lock | None:
        """Ask, perhaps lose the connection, and ask again under the same id."""
        tries = 1 + (self.dice.random() < 0.5)
        calls = []
        for _ in range(tries if request.request else 1):
            calls.append(self.scheduler.spawn(self.table.acquire(request), "call"))
            await self.port.sleep(self.dice.choice((0.0, 0.01, 0.5)))
            if self.dice.random() < 0.4 and calls[-1].is_done is False:
                self.scheduler.cancel(calls[-1], Gone())
        while not all(call.is_done for call in calls):
            await self.port.sleep(0.05)
        return self._heard(calls)

    def _heard(self, calls: list[Task]) -> Lock | None:
        errors = (LockHeld, NotRebuilt, TakenOver, AlreadyReleased, Gone)
        assert all(call.error is None or isinstance(call.error, errors) for call in calls), calls
        grants = [call.value for call in calls if call.error is None]
        if not grants:
            return None
        lock: Lock = grants[-1].lock
        if lock.until > self.scheduler.now:
            self.watch.begins(lock)
        return lock

    async def _used(self, lock: Lock) -> None:
        await self.port.sleep(self.dice.choice((0.0, 0.2, 0.6)))
        if self.dice.random() < 0.3:
            try:
                lock = (await self.table.renew(lock.name, lock.id, 2.0)).lock
                self.watch.begins(lock)
            except (NotHeld, NotRebuilt):
                assert lock.until <= self.scheduler.now or not self.table.is_rebuilt
        if self.dice.random() < 0.8:
            self.watch.ends(lock)
            await self.table.release(lock.name, lock.id, request=self.dice.choice(("", lock.request)))

    async def _speaker(self) -> None:
        for _ in range(6):
            generation = self.table.generation
            await self.port.sleep(self.dice.choice((0.0, 0.3)))
            told = [*await self.table.granted(), *self.watch.held.values()]
            assert await self.table.rebuild(generation, told, epoch=generation) == []
            await self.port.sleep(1 + 2 * self.dice.random())
            await self.table.drop()
        await self.table.rebuild(self.table.generation, await self.table.granted())


@pytest.mark.parametrize("seeds", range(0, 400, 50))
def test_whatever_the_schedule_a_lock_has_one_holder_and_nothing_is_left(seeds: int) -> None:
    told = 0
    for seed in range(seeds, seeds + 50):
        play = Play(seed)
        play.scheduler.run(until=200)
        problems = [task.error for task in play.clients if task.error is not None]
        assert not problems, f"seed {seed}: {problems[0]!r}"
        assert all(task.is_done for task in play.clients), f"seed {seed}: somebody waits for ever"
        assert play.table.waiting == 0
        assert play.scheduler.finished(play.table.locks()) == [], f"seed {seed}"
        assert play.scheduler.finished(play.table.granted()) == [], f"seed {seed}"
        told += play.watch.told
    assert told > 50 * 10


def test_the_watch_would_notice_two_holders() -> None:
    scheduled = Scheduled()
    watch = Watch(scheduled.scheduler)
    watch.begins(scheduled.take("a", lease_s=10))
    scheduled.do(scheduled.locks.rebuild(0, []))
    with pytest.raises(AssertionError, match="while"):
        watch.begins(scheduled.take("a"))
