"""A crowd at one bucket: who is answered is woken in time, comes back, and leaves again with the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulator.stage import NAME, SLOW_S, Stage, owner_id

from slotkeeper.database.simulated import SimulatedPort
from slotkeeper.semaphore.operations import Granted, NotHeld

CROWD = 5 * SimulatedPort.wakes_at_once


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A bucket with room for all."""
    stage = Stage(tokens=CROWD)
    yield stage
    stage.close()


def test_what_needs_no_batch_is_answered_while_one_is_slow(stage: Stage) -> None:
    one = stage.actor("one")
    one.network.commits.append("slow")
    slow, quick = one.acquire(1), one.release(2)

    assert isinstance(stage.answer(quick, within_s=SLOW_S / 2), NotHeld)

    assert not slow.is_done
    assert isinstance(stage.answer(slow), Granted)


def test_crowd_of_whom_nobody_comes_back_is_woken_at_once(stage: Stage) -> None:
    one = stage.actor("one")
    asked = [one.acquire(owner) for owner in range(1, CROWD + 1)]

    stage.passes(0.1)

    assert all(task.is_done for task in asked)
    assert len(stage.holders) == CROWD


def test_answered_are_woken_although_the_next_reading_is_slow(stage: Stage) -> None:
    one = stage.actor("one")
    stage.answer(one.acquire(1))
    asked = [one.release(owner) for owner in range(2, CROWD)]
    one.network.reads.extend(["", "slow"])
    stage.passes(0.001)  # the first reading is on its way, and cannot tell this one that it holds nothing
    last = one.release(CROWD)

    stage.passes(SLOW_S / 2)

    assert all(isinstance(task.value, NotHeld) for task in asked)
    assert not last.is_done


def test_crowd_that_comes_back_leaves_together(stage: Stage) -> None:
    one, times = stage.actor("one"), 5
    stage.answer(one.acquire(CROWD))
    one.network.commits.extend([""] * 4 * CROWD * times)
    before = len(one.network.commits)

    async def cycle(owner: int) -> None:
        for _ in range(times):
            await one.core.acquire(NAME, owner_id(owner), wait_s=0.0, lease_s=None, timeout_s=20.0)
            await one.core.release(NAME, owner_id(owner), None, 20.0)

    cycles = [stage.scheduler.spawn(cycle(owner)) for owner in range(1, CROWD)]
    stage.passes(1.0)

    assert all(task.is_done for task in cycles)
    assert before - len(one.network.commits) <= 2 * times + 1, "all in one batch, but for the first who came"
