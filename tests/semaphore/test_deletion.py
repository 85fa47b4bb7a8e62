"""Deleting a semaphore: nothing of it is granted meanwhile or later, and a deletion that broke off is gone on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest
from contract.clients import owner_in, some_owner
from readystore import ready_store

from slotkeeper.database import (
    Batch,
    BlockingPort,
    Outcome,
    Row,
    Slice,
    Store,
    delete,
    drive,
    insert,
    update,
)
from slotkeeper.database.port import Pending
from slotkeeper.owner import FREE
from slotkeeper.semaphore import BeingDeleted, Client, NoSuchSemaphore, SemaphoreHeld, deletion
from slotkeeper.semaphore import core as cores
from slotkeeper.semaphore.rows import (
    CLOSED,
    METADATA,
    QUEUE,
    TOKENS,
    owner_key,
    token_key,
    waiter_key,
    waiting_owner_key,
)

BOUND_S = 20.0


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """An embedded store: what is tested here is the order of batches, the same on every store."""
    with ready_store() as store:
        yield store


@pytest.fixture
def client(store: Store) -> Iterator[Client]:
    """A client of a domain of its own."""
    with Client(store, domain=uuid4()) as client:
        yield client


@pytest.fixture
def other(store: Store, client: Client) -> Iterator[Client]:
    """Another process."""
    with Client(store, domain=client.domain_id, timeout_s=BOUND_S / 2) as other:
        yield other


def rows(store: Store, domain: UUID, name: str, bucket: int = 0) -> list[Row]:
    """Read a bucket as it is stored."""
    return store.read(TOKENS, (domain, name, bucket), (Slice(),), serial=True)


class Interrupted(Exception):
    """The deleter's process has ended."""


class Mortal(BlockingPort):
    """A port whose process ends before one of its commits."""

    def __init__(self, store: Store, commits: int) -> None:
        super().__init__(store)
        self._left = commits

    def begin_commit(self, batch: Batch) -> Pending[Outcome]:
        """Commit, or end."""
        if self._left == 0:
            raise Interrupted
        self._left -= 1
        return super().begin_commit(batch)


class Watched(BlockingPort):
    """A port on which somebody else acts before one of its commits."""

    def __init__(self, store: Store, when: int, act: Callable[[], object]) -> None:
        super().__init__(store)
        self._left, self._act = when, act

    def begin_commit(self, batch: Batch) -> Pending[Outcome]:
        """Let the other one act, then commit."""
        self._left -= 1
        if self._left == -1:
            self._act()
        return super().begin_commit(batch)


def remove(client: Client, port: BlockingPort, name: str, *, force: bool = False) -> bool:
    """Delete through a port of the test's."""
    return drive(deletion.remove(port, client.describe(name), force=force, deadline=port.now() + BOUND_S))


def test_deletion_leaves_only_what_keeps_late_batches_out(client: Client, store: Store) -> None:
    """The closed row and the queue row stay: an attempt that was planned before must not land in a namesake."""
    made = client.create("sem", 4, 2)
    for bucket in (0, 1):
        who = owner_in(bucket, 2)
        client.try_acquire("sem", who)
        client.release("sem", who)
    client.delete("sem")
    for bucket in (0, 1):
        left = {row["type"]: row for row in rows(store, client.domain_id, "sem", bucket)}
        assert set(left) == {QUEUE, CLOSED}
        assert left[CLOSED]["holder"] == str(made.created_ms)
        assert int(str(left[QUEUE]["holder"])) == 1, "a ticket is burned: every batch planned before is refused"
    assert store.read(METADATA, (client.domain_id,), (Slice(),), serial=True) == []


@pytest.mark.parametrize("free_first", [0, 1, 3])
@pytest.mark.parametrize("held", [49, 50, 51, 99])
def test_forced_deletion_of_a_large_bucket_leaves_no_owner_behind(
    client: Client, store: Store, held: int, free_first: int
) -> None:
    """It takes several batches. An owner's row without its token's would keep the owner out of every namesake."""
    client.create("sem", 105, 105)
    owners = [some_owner() for _ in range(held + free_first)]
    for who in owners:
        client.try_acquire("sem", who)
    for who in owners[:free_first]:
        client.release("sem", who)
    client.delete("sem", force=True)
    assert {row["type"] for row in rows(store, client.domain_id, "sem")} == {QUEUE, CLOSED}
    client.create("sem", 105, 105)
    assert all(client.try_acquire("sem", who) for who in owners)


@pytest.mark.parametrize("waiting", [1, 49, 50, 51, 120])
def test_deletion_takes_the_line_away(client: Client, store: Store, waiting: int) -> None:
    client.create("sem", 1)
    client.try_acquire("sem", some_owner())
    partition = (client.domain_id, "sem", 0)
    for ticket in range(1, waiting + 1):
        who = str(some_owner())
        waiter = insert(waiter_key(ticket, "they"), {"holder": who, "updated_time": 1}, absent=True)
        place = insert(waiting_owner_key(who), {"holder": f"{ticket:019d}"})
        store.commit(Batch(TOKENS, partition, (waiter, place)))
    client.delete("sem", force=True)
    assert {row["type"] for row in rows(store, client.domain_id, "sem")} == {QUEUE, CLOSED}


@pytest.mark.parametrize("commits", range(7))
def test_deletion_that_broke_off_is_gone_on_with(client: Client, other: Client, store: Store, commits: int) -> None:
    """Two buckets: closed one by one, cleared one by one, and the metadata row last."""
    client.create("sem", 4, 2)
    owners = [owner_in(bucket, 2) for bucket in (0, 1, 1)]
    for who in owners:
        client.try_acquire("sem", who)
    if commits < 5:
        with pytest.raises(Interrupted):
            remove(client, Mortal(store, commits), "sem", force=True)
        assert other.describe("sem").size == 4, "the metadata row goes last"
        client.delete("sem", force=True)
    else:
        assert remove(client, Mortal(store, commits), "sem", force=True) is True
    with pytest.raises(NoSuchSemaphore):
        other.describe("sem")
    for bucket in (0, 1):
        assert {row["type"] for row in rows(store, client.domain_id, "sem", bucket)} == {QUEUE, CLOSED}


@pytest.mark.parametrize("commits", [2, 3])
def test_half_deleted_semaphore_grants_nothing_and_says_so(
    client: Client, other: Client, store: Store, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "BEING_DELETED_PAUSE_S", BOUND_S)
    client.create("sem", 4, 2)
    holder = owner_in(0, 2)
    client.try_acquire("sem", holder)
    other.try_acquire("sem", owner_in(1, 2))
    with pytest.raises(Interrupted):
        remove(client, Mortal(store, commits), "sem", force=True)
    for bucket in (0, 1):
        with pytest.raises(BeingDeleted) as caught:
            other.try_acquire("sem", owner_in(bucket, 2))
        assert caught.value.semaphore == "sem"
    client.delete("sem", force=True)


def test_grant_planned_before_the_bucket_was_closed_is_refused(client: Client, other: Client, store: Store) -> None:
    """Another process knows a bucket with room, and does not look before it grants: the burned ticket is its guard."""
    client.create("sem", 2)
    other.try_acquire("sem", some_owner())
    client.delete("sem", force=True)
    with pytest.raises(NoSuchSemaphore):
        other.try_acquire("sem", some_owner())
    assert {row["type"] for row in rows(store, client.domain_id, "sem")} == {QUEUE, CLOSED}


def test_deletion_refused_for_a_late_holder_opens_the_semaphore_again(
    client: Client, other: Client, store: Store
) -> None:
    """Somebody acquires after the first look and before the bucket is closed."""
    client.create("sem", 2)
    late = some_owner()
    port = Watched(store, 0, lambda: other.try_acquire("sem", late))
    with pytest.raises(SemaphoreHeld) as caught:
        remove(client, port, "sem")
    assert caught.value.held == 1
    assert CLOSED not in {row["type"] for row in rows(store, client.domain_id, "sem")}
    assert other.try_acquire("sem", some_owner()) is not None
    assert other.release("sem", late) is True


def test_deletion_refused_for_a_late_holder_keeps_an_earlier_namesake_closed(
    client: Client, other: Client, store: Store
) -> None:
    first = client.create("sem", 2)
    client.delete("sem")
    client.create("sem", 2)
    port = Watched(store, 0, lambda: other.try_acquire("sem", some_owner()))
    with pytest.raises(SemaphoreHeld):
        remove(client, port, "sem")
    (closed,) = (row for row in rows(store, client.domain_id, "sem") if row["type"] == CLOSED)
    assert closed["holder"] == str(first.created_ms)


def test_release_between_closing_and_clearing_is_no_obstacle(client: Client, other: Client, store: Store) -> None:
    """Cadence's release knows no closed row: it frees the token row that the deletion has just read."""
    client.create("sem", 2)
    holder = str(some_owner())
    hold = other.try_acquire("sem", holder)
    assert hold is not None
    freed = update(
        token_key(hold.token), {"holder": FREE, "updated_time": hold.fence + 1}, expect={"holder": (holder,)}
    )
    gone = delete(owner_key(holder))
    port = Watched(store, 1, lambda: store.commit(Batch(TOKENS, (client.domain_id, "sem", 0), (freed, gone))))
    assert remove(client, port, "sem", force=True) is True
    assert {row["type"] for row in rows(store, client.domain_id, "sem")} == {QUEUE, CLOSED}


def test_deletion_leaves_a_bucket_closed_that_another_deleter_closed(
    client: Client, other: Client, store: Store
) -> None:
    """That one may be clearing it: nothing may be granted there until it is done."""
    client.create("sem", 4, 2)
    for bucket in (0, 1):
        other.try_acquire("sem", owner_in(bucket, 2))
    with pytest.raises(Interrupted):
        remove(client, Mortal(store, 2), "sem", force=True)
    with pytest.raises(SemaphoreHeld):
        client.delete("sem")
    for bucket in (0, 1):
        assert CLOSED in {row["type"] for row in rows(store, client.domain_id, "sem", bucket)}
    client.delete("sem", force=True)


def test_second_deletion_says_that_there_is_none(client: Client, other: Client) -> None:
    client.create("sem", 1)
    client.delete("sem")
    with pytest.raises(NoSuchSemaphore):
        other.delete("sem")


def test_namesake_with_other_buckets_is_as_good_as_new(client: Client, other: Client) -> None:
    for size, bucket_size in ((2, 1), (6, 2), (1, 1), (9, 3)):
        made = client.create("sem", size, bucket_size)
        owners = [owner_in(bucket, made.buckets) for bucket in range(made.buckets)]
        holds = [other.try_acquire("sem", who) for who in owners]
        assert all(holds)
        client.delete("sem", force=True)


def test_created_times_of_namesakes_grow_though_the_clock_stands_still(client: Client) -> None:
    times = []
    for _ in range(5):
        times.append(client.create("sem", 1).created_ms)
        client.delete("sem")
    assert times == sorted(set(times))
