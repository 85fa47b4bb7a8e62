"""What the reference's tests pin of its lock table, and what they leave open, through both faces."""

from __future__ import annotations

import doctest
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from locktables import Scheduled, Tables, known, raised, table

from slotkeeper import locktable, schema
from slotkeeper.database import open_store
from slotkeeper.locktable import AlreadyReleased, Held, LockHeld, NoName, NotHeld, NotRebuilt, Request, lease
from slotkeeper.locktable.direct import DirectLocks


def test_the_package_tells_a_story_that_runs() -> None:
    results = doctest.testmod(locktable)
    assert results.attempted > 0
    assert results.failed == 0


DOCUMENTED = (Path(__file__).parents[2] / "docs/locktable.md").read_text(encoding="utf-8").split("```python\n")[1:]


def example(beginning: str) -> str:
    """Return the documented example that begins so."""
    (found,) = [block.split("```")[0] for block in DOCUMENTED if block.startswith(beginning)]
    return found


def test_the_documented_table_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(example("from slotkeeper.locktable import"), {})
    assert capsys.readouterr().out.startswith("lock network/blue is held by job 7 until 20")


def test_the_documented_holds_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with closing(open_store(url)) as store:
        schema.setup(store)
    written: list[int] = []
    with DirectLocks(url) as locks:
        around = {"locks": locks, "work": [1, 2], "write": lambda part, fence: written.append(fence)}
        exec(example("with locks.hold"), around)
    exec(example("from slotkeeper.locktable.direct").replace("cassandra://host:9042/keyspace?local_dc=dc1", url), {})
    assert written[0] == written[1]
    assert int(capsys.readouterr().out) > 0


# --- what the reference's tests pin -------------------------------------------------------------------------------------


def test_acquire_is_refused_until_the_table_is_rebuilt(fresh: Tables) -> None:
    assert (fresh.is_rebuilt, fresh.generation, fresh.locks()) == (False, 0, [])
    with pytest.raises(NotRebuilt, match=r"^the cluster lock table is not rebuilt from the nodes yet$"):
        fresh.take("a")

    assert fresh.rebuild(0, []) == []
    assert fresh.is_rebuilt
    fresh.take("a")

    fresh.drop()
    assert (fresh.is_rebuilt, fresh.generation) == (False, 1)
    for name in ("a", "b"):
        with pytest.raises(NotRebuilt):
            fresh.take(name)


def test_acquire_excludes(tables: Tables) -> None:
    first = tables.take("a", node="n1", holder="one")

    with pytest.raises(LockHeld) as held:
        tables.take("a", node="n2", holder="two")
    assert held.value.lock == first
    tables.take("b", node="n2")

    assert tables.release("a", "another id") is None
    released = tables.release("a", first.id)
    assert released is not None
    assert released.node == "n1"
    assert tables.take("a").id != first.id


def test_acquire_waits_for_the_release(tables: Tables) -> None:
    first = tables.take("a")
    waiter = tables.wait("a", wait_s=5.0)
    assert not waiter.is_done()

    tables.release("a", first.id)

    assert waiter.grant().lock.id != first.id
    assert [lock.id for lock in tables.locks()] == [waiter.grant().lock.id]


def test_the_end_of_a_lease_frees_the_lock(scheduled: Scheduled) -> None:
    first = scheduled.take("a", lease_s=0.05)
    waiter = scheduled.wait("a", wait_s=2.0)

    scheduled.go_on(0.049)
    assert not waiter.is_done
    scheduled.go_on(0.001)

    assert waiter.value.lock.id != first.id
    assert waiter.value.waited_s == pytest.approx(0.05)


def test_the_end_of_a_lease_frees_the_lock_by_the_real_clock(face: str) -> None:
    import time

    with table(face, now=time.monotonic) as tables:
        tables.empty()
        first = tables.take("a", lease_s=0.05)
        assert tables.take("a", wait_s=2.0).id != first.id


def test_drop_answers_those_who_wait(tables: Tables) -> None:
    tables.take("a")
    waiters = [tables.wait("a"), tables.wait("a")]

    tables.drop()

    for waiter in waiters:
        with pytest.raises(NotRebuilt):
            waiter.grant()
    assert tables.waiting == 0


def test_rebuild_keeps_what_is_held_and_of_two_locks_the_one_that_lasts_longer(fresh: Tables) -> None:
    now = fresh.hands.now
    shorter, longer = known("a", "1", now + 60), known("a", "2", now + 120)

    assert fresh.rebuild(0, [shorter, longer, known("b", "3", now)]) == [shorter]

    assert fresh.locks() == [longer]
    with pytest.raises(LockHeld) as held:
        fresh.take("a")
    assert held.value.lock.id == "2"
    fresh.take("b")


@pytest.mark.parametrize(
    ("asked_s", "given_s"),
    [(0.0, 30.0), (3600.0, 600.0), (1.0, 1.0), (-1.0, 30.0), (1e-9, 1e-9), (600.0, 600.0), (float("inf"), 600.0)],
)
def test_lease(asked_s: float, given_s: float, tables: Tables) -> None:
    assert lease(asked_s) == given_s
    lock = tables.take("a", lease_s=asked_s)
    assert lock.until == tables.hands.now + given_s
    assert (lock.expires_at - lock.acquired_at).total_seconds() == pytest.approx(given_s, abs=1e-6)


def test_held_tells_what_has_not_lapsed_by_name() -> None:
    now = [100.0]
    held = Held(lambda: now[0])
    b, a, lapsed = known("b", "1", 200), known("a", "2", 200), known("c", "3", 100)
    for lock in (b, a, lapsed):
        held.add(lock)

    assert held.locks() == [a, b]
    assert held.remove("a", "another id") is None
    assert held.locks() == [a, b]
    assert held.remove("a", "2") == a
    assert held.locks() == [b]
    now[0] = 200.0
    assert held.locks() == []


def test_rebuild_of_an_older_generation_changes_nothing(fresh: Tables) -> None:
    generation = fresh.generation
    fresh.drop()

    assert fresh.rebuild(generation, [known("a", "1", fresh.hands.now + 60)]) is None

    assert not fresh.is_rebuilt
    assert fresh.locks() == []


def test_what_was_granted_outlives_the_drop(tables: Tables) -> None:
    short, long = tables.take("a", lease_s=0.03), tables.take("b")
    assert tables.granted() == [short, long]
    tables.drop()
    assert tables.granted() == [short, long]
    assert tables.locks() == []

    tables.hands.go_on(0.03)
    assert tables.granted() == [long]
    assert tables.rebuild(tables.generation, tables.granted()) == []
    assert tables.locks() == tables.granted() == [long]

    assert tables.release("b", long.id) == long
    assert tables.locks() == tables.granted() == []


def test_forget_of_a_former_grant_empties_granted(tables: Tables) -> None:
    lock = tables.take("a")
    tables.drop()

    tables.forget("a", lock.id)

    assert tables.granted() == []


def test_forget_after_a_rebuild_from_a_stale_node_frees_the_lock(tables: Tables) -> None:
    stale = known("a", "1", tables.hands.now + 60)
    tables.rebuild(tables.generation, [stale])

    tables.forget("a", "1")

    assert tables.locks() == []
    tables.take("a")


def test_forget_before_a_rebuild_from_a_stale_node_keeps_the_lock_out(fresh: Tables) -> None:
    fresh.forget("a", "1")
    fresh.rebuild(0, [known("a", "1", fresh.hands.now + 60), known("b", "2", fresh.hands.now + 60)])
    assert [lock.name for lock in fresh.locks()] == ["b"]


def test_what_was_released_does_not_come_back_from_a_stale_node(tables: Tables) -> None:
    lock = tables.take("a")
    tables.release("a", lock.id)
    tables.drop()

    tables.rebuild(tables.generation, [lock])

    assert tables.locks() == []


# --- what they leave open -----------------------------------------------------------------------------------------------


def test_a_lock_needs_a_name_before_all_else(fresh: Tables) -> None:
    with pytest.raises(NoName, match=r"^a lock needs a name$"):
        fresh.take("")


@pytest.mark.parametrize("wait_s", [0.0, -1.0])
def test_without_a_wait_there_is_one_look(wait_s: float, tables: Tables) -> None:
    tables.take("a")
    with pytest.raises(LockHeld):
        tables.take("a", wait_s=wait_s)
    assert tables.waiting == 0


def test_patience_ends_with_the_holder_as_it_is_then(scheduled: Scheduled) -> None:
    scheduled.take("a", lease_s=1.0)
    second, third = scheduled.wait("a", wait_s=60.0, holder="second"), scheduled.wait("a", wait_s=10.0)

    scheduled.go_on(9.999)
    assert not third.is_done
    scheduled.go_on(0.001)

    assert raised(third, LockHeld).lock == second.value.lock  # type: ignore[attr-defined]
    assert scheduled.locks.waiting == 0


def test_a_release_of_another_name_wakes_nobody(tables: Tables) -> None:
    tables.take("a")
    other = tables.take("b")
    waiter = tables.wait("a")

    tables.release("b", other.id)

    assert not waiter.is_done()
    tables.drop()


@pytest.mark.parametrize("is_looked_at", [True, False])
def test_the_holder_of_a_lapsed_lock_has_nothing_to_release(is_looked_at: bool, tables: Tables) -> None:
    lock = tables.take("a", lease_s=10)
    tables.hands.go_on(10)
    if is_looked_at:
        assert tables.locks() == []

    assert tables.release("a", lock.id) is None
    with pytest.raises(NotHeld):
        tables.renew("a", lock.id)


def test_a_lapsed_lock_goes_to_the_line_whoever_notices(tables: Tables) -> None:
    lock = tables.take("a", lease_s=10)
    waiter = tables.wait("a", holder="next", wait_s=100)
    tables.hands.go_on(10)

    assert tables.release("a", lock.id) is None

    assert [held.holder for held in tables.locks()] == ["next"]
    assert waiter.grant().waited_s == 10


def test_of_two_that_end_together_the_first_read_is_kept(fresh: Tables) -> None:
    until = fresh.hands.now + 60
    first, second, third = (known("a", lock_id, until) for lock_id in "zyx")
    assert fresh.rebuild(0, [first, second, third]) == [second, third]
    assert fresh.locks() == [first]


@pytest.mark.parametrize("order", [1, -1])
def test_one_lock_read_twice_is_one_and_lasts_as_its_later_end_says(order: int, fresh: Tables) -> None:
    before, renewed = known("a", "1", fresh.hands.now + 10), known("a", "1", fresh.hands.now + 30)
    other = known("a", "2", fresh.hands.now + 20)

    assert fresh.rebuild(0, [before, other, renewed][::order]) == [other]

    assert fresh.locks() == [renewed]


def test_a_released_id_is_remembered_for_ten_minutes(tables: Tables) -> None:
    stale = known("a", "1", tables.hands.now + 6000)
    tables.forget("a", "1")
    tables.hands.go_on(599.9)
    tables.rebuild(tables.generation, [stale])
    assert tables.locks() == []

    tables.hands.go_on(0.1)
    tables.rebuild(tables.generation, [stale])
    assert tables.locks() == [stale]


def test_an_id_is_a_random_uuid(tables: Tables) -> None:
    ids = [tables.take(name).id for name in "ab"]
    assert [UUID(each).version for each in ids] == [4, 4]
    assert ids[0] != ids[1]


def test_no_holder_has_a_lock_twice(tables: Tables) -> None:
    tables.take("a", node="n1", holder="me")
    with pytest.raises(LockHeld):
        tables.take("a", node="n1", holder="me")


def test_a_drop_keeps_two_former_locks_of_one_name(tables: Tables) -> None:
    now = tables.hands.now
    one, two = known("a", "1", now + 60), known("a", "2", now + 90)
    for lock in (one, two):
        tables.rebuild(tables.generation, [lock])
        tables.drop()

    assert tables.granted() == [one, two]


def test_a_forgotten_lock_goes_to_the_line(tables: Tables) -> None:
    lock = tables.take("a")
    waiter = tables.wait("a")

    tables.forget("a", lock.id)

    assert waiter.grant().lock.id != lock.id


def test_a_rebuild_of_a_table_with_a_line_serves_it(tables: Tables) -> None:
    tables.take("a")
    waiter = tables.wait("a")

    tables.rebuild(tables.generation, [])

    assert tables.locks() == [waiter.grant().lock]


# --- request ids --------------------------------------------------------------------------------------------------------


def test_a_repeated_request_gets_the_same_lock(tables: Tables) -> None:
    first = tables.acquire(Request("a", holder="me", lease_s=60, request="r1"))
    tables.hands.go_on(20)

    again = tables.acquire(Request("a", holder="me", lease_s=60, request="r1"))

    assert (first.again, again.again) == (False, True)
    assert again.lock == first.lock
    assert again.lasts_s == 40


def test_a_repeated_request_counts_the_lease_from_its_grant(tables: Tables) -> None:
    grant = tables.acquire(Request("a", lease_s=60, request="r1"))
    assert grant.lasts_s == 60
    tables.hands.go_on(60)
    assert tables.acquire(Request("a", lease_s=60, request="r1")).lock.id != grant.lock.id


def test_a_repeated_request_through_another_node_is_held_there(tables: Tables) -> None:
    first = tables.take("a", node="n1", request="r1")
    again = tables.take("a", node="n2", request="r1")
    assert (again.id, again.node) == (first.id, "n2")
    assert tables.locks() == [again]


def test_another_request_is_somebody_else(tables: Tables) -> None:
    tables.take("a", request="r1")
    with pytest.raises(LockHeld):
        tables.take("a", request="r2")
    assert tables.take("b", request="r1").name == "b"


def test_a_released_request_is_granted_no_more_for_ten_minutes(tables: Tables) -> None:
    lock = tables.take("a", request="r1")
    tables.release("a", lock.id)

    with pytest.raises(AlreadyReleased):
        tables.take("a", request="r1")
    tables.take("b", request="r1")
    tables.hands.go_on(600)
    tables.take("a", request="r1")


def test_a_lock_is_released_by_its_request(tables: Tables) -> None:
    lock = tables.take("a", request="r1")
    assert tables.release("a", request="r2") is None
    assert tables.release("a", request="r1") == lock
    with pytest.raises(AlreadyReleased):
        tables.take("a", request="r1")


def test_a_release_that_overtakes_its_request_stops_it(tables: Tables) -> None:
    assert tables.release("a", request="r1") is None
    with pytest.raises(AlreadyReleased):
        tables.take("a", request="r1")
    assert tables.locks() == []


def test_a_lock_released_by_its_request_is_not_told_to_who_rebuilds(tables: Tables) -> None:
    lock = tables.take("a", request="r1")
    tables.drop()

    tables.release("a", request="r1")

    assert tables.granted() == []
    tables.rebuild(tables.generation, [lock])
    assert tables.locks() == []
