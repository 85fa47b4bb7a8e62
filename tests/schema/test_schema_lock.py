"""The lock under which the schema changes: lost answers, dead holders, and an operator who breaks it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from slotkeeper import schema
from slotkeeper.database import (
    Applied,
    Batch,
    BlockingPort,
    Outcome,
    Store,
    Unavailable,
    Unknown,
    drive,
    insert,
    update,
)
from slotkeeper.schema import CONTROL, PARTITION, Terms, Version

pytestmark = pytest.mark.usefixtures("first_only")

V1 = Version(0, 1)
LOCK = ("lock", "migration")
Commit = Callable[[Batch], Outcome]


class Faulty:
    """A store whose commits go through a fault first. It counts them."""

    def __init__(self, store: Store, fault: Callable[[int, Batch, Commit], Outcome]) -> None:
        self._store, self._fault, self.commits = store, fault, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Batch) -> Outcome:
        self.commits += 1
        return self._fault(self.commits, batch, self._store.commit)

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_result(self.commit(batch))
        return future


def hold(store: Store, holder: str = "bob #1", *, lease_s: int | None = None) -> None:
    """Take the lock as another process would."""
    held = update(LOCK, {"holder": holder}, expect={"holder": ("", None)}, ttl_s=lease_s)
    assert store.commit(Batch(CONTROL, PARTITION, (held,))) == Applied()


def forget_version(store: Store) -> None:
    """Leave the tables, and take away the record of them."""
    gone = {"value": None}
    row = update(("version", "current"), gone, expect={"value": ("0.1",)})
    assert store.commit(Batch(CONTROL, PARTITION, (row,))) == Applied()


@pytest.fixture
def interrupted(moved: Store, port: BlockingPort) -> Store:
    """A store on which setup got to the end but for the record."""
    schema.setup(moved, port=port)
    forget_version(moved)
    return moved


@pytest.mark.parametrize("lost", range(1, 7))
@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_changes_nothing_about_the_end(
    moved: Store, clock: Any, moved_port: Any, lost: int, answered: bool, applied: bool
) -> None:
    def fault(count: int, batch: Batch, commit: Commit) -> Outcome:
        if count != lost:
            return commit(batch)
        if applied:
            commit(batch)
        return Unknown(TimeoutError(), answered=answered)

    store = Faulty(moved, fault)

    report = schema.setup(store, port=moved_port(store))

    assert store.commits == 7  # lock, seed, two tables, record, release, and the one that was repeated
    assert report.after == V1
    status = schema.status(moved)
    assert (status.state, len(status.history), status.locked_by) == ("current", 1, None)


def test_an_outcome_that_stays_unknown_ends_in_an_error_that_says_so(moved: Store, moved_port: Any) -> None:
    store = Faulty(moved, lambda count, batch, commit: Unknown(TimeoutError(), answered=False))

    with pytest.raises(schema.SchemaUnsettled, match="Run the command again") as raised:
        schema.setup(store, port=moved_port(store))

    assert isinstance(raised.value.__cause__, TimeoutError)
    assert schema.setup(moved, port=moved_port(moved)).after == V1


def test_a_dead_holder_is_taken_over_when_its_lease_ends(interrupted: Store, port: Any, clock: Any) -> None:
    hold(interrupted, lease_s=60)
    told: list[str] = []
    start = clock.ms

    report = schema.setup(interrupted, port=port, terms=Terms(progress=told.append))

    assert report.after == V1
    assert told[0] == "waiting for bob #1, who is changing the schema"
    assert 60_000 <= clock.ms - start < 62_000


def test_who_waits_finds_it_done_and_needs_no_lock(interrupted: Store, moved_port: Any, clock: Any) -> None:
    hold(interrupted)

    def finished_by_bob(count: int, batch: Batch, commit: Commit) -> Outcome:
        if count == 2:
            done = update(("version", "current"), {"value": "0.1"}, expect={"value": (None,)})
            interrupted.commit(Batch(CONTROL, PARTITION, (done,)))
        return commit(batch)

    store = Faulty(interrupted, finished_by_bob)

    report = schema.setup(store, port=moved_port(store))

    assert (report.before, report.after, report.statements, store.commits) == (None, V1, (), 2)
    assert schema.status(interrupted).locked_by == "bob #1"


def test_the_wait_for_a_living_holder_has_an_end(interrupted: Store, port: Any, clock: Any) -> None:
    hold(interrupted)
    start = clock.ms

    with pytest.raises(schema.SchemaLocked, match="force-unlock") as raised:
        schema.setup(interrupted, port=port, terms=Terms(wait_s=20))

    assert raised.value.holder == "bob #1"
    assert 20_000 <= clock.ms - start < 22_000


def test_a_holder_that_lost_its_lock_stops_before_the_next_statement(moved: Store, port: Any) -> None:
    def broken(message: str) -> None:
        if message == "created table semaphore_metadata":
            schema.force_unlock(moved, who="carol", port=port)

    with pytest.raises(schema.SchemaLockLost, match="goes on where this one stopped"):
        schema.setup(moved, port=port, terms=Terms(progress=broken))

    assert moved.layout("semaphore_tokens") is None
    assert schema.status(moved).state == "missing"
    assert schema.setup(moved, port=port).after == V1


def test_a_holder_whose_lease_ended_before_its_record_records_nothing(moved: Store, port: Any, clock: Any) -> None:
    def slow(message: str) -> None:
        if message == "created table semaphore_tokens":
            clock.ms += 91_000

    with pytest.raises(schema.SchemaLockLost) as raised:
        schema.setup(moved, port=port, terms=Terms(progress=slow))

    assert raised.value.holder is None
    assert schema.status(moved).history == ()


def test_each_statement_starts_with_a_whole_lease(moved: Store, port: Any, clock: Any) -> None:
    def slow(message: str) -> None:
        clock.ms += 89_000

    assert schema.setup(moved, port=port, terms=Terms(progress=slow)).after == V1


def test_a_release_that_fails_leaves_the_lock_to_its_lease(moved: Store, moved_port: Any, clock: Any) -> None:
    def fault(count: int, batch: Batch, commit: Commit) -> Outcome:
        if count == 6:  # lock, seed, two tables, record, release
            raise Unavailable
        return commit(batch)

    store, told = Faulty(moved, fault), list[str]()

    assert schema.setup(store, port=moved_port(store), terms=Terms(progress=told.append)).after == V1

    assert told[-1].startswith("the lock was not given back, and ends within 90 s")
    assert schema.status(moved).locked_by is not None
    clock.ms += 90_000
    assert schema.status(moved).locked_by is None


def test_breaking_the_lock_tells_whose_it_was_and_is_kept_in_the_history(store: Store) -> None:
    schema.setup(store)
    hold(store, "bob pid 7 #1")

    assert schema.force_unlock(store, who="carol") == "bob pid 7 #1"

    status = schema.status(store)
    assert status.locked_by is None
    change = status.history[-1]
    assert (change.action, change.broken) == ("unlock", "bob pid 7 #1")
    assert change.who.startswith("carol #")


def test_breaking_a_lock_that_nobody_holds_changes_nothing(store: Store) -> None:
    assert schema.force_unlock(store) is None  # nothing there at all
    schema.setup(store)
    before = schema.status(store)

    assert schema.force_unlock(store) is None
    assert schema.status(store) == before


def test_a_lock_that_changes_hands_while_it_is_broken_is_left_alone(moved: Store, port: Any, moved_port: Any) -> None:
    schema.setup(moved, port=port)
    hold(moved)

    def handed_over(count: int, batch: Batch, commit: Commit) -> Outcome:
        taken = update(LOCK, {"holder": "dave #2"}, expect={"holder": ("bob #1",)})
        commit(Batch(CONTROL, PARTITION, (taken,)))
        return commit(batch)

    with pytest.raises(schema.SchemaLocked) as raised:
        schema.force_unlock(moved, port=moved_port(Faulty(moved, handed_over)))

    assert raised.value.holder == "dave #2"
    assert schema.status(moved).locked_by == "dave #2"


def test_a_lost_answer_does_not_hide_whose_lock_was_broken(
    moved: Store, clock: Any, port: Any, moved_port: Any
) -> None:
    schema.setup(moved, port=port)
    hold(moved)
    clock.ms += 1

    def fault(count: int, batch: Batch, commit: Commit) -> Outcome:
        outcome = commit(batch)
        return Unknown(TimeoutError()) if count == 1 else outcome

    assert schema.force_unlock(moved, port=moved_port(Faulty(moved, fault))) == "bob #1"
    assert [change.action for change in schema.status(moved).history] == ["update", "unlock"]


def test_a_damaged_version_is_named(moved: Store, port: Any) -> None:
    schema.setup(moved, port=port)
    odd = update(("version", "current"), {"value": "v1"}, expect={"value": ("0.1",)})
    moved.commit(Batch(CONTROL, PARTITION, (odd, insert(("version", "note"), {"value": "x"}))))

    with pytest.raises(schema.SchemaConflict, match="'v1' is no schema version"):
        drive(schema.check(BlockingPort(moved), None))
