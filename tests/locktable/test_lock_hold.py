"""The keeping of a lease: renewed at a third, tried again, lost in time, and a thread that ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest
from eventually import until
from locktables import known

from slotkeeper.database import Store
from slotkeeper.database.simulated import Scheduler, SimulatedPort, Straight
from slotkeeper.locktable import AsyncLockHold, Lock, LockHold, LockLost, LockUnavailable, NotHeld
from slotkeeper.locktable.keeper import LockKeeper
from slotkeeper.locktable.lease import Lease, keep


class Renewing:
    """Renews, or does what it is told to."""

    def __init__(self, clock: SimulatedPort, *problems: Exception | None, takes_s: float = 0.0) -> None:
        self._clock, self._problems, self._takes_s = clock, list(problems), takes_s
        self.asked: list[float] = []
        self.timeouts: list[float] = []

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float) -> Lock:
        """Renew."""
        self.asked.append(self._clock.now())
        self.timeouts.append(timeout_s)
        began_at = self._clock.now()
        await self._clock.sleep(self._takes_s)
        if self._problems and (problem := self._problems.pop(0)) is not None:
            raise problem
        return replace(lock, until=began_at + lease_s)


class Stage:
    """A lease that is kept in a schedule."""

    def __init__(self, *problems: Exception | None, lease_s: float = 30.0, takes_s: float = 0.0) -> None:
        self.scheduler = Scheduler()
        self.port = SimulatedPort(self.scheduler, Straight(cast("Store", None)))
        self.renewing = Renewing(self.port, *problems, takes_s=takes_s)
        self.lost_at: list[float] = []
        self.lease = Lease(known("a", "1", lease_s), lease_s, lambda: self.lost_at.append(self.port.now()))
        self.task = self.scheduler.spawn(keep(self.lease, self.port, self.renewing, lambda: 0.5))


def test_a_lease_is_renewed_when_a_third_of_it_has_passed() -> None:
    stage = Stage()
    stage.scheduler.run(until=35)
    assert stage.renewing.asked == [10, 20, 30]
    assert stage.lease.trusted_until == 60
    assert stage.renewing.timeouts == [7.5, 7.5, 7.5]


def test_a_failed_renewal_is_tried_again_soon() -> None:
    stage = Stage(LockUnavailable(), ConnectionError(), None)
    stage.scheduler.run(until=14)
    assert stage.renewing.asked == [10, pytest.approx(11.875), pytest.approx(13.75)]
    assert not stage.lease.over
    assert stage.lease.trusted_until == pytest.approx(43.75)


def test_a_lease_that_cannot_be_renewed_is_lost_when_it_can_be_trusted_no_longer() -> None:
    stage = Stage(*[LockUnavailable()] * 100)
    stage.scheduler.run(until=100)
    assert stage.lost_at == [30]
    assert stage.task.is_done


def test_a_lease_that_has_ended_elsewhere_is_lost_at_once() -> None:
    stage = Stage(NotHeld("a", "1"))
    stage.scheduler.run(until=100)
    assert (stage.lost_at, stage.renewing.asked) == ([10], [10])


def test_a_lease_that_was_let_go_is_neither_renewed_nor_lost() -> None:
    stage = Stage(takes_s=1)
    stage.scheduler.run(until=10.5)
    stage.lease.let_go = True
    stage.scheduler.run(until=100)
    assert (stage.lost_at, stage.renewing.asked) == ([], [10])
    assert stage.task.is_done


def test_an_answer_that_takes_long_counts_from_before_it_was_asked_for() -> None:
    stage = Stage(takes_s=6)
    stage.scheduler.run(until=17)
    assert stage.lease.trusted_until == 40
    stage.scheduler.run(until=25)
    assert stage.renewing.asked == [10, 24]


class Endless:
    """Renews real leases, and gives locks back; `refuses` says no."""

    def __init__(self) -> None:
        self.renewed, self.released = 0, 0
        self.refuses = False
        self.threads: set[str] = set()

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float) -> Lock:
        """Renew."""
        self.threads.add(threading.current_thread().name)
        if self.refuses:
            raise NotHeld(lock.name, lock.id)
        self.renewed += 1
        return replace(lock, until=time.monotonic() + lease_s)

    def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        """Release."""
        self.released += 1
        return True


class EndlessLater(Endless):
    """As Endless, for tasks."""

    async def release(self, lock: Lock | str, lock_id: str = "") -> bool:  # type: ignore[override]
        """Release."""
        self.released += 1
        return True


def keeper_of(renewer: Endless) -> LockKeeper:
    """Return a keeper."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Endless]:
        await asyncio.sleep(0)
        yield renewer

    return LockKeeper(opened, "the keeper")


def leased(lease_s: float) -> Lock:
    """Return a lock that was granted now."""
    return known("a", "1", time.monotonic() + lease_s, fence=3)


def test_holds_are_renewed_by_one_thread_that_ends_with_the_keeper() -> None:
    renewer = Endless()
    keeper = keeper_of(renewer)
    holds = [LockHold(renewer, keeper, leased(0.6), 0.6) for _ in range(3)]

    until(lambda: renewer.renewed >= 9)
    assert not any(hold.is_lost for hold in holds)
    assert all(hold.release() for hold in holds)
    keeper.close()
    keeper.close()

    assert renewer.threads == {"the keeper"}
    assert "the keeper" not in {thread.name for thread in threading.enumerate()}


def test_after_its_keeper_is_closed_a_hold_runs_out() -> None:
    renewer = Endless()
    keeper = keeper_of(renewer)
    keeper.close()
    hold = LockHold(renewer, keeper, leased(0.05), 0.05)
    until(lambda: hold.is_lost)
    assert renewer.renewed == 0
    with pytest.raises(LockLost):
        hold.release()
    assert renewer.released == 0


def test_a_hold_that_is_given_back_at_once_leaves_nothing() -> None:
    renewer = Endless()
    keeper = keeper_of(renewer)
    for _ in range(20):
        with LockHold(renewer, keeper, leased(30), 30):
            pass
    keeper.close()
    assert renewer.released == 20
    assert renewer.renewed == 0


def test_a_hold_whose_renewer_cannot_be_opened_is_lost_when_its_time_has_come() -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Endless]:
        raise ConnectionError("no such service")
        yield Endless()

    keeper = LockKeeper(opened)
    hold = LockHold(Endless(), keeper, leased(0.1), 0.1)
    assert hold.lost.wait(20)
    with pytest.raises(LockLost):
        hold.check()
    keeper.close()


async def test_a_task_is_told_of_its_loss() -> None:
    renewer = EndlessLater()
    keeper = keeper_of(renewer)
    try:
        async with asyncio.timeout(20):
            hold = AsyncLockHold(renewer, keeper, leased(0.3), 0.3)
            renewer.refuses = True
            await hold.lost.wait()
        assert hold.is_lost
        assert "lost" in repr(hold)
        with pytest.raises(LockLost) as lost:
            async with hold:
                pass
        assert (lost.value.name, lost.value.id, lost.value.fence) == ("a", "1", 3)
    finally:
        await asyncio.to_thread(keeper.close)


async def test_a_blocked_loop_keeps_its_lease() -> None:
    renewer = EndlessLater()
    keeper = keeper_of(renewer)
    async with AsyncLockHold(renewer, keeper, leased(0.2), 0.2) as hold:
        until(lambda: renewer.renewed > 3)  # blocks the loop, on purpose
        hold.check()
    assert renewer.released == 1
    await asyncio.to_thread(keeper.close)
