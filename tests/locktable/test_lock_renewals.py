"""Renewing locks: the lease is counted anew, for who holds it, and never shortened."""

from __future__ import annotations

import pytest
from locktables import Scheduled, Tables, known

from slotkeeper.locktable import Held, NotHeld, NotRebuilt


def test_a_renewal_counts_the_lease_anew(tables: Tables) -> None:
    lock = tables.take("a", lease_s=30)
    tables.hands.go_on(20)

    renewed = tables.renew("a", lock.id, 30)

    assert renewed.lock.until == tables.hands.now + 30
    assert renewed.lasts_s == 30
    assert (renewed.lock.id, renewed.lock.fence, renewed.lock.acquired_at) == (lock.id, lock.fence, lock.acquired_at)
    tables.hands.go_on(29)
    assert tables.locks() == [renewed.lock]
    tables.hands.go_on(1)
    assert tables.locks() == []


def test_a_renewal_is_shown_on_the_wall_clock(scheduled: Scheduled) -> None:
    lock = scheduled.take("a", lease_s=30)
    scheduled.go_on(20)
    renewed = scheduled.do(scheduled.locks.renew("a", lock.id, 30)).lock
    assert (renewed.expires_at - lock.expires_at).total_seconds() == 20


def test_a_renewal_is_for_ten_minutes_at_most(tables: Tables) -> None:
    lock = tables.take("a")
    assert tables.renew("a", lock.id, 3600).lock.until == tables.hands.now + 600


def test_a_renewal_that_comes_late_shortens_nothing(tables: Tables) -> None:
    lock = tables.take("a", lease_s=60)
    renewed = tables.renew("a", lock.id, 10)
    assert renewed.lock == lock
    assert renewed.lasts_s == 60


def test_only_the_current_id_is_renewed(tables: Tables) -> None:
    lock = tables.take("a")
    tables.release("a", lock.id)
    tables.take("a")
    for name, lock_id in (("a", lock.id), ("never held", "x")):
        with pytest.raises(NotHeld) as refused:
            tables.renew(name, lock_id)
        assert (refused.value.name, refused.value.id) == (name, lock_id)


def test_a_dropped_table_does_not_say_that_a_lock_is_not_held(tables: Tables) -> None:
    lock = tables.take("a")
    tables.drop()
    with pytest.raises(NotRebuilt):
        tables.renew("a", lock.id)


def test_a_renewal_through_another_node_is_held_there(tables: Tables) -> None:
    lock = tables.take("a", node="n1")
    assert tables.renew("a", lock.id).lock.node == "n1"
    assert tables.renew("a", lock.id, node="n2").lock.node == "n2"
    assert [held.node for held in tables.locks()] == ["n2"]


def test_a_renewed_lock_makes_the_line_wait(scheduled: Scheduled) -> None:
    lock = scheduled.take("a", lease_s=10)
    waiter = scheduled.wait("a")
    scheduled.go_on(9)
    scheduled.do(scheduled.locks.renew("a", lock.id, 10))

    scheduled.go_on(9.9)
    assert not waiter.is_done
    scheduled.go_on(0.1)

    assert waiter.value.waited_s == pytest.approx(19)


def test_a_renewal_outlives_a_rebuild_from_what_was_read_before_it() -> None:
    held = Held(lambda: 0.0)
    held.add(known("a", "1", 30))
    held.add(known("a", "1", 10))
    held.add(known("a", "2", 20))
    assert [(lock.id, lock.until) for lock in held.locks()] == [("1", 30), ("2", 20)]
