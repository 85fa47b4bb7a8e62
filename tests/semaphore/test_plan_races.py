"""Two processes that plan from the same state: what both may do, and what only the first can."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from contract.partition import Partition

from slotkeeper.database import Applied, Outcome
from slotkeeper.semaphore.operations import Acquire, Cancel, Operation, Release, Renew, Stay
from slotkeeper.semaphore.plan import plan
from slotkeeper.semaphore.planned import Ask, Plan, Setting
from slotkeeper.semaphore.state import State

Asked = Sequence[Operation]
EVE_ASKS, EVE_WAITS, FAY_WAITS = Acquire("eve"), Acquire("eve", wait=True), Acquire("fay", wait=True)


def planned(known: State, asked: Asked, *, mark: int, place: int = 1, client_id: str = "us") -> Plan:
    """Plan at one moment: versions of both processes come out equal, so that only guards keep them apart."""
    setting = Setting(client_id, now=1.0, wall_ms=5_000_000, mark=mark, place=place)
    return plan(known, [Ask(operation) for operation in asked], setting)


def scene(*steps: Asked, size: int = 1) -> Partition:
    """Return a bucket that has gone through some batches."""
    partition = Partition(range(1, size + 1))
    for number, asked in enumerate(steps):
        applied = partition.commit(planned(partition.read(), asked, mark=100 + number, client_id="before").writes)
        assert applied == Applied()
    return partition


def race(partition: Partition, first: Asked, second: Asked, *, places: tuple[int, int] = (1, 1)) -> list[bool]:
    """Let two processes plan from the same state and commit one after the other; tell which applied."""
    plans = [
        planned(partition.read(), asked, mark=mark, place=place, client_id=client_id)
        for asked, mark, place, client_id in zip((first, second), (1, 2), places, ("us", "they"), strict=True)
    ]
    return [applied(partition.commit(made.writes)) for made in plans]


def applied(outcome: Outcome) -> bool:
    """Tell whether it applied."""
    return outcome == Applied()


FULL = ([Acquire("ann")],)
QUEUED = ([Acquire("ann")], [EVE_WAITS])
CLASHES: dict[str, tuple[Sequence[Asked], Asked, Asked]] = {
    "two who want the last token": ((), [EVE_ASKS], [Acquire("fay")]),
    "a release, and one who queues as it saw no slot": (FULL, [Release("ann")], [EVE_WAITS]),
    "two who queue with the same ticket": (FULL, [EVE_WAITS], [FAY_WAITS]),
    "a hand-off, and the waiter that cancels": (QUEUED, [Release("ann")], [Cancel("eve")]),
    "a hand-off, and the waiter that keeps its place": (QUEUED, [Release("ann")], [Stay("eve")]),
    "a release of a hold, twice": (FULL, [Release("ann")], [Release("ann")]),
    "a hand-off of a hold, twice": (QUEUED, [Release("ann")], [Release("ann")]),
}


@pytest.mark.parametrize(("before", "one", "other"), CLASHES.values(), ids=CLASHES)
def test_only_the_first_of_the_two_applies(before: Sequence[Asked], one: Asked, other: Asked) -> None:
    assert race(scene(*before), one, other) == [True, False]


@pytest.mark.parametrize(
    ("before", "one", "other"),
    [case for name, case in CLASHES.items() if "keeps its place" not in name],
    ids=[name for name in CLASHES if "keeps its place" not in name],
)
def test_only_the_first_of_the_two_applies_the_other_way_round(
    before: Sequence[Asked], one: Asked, other: Asked
) -> None:
    assert race(scene(*before), other, one) == [True, False]


def test_waiter_that_has_kept_its_place_is_handed_the_slot() -> None:
    assert race(scene(*QUEUED), [Stay("eve")], [Release("ann")]) == [True, True]


def test_renewal_after_the_release_is_refused() -> None:
    assert race(scene(*FULL), [Release("ann")], [Renew("ann", lease_s=30)]) == [True, False]


def test_release_of_a_hold_that_was_renewed_meanwhile_applies() -> None:
    """A renewal keeps the version: it is the same hold."""
    assert race(scene(*FULL), [Renew("ann", lease_s=30)], [Release("ann")]) == [True, True]


def test_releases_of_two_processes_never_refuse_each_other() -> None:
    """The mark is written and not guarded."""
    partition = scene([Acquire("ann"), Acquire("bob")], size=2)
    assert race(partition, [Release("ann")], [Release("bob")]) == [True, True]


def test_grants_from_different_places_do_not_refuse_each_other() -> None:
    assert race(scene(size=4), [EVE_ASKS], [Acquire("fay")], places=(1, 3)) == [True, True]


def test_one_owner_that_asks_through_two_processes_gets_one_token() -> None:
    partition = scene(size=4)
    assert race(partition, [EVE_ASKS], [EVE_ASKS], places=(1, 3)) == [True, False]
    assert partition.read().held == {"eve": 1}


def test_one_owner_that_queues_through_two_processes_has_one_place() -> None:
    partition = scene(*FULL)
    assert race(partition, [EVE_WAITS], [EVE_WAITS]) == [True, False]
    assert len(partition.read().line) == 1


def test_owner_that_released_and_acquired_again_keeps_its_new_hold_against_a_late_release() -> None:
    """The late attempt names the version of the old hold: the same owner and token are not enough."""
    partition = scene(*FULL)
    late = planned(partition.read(), [Release("ann")], mark=1).writes
    for asked in ([Release("ann")], [Acquire("ann")]):
        assert applied(partition.commit(planned(partition.read(), asked, mark=2).writes))
    assert not applied(partition.commit(late))
    assert partition.read().held == {"ann": 1}
