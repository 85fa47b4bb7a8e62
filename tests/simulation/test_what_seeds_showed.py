"""What schedules have shown, played again one by one: each broke a promise once. The seeds are those of their time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from simulator.stage import Hidden, Stage

from slotkeeper.database.simulated import Rows
from slotkeeper.semaphore.errors import HoldUnknown
from slotkeeper.semaphore.operations import Full, Granted, Released
from slotkeeper.semaphore.rows import WAITER
from slotkeeper.semaphore.waiting import LEAVING_S

Opened = Callable[..., Stage]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Open stages, and close them at the end."""
    stages: list[Stage] = []

    def open_stage(tokens: int = 1) -> Stage:
        stages.append(Stage(tokens))
        return stages[-1]

    yield open_stage
    for stage in stages:
        stage.close()


def test_seed_822_failed_read_after_a_lost_answer_is_no_proof_that_nothing_happened(opened: Opened) -> None:
    stage = opened()
    one = stage.actor("one")
    stage.answer(one.acquire(1))
    one.network.commits.append("lost")
    one.network.reads.append("down")

    with pytest.raises(HoldUnknown):
        stage.answer(one.release(1))

    assert stage.holders == {}


def test_seed_2264_cancelled_acquire_leaves_the_slot_to_its_owners_next_one(opened: Opened) -> None:
    stage = opened()
    one = stage.actor("one")
    one.network.commits.append("lost")
    cancelled = one.acquire(1)
    stage.passes(0.01)
    stage.cancel(cancelled)

    granted = stage.answer(one.acquire(1))

    assert isinstance(granted, Granted)
    stage.passes(30)
    assert stage.holders == {1: 1}
    assert isinstance(stage.answer(one.release(1, fence=granted.fence)), Released)


def test_seed_1035_cancelled_acquire_gives_back_although_reads_fail(opened: Opened) -> None:
    stage = opened()
    one = stage.actor("one")
    one.network.commits.append("lost")
    one.network.reads.extend(["", "", "down", "down"])
    cancelled = one.acquire(1)
    stage.passes(0.01)
    stage.cancel(cancelled)

    stage.passes(10)

    assert stage.holders == {}


def test_seed_27377_cancelled_release_leaves_nobody_without_a_leader(opened: Opened) -> None:
    stage = opened(tokens=2)
    one = stage.actor("one")
    stage.answer(one.acquire(1))
    one.network.commits.append("slow")
    cancelled = one.release(1)
    stage.passes(0.01)
    other = one.acquire(2)
    stage.passes(0.01)
    stage.cancel(cancelled)

    assert isinstance(stage.answer(other, within_s=2), Granted)
    assert stage.holders[stage.answer(other).token] == 2


def test_seed_600_nobody_queues_beside_a_slot_whose_release_our_own_mark_hides(opened: Opened) -> None:
    stage = opened(tokens=2)
    one, two = stage.actor("one"), stage.actor("two")
    stage.answer(one.acquire(1))
    stage.answer(two.acquire(2))
    stage.answer(one.release(1))
    stage.answer(one.acquire(1))  # it knows of both holds now
    stage.answer(two.release(2))
    stage.answer(one.release(1))
    stage.answer(one.acquire(1))

    stage.answer(one.acquire(3, wait_s=5))

    assert stage.picture.last == 0, "it queued beside a free slot"


def test_seed_4460_waiter_whose_row_has_not_spread_is_not_passed_over(opened: Opened) -> None:
    stage = opened()
    one, two = stage.actor("one"), stage.actor("two")
    stage.answer(one.acquire(1))
    first = one.acquire(2, wait_s=60)
    stage.passes(0.1)
    one.network.hides = _without_ticket(2)
    second = two.acquire(3, wait_s=60)
    stage.passes(2)
    assert stage.line == [2, 3]

    stage.answer(one.release(1))
    stage.answer(first)
    stage.answer(one.release(2))

    assert isinstance(stage.answer(one.acquire(4)), Full)
    assert isinstance(stage.answer(second), Granted)


def test_seed_60_slot_handed_over_that_has_not_spread_is_no_cancelled_wait(opened: Opened) -> None:
    stage = opened()
    one, two = stage.actor("one"), stage.actor("two")
    stage.answer(one.acquire(1))
    waiting = two.acquire(2, wait_s=60)
    stage.passes(0.5)
    before = stage.rows
    two.network.hides = lambda rows: {key: row for key, row in before.items() if key[0] != WAITER}
    stage.answer(one.release(1))

    assert isinstance(stage.answer(waiting), Granted)
    assert stage.holders == {1: 2}


def test_seed_37556_cancelled_acquire_does_not_change_the_lease_of_its_owners_hold(opened: Opened) -> None:
    stage = opened()
    one = stage.actor("one")
    stage.answer(one.acquire(1))
    one.network.commits.append("lost")
    cancelled = one.acquire(2, wait_s=60, lease_s=2)
    stage.passes(0.01)
    stage.cancel(cancelled)
    kept = one.acquire(2, wait_s=60)
    one.release(1)

    stage.answer(kept)

    stage.passes(30)
    assert stage.holders == {1: 2}


def test_seed_50240_cancelled_wait_leaves_the_place_that_another_process_took_over(opened: Opened) -> None:
    stage = opened()
    one, two = stage.actor("one"), stage.actor("two")
    stage.answer(one.acquire(1))
    first = one.acquire(2, wait_s=60)
    stage.passes(0.1)
    second = two.acquire(2, wait_s=60)
    stage.passes(0.1)
    stage.cancel(first)
    stage.passes(1)

    stage.answer(one.release(1))

    assert isinstance(stage.answer(second), Granted)


def test_seed_55405_batch_whose_callers_have_given_up_grants_nothing_later(opened: Opened) -> None:
    stage = opened()
    one = stage.actor("one")
    stage.answer(one.acquire(1))
    stage.answer(one.release(1))
    one.network.commits.append("never")
    given_up = one.acquire(2, timeout_s=0.01)
    with pytest.raises(HoldUnknown):
        stage.answer(given_up)
    stage.passes(30)

    stage.answer(one.acquire(3))

    assert stage.holders == {1: 3}


def test_seed_312889_late_renewal_does_not_end_a_hold_that_was_made_permanent(opened: Opened) -> None:
    stage = opened()
    one, keeper = stage.actor("one"), stage.actor("one-leases")
    stage.answer(one.acquire(1, lease_s=3))
    keeper.network.commits.extend(["late", *["never"] * 9])
    keeper.renew(1, 3, timeout_s=0.5)
    stage.passes(0.05)

    stage.answer(one.renew(1, None))

    stage.passes(3)
    assert stage.holders == {1: 1}
    stage.passes(30)
    assert stage.holders == {1: 1}


def test_late_confirmation_does_not_take_a_lease_off(opened: Opened) -> None:
    stage = opened()
    one, keeper = stage.actor("one"), stage.actor("one-leases")
    stage.answer(one.acquire(1, lease_s=5))
    keeper.network.commits.extend(["late", *["never"] * 9])
    keeper.renew(1, None, timeout_s=0.5)
    stage.passes(0.05)

    stage.answer(one.renew(1, 5))

    stage.passes(30)
    assert stage.holders == {}, "its lease has ended"


def test_cancelled_acquire_leaves_the_slot_that_another_process_was_told_of(opened: Opened) -> None:
    stage = opened()
    one, two = stage.actor("one"), stage.actor("two")
    one.network.commits.append("slow")
    cancelled = one.acquire(1)
    stage.passes(0.1)
    told = stage.answer(two.acquire(1), within_s=0.5)
    stage.cancel(cancelled)
    stage.passes(10)

    assert (told.token, stage.holders) == (1, {1: 1})
    assert isinstance(stage.answer(two.release(1, fence=told.fence)), Released)


def test_cancelled_wait_leaves_the_slot_that_another_process_took_in_its_place(opened: Opened) -> None:
    stage = opened()
    one, two = stage.actor("one"), stage.actor("two")
    stage.answer(two.acquire(1))
    cancelled = one.acquire(2, wait_s=60)
    stage.passes(0.1)
    second = two.acquire(2, wait_s=60)
    stage.passes(0.1)
    stage.answer(two.release(1))
    stage.cancel(cancelled)
    told = stage.answer(second)
    stage.passes(10)

    assert (told.token, stage.holders) == (1, {1: 2})


def test_cancelled_wait_leaves_the_slot_that_was_handed_to_another_process(opened: Opened) -> None:
    stage = opened()
    one, two, three = stage.actor("one"), stage.actor("two"), stage.actor("three")
    stage.answer(three.acquire(1))
    cancelled = one.acquire(2, wait_s=60)
    stage.passes(0.1)
    second = two.acquire(2, wait_s=60)
    stage.passes(0.1)
    two.network.reads.extend(["slow"] * 4)
    stage.passes(0.5)
    stage.answer(three.release(1))
    stage.cancel(cancelled)
    told = stage.answer(second, within_s=10)
    stage.passes(10)

    assert (told.token, stage.holders) == (1, {1: 2})


def test_two_cancelled_callers_of_two_processes_leave_no_more_than_their_owner_can_release(opened: Opened) -> None:
    stage = opened()
    one, two = stage.actor("one"), stage.actor("two")
    one.network.commits.append("slow")
    first = one.acquire(1)
    stage.passes(0.1)
    two.network.commits.append("slow")
    second = two.acquire(1)
    stage.passes(0.1)
    stage.cancel(first)
    stage.cancel(second)
    stage.passes(10)

    stage.answer(two.release(1))

    assert stage.holders == {}


def test_seed_1000470_waiter_whose_place_nobody_can_take_back_is_told_so(opened: Opened) -> None:
    stage = opened()
    one = stage.actor("one")
    stage.answer(one.acquire(1))
    waiting = one.acquire(2, wait_s=1)
    stage.passes(0.5)
    one.network.commits.extend(["never"] * 1000)
    one.release(1)

    with pytest.raises(HoldUnknown):
        stage.answer(waiting, within_s=1 + LEAVING_S + 1)


def test_seed_979778_cancelled_renewal_does_not_come_behind_a_longer_one(opened: Opened) -> None:
    stage = opened(2)
    one, keeper = stage.actor("one"), stage.actor("one-leases", drawn=0.5)
    for owner in (1, 2):
        stage.answer(one.acquire(owner, lease_s=3))
    stage.answer(keeper.renew(1, 3))
    stage.answer(one.renew(1, 10))

    keeper.network.commits.append("slow")  # and refused: it does not know of the longer one
    cancelled = keeper.renew(1, 3)
    stage.passes(0.1)
    stage.cancel(cancelled)
    stage.answer(keeper.renew(2, 10))

    stage.passes(6)
    assert stage.holders == {1: 1, 2: 2}


def _without_ticket(ticket: int) -> Hidden:
    def hides(rows: Rows) -> Rows:
        return {key: row for key, row in rows.items() if key[0] != WAITER or int(str(key[2]).split("/")[0]) != ticket}

    return hides


def test_seed_1009010_what_another_process_granted_in_the_same_millisecond_is_not_given_back(opened: Opened) -> None:
    stage = opened()
    one, two = stage.actor("one", drawn=0.2), stage.actor("two", drawn=0.7)
    one.network.commits.append("never")
    cancelled, granted = one.acquire(1), two.acquire(1)
    stage.passes(0.01)
    assert isinstance(granted.value, Granted)

    stage.cancel(cancelled)
    stage.passes(30)

    assert stage.holders == {1: 1}
    assert isinstance(stage.answer(two.release(1, fence=granted.value.fence)), Released)
