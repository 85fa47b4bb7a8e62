"""What every locker promises, whoever grants: one list, in each room."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise

import pytest
from eventually import until
from lockcontract.lockrooms import LockRoom

from slotkeeper.locktable import (
    MAX_LEASE_S,
    BadLockRequest,
    Lock,
    Locker,
    LockHeld,
    LockLost,
    NoName,
    NotHeld,
)

PATIENCE_S = 30.0


def refused(locker: Locker, name: str, wait_s: float = 0.0) -> LockHeld:
    """Ask for a lock that is held, and return what is told."""
    with pytest.raises(LockHeld) as caught:
        locker.acquire(name, wait_s=wait_s)
    return caught.value


def held(locker: Locker, name: str) -> list[Lock]:
    return [lock for lock in locker.locks() if lock.name == name]


# --- holding --------------------------------------------------------------------------------------------------------------


def test_one_holds_and_the_other_is_told_who(lock_room: LockRoom, name: str) -> None:
    lock = lock_room.ann.acquire(name, holder="job 7")

    told = refused(lock_room.bob, name)

    assert (told.lock.id, told.lock.holder, told.lock.name, told.lock.fence) == (lock.id, "job 7", name, lock.fence)
    assert str(told).startswith(f"lock {name} is held by job 7 on ")
    assert lock_room.bob.acquire(f"{name}/other").id != lock.id


def test_the_same_client_asking_twice_is_two(lock_room: LockRoom, name: str) -> None:
    lock_room.ann.acquire(name, holder="ann")

    assert refused(lock_room.ann, name).lock.holder == "ann"


def test_a_release_frees_and_names_its_lock(lock_room: LockRoom, name: str) -> None:
    lock = lock_room.ann.acquire(name)

    assert not lock_room.bob.release(name, "another id")
    assert not lock_room.bob.release(f"{name}/other", lock.id)
    refused(lock_room.bob, name)
    assert lock_room.bob.release(name, lock.id)  # whoever knows the id
    assert not lock_room.ann.release(lock)
    after = lock_room.bob.acquire(name)
    assert after.id != lock.id
    assert not lock_room.ann.release(lock)
    assert held(lock_room.ann, name)[0].id == after.id


def test_fences_only_grow(lock_room: LockRoom, name: str) -> None:
    fences = []
    for each in (lock_room.ann, lock_room.bob) * 3:
        lock = each.acquire(name)
        fences.append(lock.fence)
        assert each.renew(lock, 60).fence == lock.fence
        each.release(lock)

    assert all(before < after for before, after in pairwise(fences))


def test_the_list_has_what_is_held_by_name(lock_room: LockRoom, name: str) -> None:
    names = [f"{name}/{each}" for each in ("b", "ä", "a b")]
    made = {each: lock_room.ann.acquire(each, holder=f"of {each}") for each in names}

    listed = [lock for lock in lock_room.bob.locks() if lock.name.startswith(f"{name}/")]

    assert [lock.name for lock in listed] == sorted(names)
    assert {lock.name: (lock.id, lock.holder) for lock in listed} == {
        each: (lock.id, f"of {each}") for each, lock in made.items()
    }
    for lock in listed:
        assert 20 < lock.until - time.monotonic() <= 32
        lock_room.bob.release(lock)


@pytest.mark.parametrize("good", ["a", "network/blue", "Zürich ☃", "a?b=c&d#e%2F", "x" * 256])
def test_names_may_have_any_printable_character(lock_room: LockRoom, name: str, good: str) -> None:
    lock = lock_room.ann.acquire(good)

    assert held(lock_room.bob, good)[0].id == lock.id
    assert lock_room.bob.release(good, lock.id)


@pytest.mark.parametrize(("bad", "error"), [("", NoName), ("a\nb", BadLockRequest), ("x" * 257, BadLockRequest)])
def test_what_is_no_name_is_refused(lock_room: LockRoom, bad: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        lock_room.ann.acquire(bad)


# --- leases ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked_s", "given_s"), [(0.0, 30.0), (-5.0, 30.0), (60.0, 60.0), (3600.0, MAX_LEASE_S)])
def test_leases_are_given_as_they_are_asked_for(lock_room: LockRoom, name: str, asked_s: float, given_s: float) -> None:
    before = time.monotonic()
    lock = lock_room.ann.acquire(name, lease_s=asked_s)
    after = time.monotonic()

    assert before + given_s - lock_room.slack_s <= lock.until <= after + given_s
    lock_room.ann.release(lock)


def test_a_lease_that_ends_frees_the_lock(lock_room: LockRoom, name: str) -> None:
    first = lock_room.ann.acquire(name, lease_s=lock_room.short_s)

    second = lock_room.bob.acquire(name, wait_s=PATIENCE_S)

    assert time.monotonic() >= first.until
    assert second.fence > first.fence
    assert not lock_room.ann.release(first)
    with pytest.raises(NotHeld):
        lock_room.ann.renew(first, 60)
    assert held(lock_room.ann, name)[0].id == second.id


def test_a_renewed_lock_outlasts_its_first_lease(lock_room: LockRoom, name: str) -> None:
    first = lock_room.ann.acquire(name, lease_s=lock_room.short_s)

    renewed = lock_room.ann.renew(first, 60)
    until(lambda: time.monotonic() > first.until + lock_room.slack_s)

    assert (renewed.id, renewed.fence) == (first.id, first.fence)
    assert renewed.until - first.until > 50
    assert refused(lock_room.bob, name).lock.id == first.id
    assert lock_room.ann.release(renewed)


def test_what_was_released_is_not_renewed(lock_room: LockRoom, name: str) -> None:
    lock = lock_room.ann.acquire(name)
    lock_room.ann.release(lock)

    with pytest.raises(NotHeld):
        lock_room.ann.renew(lock, 60)


# --- waiting --------------------------------------------------------------------------------------------------------------


def test_who_waits_gets_what_is_released(lock_room: LockRoom, name: str) -> None:
    first = lock_room.ann.acquire(name)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(lock_room.bob.acquire, name, wait_s=PATIENCE_S)
        until(lambda: refused(lock_room.ann, name).ahead == 1)
        lock_room.ann.release(first)
        second = waiting.result(PATIENCE_S)

    assert second.fence > first.fence


def test_a_wait_that_ends_leaves_no_place_behind(lock_room: LockRoom, name: str) -> None:
    lock = lock_room.ann.acquire(name)
    began = time.monotonic()

    told = refused(lock_room.bob, name, wait_s=0.3)

    assert 0.3 <= time.monotonic() - began < 15
    assert told.lock.id == lock.id
    assert refused(lock_room.bob, name).ahead == 0
    lock_room.ann.release(lock)
    assert lock_room.ann.acquire(name).fence > lock.fence


def test_first_come_first_served(lock_room: LockRoom, name: str) -> None:
    lock, served = lock_room.ann.acquire(name), list[int]()
    clients = (lock_room.bob, lock_room.ann, lock_room.bob)

    def wait(number: int) -> None:
        mine = clients[number].acquire(name, wait_s=PATIENCE_S)
        served.append(number)
        clients[number].release(mine)

    waiting: list[Future[None]] = []
    with ThreadPoolExecutor() as threads:
        for number in range(len(clients)):
            waiting.append(threads.submit(wait, number))
            until(lambda number=number: refused(lock_room.ann, name).ahead == number + 1)  # type: ignore[misc]
        lock_room.ann.release(lock)
        for each in waiting:
            each.result(PATIENCE_S)

    assert served == [0, 1, 2]


def test_nobody_is_inside_with_another(lock_room: LockRoom, name: str) -> None:
    inside: list[tuple[float, float, int]] = []

    def work(locker: Locker) -> None:
        for _ in range(3):
            lock = locker.acquire(name, wait_s=PATIENCE_S * 2)
            began = time.monotonic()
            assert began < lock.until
            inside.append((began, time.monotonic(), lock.fence))
            assert locker.release(lock)

    threads = [threading.Thread(target=work, args=(each,)) for each in (lock_room.ann, lock_room.bob) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(inside) == 12
    inside.sort()
    assert all(before[1] <= after[0] and before[2] < after[2] for before, after in pairwise(inside))
    assert held(lock_room.ann, name) == []


# --- repeated requests ----------------------------------------------------------------------------------------------------


def test_a_request_repeated_under_its_id_means_the_same_as_one(lock_room: LockRoom, name: str) -> None:
    first = lock_room.ann.acquire(name, request=f"mine for {name}")

    again = lock_room.bob.acquire(name, request=f"mine for {name}")

    assert (again.id, again.fence) == (first.id, first.fence)
    refused(lock_room.bob, name)
    assert lock_room.ann.release(first)
    assert not lock_room.bob.release(again)


def test_a_request_is_given_up_by_its_id(lock_room: LockRoom, name: str) -> None:
    lock_room.ann.acquire(name, request=f"mine for {name}")

    assert lock_room.bob.release_request(name, f"mine for {name}")
    assert held(lock_room.ann, name) == []
    assert not lock_room.bob.release_request(name, f"mine for {name}")


# --- holds ----------------------------------------------------------------------------------------------------------------


def test_a_hold_gives_the_lock_back_on_every_way_out(lock_room: LockRoom, name: str) -> None:
    def fail() -> None:
        with lock_room.ann.hold(name):
            raise LookupError

    with lock_room.ann.hold(name, holder="job 7") as hold:
        told = refused(lock_room.bob, name)
        assert (told.lock.id, told.lock.fence) == (hold.id, hold.fence)
    with pytest.raises(LookupError):
        fail()
    assert held(lock_room.bob, name) == []


def test_a_hold_is_renewed_in_the_background(lock_room: LockRoom, name: str) -> None:
    lease_s = lock_room.short_s + 2 * lock_room.slack_s  # so that a busy machine loses none of it
    with lock_room.ann.hold(name, lease_s=lease_s) as hold:
        first = hold.trusted_until
        until(lambda: hold.trusted_until > first + lock_room.short_s)
        assert not hold.is_lost
        refused(lock_room.bob, name)


def test_a_hold_that_is_taken_away_is_lost(lock_room: LockRoom, name: str) -> None:
    hold = lock_room.ann.hold(name, lease_s=lock_room.short_s)
    assert lock_room.bob.release(name, hold.id)

    assert hold.lost.wait(PATIENCE_S)
    steps: list[Callable[[], object]] = [hold.check, hold.release]
    for step in steps:
        with pytest.raises(LockLost):
            step()
    assert lock_room.bob.acquire(name).fence > hold.fence
