"""The line for a lock: first come, first served, one woken by a release, and nothing left of who has gone."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from locktables import LONG_S, Scheduled, Tables, events_set, raised

from slotkeeper.locktable import (
    AlreadyReleased,
    AsyncTable,
    Grant,
    LockHeld,
    LockUnavailable,
    NotRebuilt,
    Request,
    TakenOver,
)


class Gone(Exception):
    """A caller is gone."""


def test_who_came_first_is_served_first(tables: Tables) -> None:
    lock = tables.take("a")
    waiters = [tables.wait("a", holder=str(n)) for n in range(5)]

    for waiter in waiters:
        tables.release("a", lock.id)
        lock = waiter.grant().lock
    fences = [waiter.grant().lock.fence for waiter in waiters]
    assert fences == sorted(fences)
    assert tables.waiting == 0


def test_who_comes_later_does_not_overtake(tables: Tables) -> None:
    lock = tables.take("a")
    waiter = tables.wait("a", holder="first")

    tables.release("a", lock.id)
    with pytest.raises(LockHeld) as held:
        tables.take("a", holder="late")

    assert held.value.lock.holder == "first"
    assert waiter.grant().lock == held.value.lock


def test_who_is_refused_learns_how_many_stood_before_it(scheduled: Scheduled) -> None:
    scheduled.take("a")
    waiters = [scheduled.wait("a", wait_s=wait_s) for wait_s in (5, 5, 3)]

    with pytest.raises(LockHeld) as held:
        scheduled.take("a")
    scheduled.go_on(5)

    assert held.value.ahead == 3
    assert [raised(waiter, LockHeld).ahead for waiter in waiters] == [0, 0, 2]  # type: ignore[attr-defined]


def test_a_release_wakes_exactly_one(scheduled: Scheduled) -> None:
    woken = events_set(scheduled.port)
    lock = scheduled.take("a", lease_s=30)
    waiters = [scheduled.wait("a", lease_s=30) for _ in range(64)]

    for number, waiter in enumerate(waiters, start=1):
        scheduled.do(scheduled.locks.release("a", lock.id))
        scheduled.go_on(0.01)
        lock = waiter.value.lock
        assert woken() == number


def test_a_lease_that_ends_wakes_exactly_one(scheduled: Scheduled) -> None:
    woken = events_set(scheduled.port)
    scheduled.take("a", lease_s=1)
    waiters = [scheduled.wait("a", lease_s=1) for _ in range(10)]

    for number in range(1, 11):
        scheduled.go_on(1)
        assert [waiter.is_done for waiter in waiters].count(True) == number
        assert woken() == number


def test_the_next_in_line_keeps_the_time_of_a_shorter_lease(scheduled: Scheduled) -> None:
    long = scheduled.take("a", lease_s=600)
    _, last = scheduled.wait("a", lease_s=1), scheduled.wait("a")

    scheduled.do(scheduled.locks.release("a", long.id))
    scheduled.go_on(1)

    assert last.is_done
    assert last.value.waited_s == pytest.approx(1)


def test_who_is_left_keeps_the_time_when_the_first_has_gone(scheduled: Scheduled) -> None:
    scheduled.take("a", lease_s=10)
    first, second = scheduled.wait("a", wait_s=5), scheduled.wait("a", wait_s=60)

    scheduled.go_on(5)
    raised(first, LockHeld)
    scheduled.go_on(5)

    assert second.is_done
    assert second.value.waited_s == pytest.approx(10)


def test_whoever_comes_first_then_keeps_the_time_of_a_shorter_lease(scheduled: Scheduled) -> None:
    long = scheduled.take("a", lease_s=600)
    _, gone, last = scheduled.wait("a", lease_s=1), scheduled.wait("a"), scheduled.wait("a")
    scheduled.do(scheduled.locks.release("a", long.id))
    scheduled.go_on(0.5)

    scheduled.scheduler.cancel(gone, Gone())
    scheduled.go_on(0.5)

    assert last.is_done
    assert last.value.waited_s == pytest.approx(1)


def test_a_repeated_call_takes_over_the_place_in_line(tables: Tables) -> None:
    lock = tables.take("a")
    mine, other = tables.wait("a", request="r1"), tables.wait("a", request="r2")
    again = tables.wait_again("a", mine, request="r1")

    with pytest.raises(TakenOver):
        mine.grant()
    tables.release("a", lock.id)

    assert again.grant().lock.request == "r1"
    assert not other.is_done()
    tables.drop()


def test_a_repeated_call_has_its_own_patience(scheduled: Scheduled) -> None:
    scheduled.take("a")
    scheduled.wait("a", request="r1", wait_s=20)
    scheduled.go_on(4)
    again = scheduled.wait("a", request="r1", wait_s=5)
    assert scheduled.locks.waiting == 1

    scheduled.go_on(4.9)
    assert not again.is_done
    scheduled.go_on(0.1)

    raised(again, LockHeld)
    assert scheduled.locks.waiting == 0


def test_a_single_look_leaves_the_place_in_line_alone(tables: Tables) -> None:
    lock = tables.take("a")
    waiter = tables.wait("a", request="r1")
    tables.wait("a")

    with pytest.raises(LockHeld) as held:
        tables.take("a", request="r1")

    assert held.value.ahead == 0
    tables.release("a", lock.id)
    assert waiter.grant().lock.request == "r1"
    tables.drop()


def test_a_release_by_request_gives_the_place_in_line_up(tables: Tables) -> None:
    tables.take("a")
    waiter = tables.wait("a", request="r1")

    assert tables.release("a", request="r1") is None

    with pytest.raises(AlreadyReleased):
        waiter.grant()
    assert tables.waiting == 0


# --- those who have gone ------------------------------------------------------------------------------------------------


def test_who_goes_while_waiting_leaves_no_place(scheduled: Scheduled) -> None:
    lock = scheduled.take("a")
    gone, next_one = scheduled.wait("a"), scheduled.wait("a")

    scheduled.scheduler.cancel(gone, Gone())
    scheduled.go_on(0)
    assert scheduled.locks.waiting == 1
    scheduled.do(scheduled.locks.release("a", lock.id))
    scheduled.go_on(0)

    raised(gone, Gone)
    assert scheduled.do(scheduled.locks.locks()) == [next_one.value.lock]


@pytest.mark.parametrize("is_told_first", [True, False])
def test_who_goes_in_the_moment_of_its_grant_leaves_no_lock(is_told_first: bool, scheduled: Scheduled) -> None:
    lock = scheduled.take("a")
    gone, next_one = scheduled.wait("a", request="r1"), scheduled.wait("a")

    if not is_told_first:
        scheduled.scheduler.cancel(gone, Gone())
    scheduled.scheduler.spawn(scheduled.locks.release("a", lock.id))
    if is_told_first:
        scheduled.scheduler.run(most=1)
        scheduled.scheduler.cancel(gone, Gone())
    scheduled.go_on(0)

    if gone.error is None:  # it was told before it went
        assert [held.id for held in scheduled.do(scheduled.locks.locks())] == [gone.value.lock.id]
    else:
        assert scheduled.do(scheduled.locks.locks()) == [next_one.value.lock]
        scheduled.do(scheduled.locks.release("a", next_one.value.lock.id))
        assert scheduled.take("a", request="r1")  # nobody has released that request


async def handed_over(table: AsyncTable) -> asyncio.Task[Grant]:
    """Let a task wait for a lock and be handed it, and return it before it can know."""
    await table.rebuild(0, [])
    lock = (await table.acquire(Request("a"))).lock
    waiting = asyncio.ensure_future(table.acquire(Request("a", wait_s=LONG_S, request="r1")))
    await asyncio.sleep(0)
    await table.release("a", lock.id)
    return waiting


async def test_who_goes_does_not_take_the_lock_along_that_its_repeated_call_was_told_of() -> None:
    table = AsyncTable()
    gone = await handed_over(table)

    repeated = await table.acquire(Request("a", wait_s=LONG_S, request="r1"))
    gone.cancel()
    await asyncio.wait([gone])

    assert gone.cancelled()
    assert await table.locks() == [repeated.lock]
    with pytest.raises(LockHeld):
        await table.acquire(Request("a"))


async def test_who_goes_after_a_drop_leaves_no_former_lock() -> None:
    table = AsyncTable()
    gone = await handed_over(table)

    (granted,) = await table.granted()
    await table.drop()
    gone.cancel()
    await asyncio.wait([gone])

    assert gone.cancelled()
    assert await table.granted() == []
    await table.rebuild(1, [granted])
    assert await table.locks() == []


async def test_who_is_granted_and_dropped_at_once_has_its_lock() -> None:
    table = AsyncTable()
    waiting = await handed_over(table)
    await table.drop()
    assert [(await waiting).lock] == await table.granted()


@pytest.mark.parametrize("rounds", range(6))
async def test_cancelled_at_any_point_a_task_leaves_nothing_behind(rounds: int) -> None:
    table = AsyncTable()
    await table.rebuild(0, [])
    lock = (await table.acquire(Request("a"))).lock
    waiting = asyncio.ensure_future(table.acquire(Request("a", wait_s=LONG_S)))

    for number in range(rounds):
        if number == 1:
            await table.release("a", lock.id)
        else:
            await asyncio.sleep(0)
    was_answered = waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
    await table.release("a", lock.id)

    assert table.waiting == 0
    held = await table.locks()
    assert held == ([waiting.result().lock] if was_answered else [])


async def test_a_lock_given_back_by_a_cancelled_task_is_not_told_to_who_rebuilds() -> None:
    table = AsyncTable()
    await table.rebuild(0, [])
    lock = (await table.acquire(Request("a"))).lock
    waiting = asyncio.ensure_future(table.acquire(Request("a", wait_s=LONG_S)))
    await asyncio.sleep(0)
    await table.release("a", lock.id)
    (granted,) = await table.granted()

    waiting.cancel()
    await asyncio.wait([waiting])
    await table.drop()

    assert waiting.cancelled()
    assert await table.granted() == []
    await table.rebuild(1, [granted])
    assert await table.locks() == []


# --- who may not be granted ---------------------------------------------------------------------------------------------


class Trust:
    """Says what may be granted, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []
        self.distrusted: set[str] = set()

    def __call__(self, node: str, until: float) -> bool:
        """Answer."""
        self.asked.append((node, until))
        return node not in self.distrusted


def test_each_grant_and_renewal_is_asked_for_in_its_moment() -> None:
    trust = Trust()
    scheduled = Scheduled(may_grant=trust)
    lock = scheduled.take("a", node="n1", lease_s=10, request="r")
    scheduled.wait("a", node="n2", lease_s=20)
    scheduled.go_on(5)
    scheduled.do(scheduled.locks.renew("a", lock.id, 10))
    scheduled.do(scheduled.locks.renew("a", lock.id, 10, node="n3"))
    scheduled.take("a", node="n4", request="r")
    scheduled.go_on(5)
    scheduled.do(scheduled.locks.release("a", lock.id))

    assert trust.asked == [("n1", 10), ("n1", 15), ("n3", 15), ("n4", 15), ("n2", 30)]


def test_what_may_not_be_granted_changes_nothing() -> None:
    trust = Trust()
    scheduled = Scheduled(may_grant=trust)
    lock = scheduled.take("b", node="n1", request="r")
    trust.distrusted = {"n1"}

    for refused in (
        scheduled.locks.acquire(Request("a", node="n1", wait_s=5)),
        scheduled.locks.acquire(Request("b", node="n1", request="r")),
        scheduled.locks.renew("b", lock.id, 600),
    ):
        with pytest.raises(LockUnavailable):
            scheduled.do(refused)
    assert scheduled.do(scheduled.locks.locks()) == [lock]


def test_a_free_lock_goes_to_the_next_where_the_first_may_not_have_it() -> None:
    trust = Trust()
    scheduled = Scheduled(may_grant=trust)
    lock = scheduled.take("a", node="n1")
    first, second, third = (scheduled.wait("a", node=node) for node in ("n2", "n3", "n4"))
    trust.distrusted = {"n2"}

    scheduled.do(scheduled.locks.release("a", lock.id))
    scheduled.go_on(0)

    raised(first, LockUnavailable)
    assert second.value.lock.node == "n3"
    assert not third.is_done


def test_when_nothing_may_be_granted_nobody_waits_before_a_free_lock() -> None:
    trust = Trust()
    scheduled = Scheduled(may_grant=trust)
    scheduled.take("a", lease_s=1)
    waiters = [scheduled.wait("a") for _ in range(3)]
    trust.distrusted = {""}

    scheduled.go_on(1)

    for waiter in waiters:
        assert not isinstance(raised(waiter, LockUnavailable), NotRebuilt)
    assert scheduled.locks.waiting == 0
    assert scheduled.do(scheduled.locks.locks()) == []


def test_fences_of_a_line_grow(scheduled: Scheduled) -> None:
    lock = scheduled.take("a", lease_s=1)
    waiters = [scheduled.wait("a", lease_s=1) for _ in range(5)]
    scheduled.go_on(6)
    fences = [lock.fence, *(waiter.value.lock.fence for waiter in waiters)]
    assert all(before < after for before, after in pairwise(fences))
