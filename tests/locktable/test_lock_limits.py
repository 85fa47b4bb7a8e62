"""Fences that only grow, limits that hold, and memory that is given back."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from locktables import THEN, Hands, Scheduled, Tables, known, raised, table

from slotkeeper.errors import SlotkeeperError
from slotkeeper.locktable import (
    AlreadyReleased,
    BadEpoch,
    BadLockRequest,
    FencesUsedUp,
    Held,
    LimitReached,
    Limits,
    LockError,
    LockHeld,
    LockLost,
    LockUnavailable,
    LockUnknown,
    NoName,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    Request,
    TakenOver,
    errors,
)
from slotkeeper.locktable.leases import SLACK, Leases, by_name
from slotkeeper.locktable.remembered import Remembered

# --- fences -------------------------------------------------------------------------------------------------------------


def test_a_fence_grows_with_each_grant_whatever_happens_to_the_table(tables: Tables) -> None:
    fences = []
    for _ in range(3):
        lock = tables.take("a")
        tables.take("b")
        tables.release("a", lock.id)
        fences.append(lock.fence)
        tables.drop()
        tables.rebuild(tables.generation, [])
        fences.append(tables.take("a").fence)
        tables.drop()
        tables.rebuild(tables.generation, [])
    assert fences == sorted(set(fences))


def test_a_greater_epoch_is_above_all_fences_before_it(face: str) -> None:
    with table(face, epoch=7) as tables:
        tables.empty()
        assert tables.take("a").fence == (7 << 32) + 1
        tables.drop()
        tables.rebuild(1, [], epoch=9)
        assert (tables.epoch, tables.take("a").fence) == (9, (9 << 32) + 1)


def test_fences_are_above_those_of_the_locks_that_a_rebuild_finds(fresh: Tables) -> None:
    held, lapsed = (
        known("b", "1", fresh.hands.now + 1, fence=70),
        known("a", "2", fresh.hands.now, fence=(3 << 32) + 500),
    )
    fresh.rebuild(0, [lapsed, held])
    assert fresh.take("a").fence == lapsed.fence + 1


@pytest.mark.parametrize("epoch", [4, -1, 1 << 31])
def test_an_epoch_does_not_go_back(epoch: int, face: str) -> None:
    with table(face, epoch=5) as tables:
        tables.empty()
        tables.drop()
        with pytest.raises(BadEpoch):
            tables.rebuild(1, [], epoch=epoch)
        assert not tables.is_rebuilt
        assert tables.rebuild(1, [], epoch=5) == []


def test_the_fences_of_an_epoch_can_be_used_up(fresh: Tables) -> None:
    last = known("a", "1", fresh.hands.now + 60, fence=(1 << 32) - 1)
    fresh.rebuild(0, [last])
    with pytest.raises(FencesUsedUp):
        fresh.take("b")

    fresh.drop()
    fresh.rebuild(1, [last], epoch=1)

    assert fresh.take("b").fence == (1 << 32) + 1


# --- limits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "ä/ö 1", "x" * 256])
def test_names_that_a_lock_can_have(name: str, tables: Tables) -> None:
    assert tables.take(name).name == name


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "x" * 257},
        {"name": "a\nb"},
        {"name": "a\x00"},
        {"name": "a", "holder": "h" * 257},
        {"name": "a", "node": "n\n"},
        {"name": "a", "request": "r" * 257},
        {"name": "a", "lease_s": float("nan")},
        {"name": "a", "wait_s": float("nan")},
    ],
    ids=str,
)
def test_what_no_request_can_say_is_refused(bad: dict[str, Any], tables: Tables) -> None:
    with pytest.raises(BadLockRequest) as refused:
        tables.take(**bad)
    assert isinstance(refused.value, ValueError)
    assert len(str(refused.value)) < 500
    assert tables.locks() == []


def test_a_lease_is_a_number_for_a_renewal_too(tables: Tables) -> None:
    lock = tables.take("a")
    with pytest.raises(BadLockRequest):
        tables.renew("a", lock.id, float("nan"))


def test_there_are_so_many_locks_and_no_more(face: str) -> None:
    with table(face, limits=Limits(locks=2)) as tables:
        tables.empty()
        lock = tables.take("a", lease_s=10)
        tables.take("b")
        with pytest.raises(LimitReached) as full:
            tables.take("c")
        assert (full.value.what, full.value.most) == ("locks", 2)

        tables.release("a", lock.id)
        tables.take("c", lease_s=10)
        tables.hands.go_on(10)
        tables.take("d")  # a lapsed one takes no room


def test_a_rebuild_takes_all_that_is_held(face: str) -> None:
    with table(face, limits=Limits(locks=1)) as tables:
        tables.rebuild(0, [known(name, name, tables.hands.now + 60) for name in "abc"])
        assert len(tables.locks()) == 3


def test_so_many_wait_for_one_lock_and_no_more() -> None:
    scheduled = Scheduled(limits=Limits(waiters_a_name=2))
    scheduled.take("a")
    scheduled.take("b")
    scheduled.wait("a", request="r1")
    scheduled.wait("a")

    raised(scheduled.wait("a"), LimitReached)
    assert not scheduled.wait("b").is_done
    assert not scheduled.wait("a", request="r1").is_done  # it takes over a place, and needs none
    assert scheduled.locks.waiting == 3


def test_so_many_wait_and_no_more() -> None:
    scheduled = Scheduled(limits=Limits(waiters=2))
    for name in "ab":
        scheduled.take(name)
        scheduled.wait(name, request="r")
    raised(scheduled.wait("a"), LimitReached)
    assert not scheduled.wait("b", request="r").is_done


def test_a_longer_wait_counts_as_the_longest() -> None:
    scheduled = Scheduled(limits=Limits(wait_s=5))
    scheduled.take("a")
    waiter = scheduled.wait("a", wait_s=float("inf"))
    scheduled.go_on(5)
    raised(waiter, LockHeld)


def test_of_too_many_released_ids_the_oldest_are_forgotten() -> None:
    remembered = Remembered(2)
    for number, some_id in enumerate(["1", "2", "1", "3"]):
        remembered.add("a", some_id, number)
    assert [remembered.has("a", some_id, 4.0) for some_id in "123"] == [True, False, True]
    assert len(remembered) == 2
    remembered.prune(602.0)
    assert [remembered.has("a", some_id, 602.0) for some_id in "13"] == [False, True]
    assert len(remembered) == 1


# --- memory -------------------------------------------------------------------------------------------------------------


def test_what_lapses_leaves_with_the_next_call(tables: Tables) -> None:
    for number in range(500):
        tables.take(f"lock {number}", lease_s=1 + number / 100)
    tables.hands.go_on(6)
    tables.take("another")

    state = tables.table._locks._state
    assert len(state._locks) == 1
    assert len(state._locks._heap) == 1


def test_a_table_that_is_used_for_long_does_not_grow(tables: Tables) -> None:
    state = tables.table._locks._state
    for _ in range(2000):
        lock = tables.take("a", lease_s=600, request=f"r{tables.hands.now}")
        tables.renew("a", lock.id, 600)
        tables.release("a", lock.id)
        tables.hands.go_on(2)
    assert len(state._locks._heap) <= SLACK + 2
    assert len(state._released) <= 301
    assert len(state._refused) <= 301
    assert state._lines == {}


def test_renewals_leave_one_entry_a_lock() -> None:
    leases = Leases(by_name, [known("a", "1", 10)])
    for until in range(11, 1000):
        leases.put(known("a", "1", until))
        assert leases.lapsed(until - 1) == []
    assert len(leases._heap) == 1
    assert leases.lapsed(999) == [known("a", "1", 999)]
    assert len(leases) == len(leases._heap) == 0


def test_leases_end_in_order_whatever_was_done_to_them() -> None:
    dice, leases = random.Random(7), Leases(by_name)
    plain: dict[str, int] = {}
    for now in range(3000):
        name, until = str(dice.randrange(40)), now + dice.randrange(1, 50)
        if dice.random() < 0.2:
            leases.pop(name)
            plain.pop(name, None)
        else:
            leases.put(known(name, "1", until))
            plain[name] = until
        ended = {lock.name for lock in leases.lapsed(now)}
        assert ended == {name for name, until in plain.items() if until <= now}
        plain = {name: until for name, until in plain.items() if until > now}
        assert len(leases._heap) <= 2 * 40 + SLACK + 1


def test_held_locks_that_lapse_leave() -> None:
    now = Hands(0.0)
    held = Held(now)
    for number in range(100):
        held.add(known(f"lock {number}", "1", number + 1))
    now.go_on(99)
    held.add(known("b", "1", 200))
    assert repr(held) == "<Held 2 locks>"


# --- words --------------------------------------------------------------------------------------------------------------

HELD = known("network/blue", "i", 1.0, holder="job 7", node="n1")
ERRORS: list[LockError] = [
    LockHeld(HELD, ahead=2),
    LockUnavailable(),
    NotRebuilt(),
    NotTheSpeaker(),
    NotTheSpeaker("n3"),
    FencesUsedUp(),
    LimitReached("locks", 3),
    BadLockRequest(),
    NoName(),
    BadEpoch(),
    NotHeld("a", "i"),
    LockLost("a", "i", fence=7),
    AlreadyReleased("a", "r"),
    TakenOver("a", "r"),
    LockUnknown("a", "r"),
]


def test_every_error_is_among_these() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LockError)}
    assert kinds - {LockError} == {type(error) for error in ERRORS}


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_survives_pickling_with_what_it_carries(error: LockError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert isinstance(error, SlotkeeperError)
    assert str(error)


def test_the_texts_of_the_reference() -> None:
    assert str(LockHeld(HELD)) == "lock network/blue is held by job 7 on n1 until 2026-01-01T00:00:00Z"
    assert str(LockHeld(replace(HELD, holder="", node=""))) == "lock network/blue is held until 2026-01-01T00:00:00Z"
    assert str(NotRebuilt()) == "the cluster lock table is not rebuilt from the nodes yet"
    assert str(NoName()) == "a lock needs a name"
    assert str(NotTheSpeaker("n3")) == "n3 speaks for the cluster: ask again"


def test_values_compare_by_content() -> None:
    assert known("a", "1", 5.0) == known("a", "1", 5.0)
    assert known("a", "1", 5.0).left_s(3.0) == 2.0
    assert known("a", "1", 5.0).left_s(6.0) == 0.0
    assert known("a", "1", 5.0).acquired_at == THEN
    assert Request("a") == Request("a", lease_s=0)


def test_a_table_tells_its_state(tables: Tables) -> None:
    tables.drop()
    assert repr(tables.table).endswith("Table not rebuilt generation=1 epoch=0 waiting=0>")


def test_locks_need_neither_click_nor_starlette() -> None:
    code = "import sys, slotkeeper.locktable; sys.exit(any(m in sys.modules for m in ('click', 'rich', 'starlette')))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
