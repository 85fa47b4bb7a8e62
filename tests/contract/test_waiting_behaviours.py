"""What is promised to those who stand in line, on both stores and through both clients."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any
from uuid import uuid4

import pytest
from contract.clients import some_owner
from contract.parties import BOUND_S, Parties, Party
from contract.timely import name, ours, parties, theirs, world
from countingstore import CountingStore
from eventually import until
from semaphorerows import Seen, seen

from slotkeeper.database import Batch, BlockingPort, drive
from slotkeeper.owner import Owner
from slotkeeper.semaphore import NotAcquired, WaitCancelled, domain_id, metadata, plan
from slotkeeper.semaphore.layout import BucketRef
from slotkeeper.semaphore.operations import Acquire
from slotkeeper.semaphore.planned import PROVISIONAL_S, Ask, Setting
from slotkeeper.semaphore.reading import look
from slotkeeper.semaphore.rows import TOKENS

__all__ = ["name", "ours", "parties", "theirs", "world"]  # fixtures

SOON_S = 2.0  # far longer than a hand-off takes, far shorter than any lease here


class Line:
    """A semaphore's line, as a test lets owners stand in it."""

    def __init__(self, parties: Parties, name: str) -> None:
        self.parties, self.name = parties, name
        self.places: dict[Owner, Future[Any]] = {}

    def seen(self) -> Seen:
        """Read the rows, which must agree."""
        return seen(self.parties.store, domain_id("default"), self.name)

    def join(self, party: Party, owner: Owner | None = None, **options: Any) -> Owner:
        """Let an owner stand in line, a new one at the end."""
        owner = owner or some_owner()
        self.places[owner] = party.begin("acquire", self.name, owner, **options)
        until(lambda: self.places[owner].done() or str(owner) in self.seen().line)
        return owner

    def dead(self, owner: Owner) -> Owner:
        """Let an owner stand in line whose process then dies."""
        port, ref = BlockingPort(self.parties.store), self._ref(owner)
        state = drive(look(port, ref, serial=True))
        planned = plan.plan(
            state, [Ask(Acquire(str(owner), wait=True))], Setting("dead", port.now(), port.wall_ms(), 7)
        )
        self.parties.store.commit(Batch(TOKENS, ref.partition, tuple(planned.writes)))
        assert str(owner) in self.seen().line
        return owner

    def _ref(self, owner: Owner) -> BucketRef:
        found = drive(metadata.read(BlockingPort(self.parties.store), domain_id("default"), self.name))
        return found.bucket_of_owner(str(owner))

    def admitted(self, owner: Owner, *, within_s: float = SOON_S) -> Any:
        """Wait until an owner got in, which must be soon."""
        hold = self.places[owner].result(within_s)
        assert (hold.owner, hold.again) == (owner, False)
        return hold

    def comes_to(self, holders: set[str]) -> None:
        """Wait until these hold slots and nobody waits, which must be soon."""
        until(lambda: (seen := self.seen()).holders.keys() == holders and not seen.line, bound_s=SOON_S)

    def still(self, *owners: Owner) -> None:
        """Check who still waits, in order."""
        assert self.seen().line == [str(owner) for owner in owners]
        assert not any(self.places[owner].done() for owner in owners)


@pytest.fixture
def line(parties: Parties, name: str) -> Line:
    """The line of the semaphore."""
    return Line(parties, name)


def test_line_is_first_come_first_served_across_processes(ours: Party, theirs: Party, line: Line, name: str) -> None:
    holder = ours.acquire(name, some_owner())
    owners = [line.join(party) for party in (ours, theirs, theirs, ours, theirs)]
    line.still(*owners)
    for place, owner in enumerate(owners):
        assert ours.do(holder.release)
        holder = line.admitted(owner)
        line.still(*owners[place + 1 :])
    assert ours.do(holder.release)
    assert line.seen().holders == {}


def test_slot_changes_hands_in_the_batch_that_releases_it(ours: Party, theirs: Party, line: Line, name: str) -> None:
    """At no moment is it free: nobody can barge in, and a crash between two steps loses nothing."""
    holder = ours.acquire(name, some_owner())
    owner = line.join(theirs)
    assert ours.do(holder.release)
    assert line.seen().holders.keys() == {str(owner)}
    assert line.seen().line == []
    assert line.admitted(owner).fence > holder.fence


def test_k_releases_admit_the_first_k(ours: Party, theirs: Party, parties: Parties) -> None:
    name = f"gpu {uuid4()}"
    ours.create(name, 3)
    line = Line(parties, name)
    holds = [ours.acquire(name, some_owner()) for _ in range(3)]
    owners = [line.join(party) for party in (theirs, ours, theirs, ours, theirs)]
    for released in [ours.begin("release", name, hold.owner) for hold in holds]:
        assert released.result(BOUND_S)
    assert {line.admitted(owner).token for owner in owners[:3]} == {1, 2, 3}
    line.still(*owners[3:])
    for owner in owners[3:]:
        assert ours.cancel(name, owner)


def test_newcomer_does_not_pass_the_line(ours: Party, theirs: Party, line: Line, name: str) -> None:
    holder = ours.acquire(name, some_owner())
    owner = line.join(theirs)
    assert ours.do(holder.release)
    assert ours.try_acquire(name, some_owner()) is None
    line.admitted(owner)


def test_wait_that_ends_leaves_no_row_behind(ours: Party, line: Line, name: str) -> None:
    ours.acquire(name, some_owner())
    owner = line.join(ours, wait_s=0.2)
    with pytest.raises(NotAcquired) as caught:
        line.places[owner].result(BOUND_S)
    assert (caught.value.semaphore, caught.value.owner_id, caught.value.waited_s) == (name, str(owner), 0.2)
    assert line.seen().line == []
    assert str(owner) not in line.seen().holders


@pytest.mark.parametrize("asks", ["ours", "theirs"])
def test_cancelled_wait_leaves_no_row_behind(ours: Party, theirs: Party, line: Line, name: str, asks: str) -> None:
    holder = ours.acquire(name, some_owner())
    first, second = line.join(ours), line.join(ours)
    assert {"ours": ours, "theirs": theirs}[asks].cancel(name, first) is True
    with pytest.raises(WaitCancelled) as caught:
        line.places[first].result(BOUND_S)
    assert caught.value.owner_id == str(first)
    line.still(second)
    assert theirs.cancel(name, first) is False
    assert ours.do(holder.release)
    line.admitted(second)


def test_wait_that_ends_while_a_slot_is_handed_over_keeps_it_or_gives_it_back(
    ours: Party, theirs: Party, line: Line, name: str
) -> None:
    for step in range(6):
        holder = ours.acquire(name, some_owner())
        owner = line.join(theirs, wait_s=0.1)
        time.sleep(0.07 + 0.008 * step)  # about when its patience ends
        assert ours.do(holder.release)
        error = line.places[owner].exception(BOUND_S)
        assert error is None or isinstance(error, NotAcquired)
        line.comes_to(set() if error else {str(owner)})
        assert theirs.release(name, owner) is (error is None)


# One owner, several callers


def test_owner_that_waits_twice_in_a_process_has_one_place_and_one_slot(ours: Party, line: Line, name: str) -> None:
    holder = ours.acquire(name, some_owner())
    owner = line.join(ours)
    twin = ours.begin("acquire", name, owner)
    other = line.join(ours)
    line.still(owner, other)
    assert ours.do(holder.release)
    assert (twin.result(SOON_S).token, line.admitted(owner).token) == (1, 1)
    line.still(other)
    assert ours.cancel(name, other)


def test_owner_that_asks_from_another_process_takes_over_its_place(
    ours: Party, theirs: Party, line: Line, name: str
) -> None:
    holder = ours.acquire(name, some_owner())
    first = line.join(ours, wait_s=0.6)
    behind = line.join(ours)
    before = ours.waiters(name)
    over = theirs.begin("acquire", name, first)
    until(lambda: ours.waiters(name)[0].client_id == theirs.client.client_id)
    after = ours.waiters(name)
    assert [(each.owner_id, each.ticket, each.since_ms) for each in after] == [
        (each.owner_id, each.ticket, each.since_ms) for each in before
    ]
    with pytest.raises(NotAcquired):
        line.places[first].result(BOUND_S)
    line.places[first] = over
    line.still(first, behind)
    assert ours.do(holder.release)
    line.admitted(first)
    line.still(behind)
    assert ours.cancel(name, behind)


# Seeing


def test_waiters_are_shown_in_order_with_who_and_since_when(ours: Party, theirs: Party, line: Line, name: str) -> None:
    ours.acquire(name, some_owner())
    assert ours.waiters(name) == []
    began_ms = time.time_ns() // 1_000_000
    owners = [line.join(party) for party in (ours, theirs)]
    seen = theirs.waiters(name)
    assert [(each.owner_id, each.position, each.bucket) for each in seen] == [
        (str(o), n, 0) for n, o in enumerate(owners, 1)
    ]
    assert [each.client_id for each in seen] == [ours.client.client_id, theirs.client.client_id]
    assert seen[0].ticket < seen[1].ticket
    assert all(began_ms - 1 <= each.since_ms <= time.time_ns() // 1_000_000 for each in seen)
    assert [ours.cancel(name, owner) for owner in owners] == [True, True]
    assert ours.waiters(name) == []


def test_waiting_caller_can_ask_why(ours: Party, theirs: Party, line: Line, name: str) -> None:
    hold = ours.acquire(name, some_owner(), lease_s=30)
    first, second = line.join(ours), line.join(theirs)
    standing = ours.standing(name, second)
    assert (standing.position, [each.owner_id for each in standing.holders]) == (2, [str(hold.owner)])
    assert 20 <= standing.next_lease_ends_in_s <= 30
    assert ours.standing(name, hold.owner) is None
    assert ours.cancel(name, first)
    assert ours.standing(name, second).position == 1
    assert ours.cancel(name, second)
    assert ours.do(hold.release)


# Processes that died, and leases that ended


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rows of the dead end after two seconds, and what is handed to them after one."""
    for constant, value in (
        ("line.WAITER_S", 2),
        ("plan.PROVISIONAL_S", 1),
        ("waiting.WAITER_S", 2),
        ("waiting.PROVISIONAL_S", 1),
        ("waiting.STAY_S", 0.5),
    ):
        monkeypatch.setattr(f"slotkeeper.semaphore.{constant}", value)


@pytest.mark.usefixtures("brisk")
def test_dead_waiter_leaves_the_line_and_the_living_stay(ours: Party, line: Line, name: str) -> None:
    holder = ours.acquire(name, some_owner())
    line.dead(some_owner())
    owner = line.join(ours)
    assert len(line.seen().line) == 2
    until(lambda: len(line.seen().line) == 1, bound_s=4)
    time.sleep(0.6)  # so that its own row would have ended too
    line.still(owner)
    assert ours.do(holder.release)
    line.admitted(owner)


@pytest.mark.usefixtures("brisk")
def test_slot_handed_to_a_dead_waiter_comes_back_within_seconds(
    ours: Party, theirs: Party, line: Line, name: str
) -> None:
    holder = ours.acquire(name, some_owner())
    dead = line.dead(some_owner())
    owner = line.join(theirs)
    assert ours.do(holder.release)
    assert line.seen().holders.keys() == {str(dead)}
    line.admitted(owner, within_s=1 + 1 + SOON_S)
    assert line.seen().leases == {}


def test_everyone_who_sees_a_free_slot_and_a_line_helps_its_head(
    ours: Party, theirs: Party, line: Line, name: str
) -> None:
    """A lease has ended and nobody's process polls: the newcomer grants the slot to who stands first."""
    theirs.acquire(name, some_owner(), lease_s=2).detach()
    head = line.dead(some_owner())
    until(lambda: line.seen().holders == {}, bound_s=4)
    assert ours.try_acquire(name, some_owner()) is None
    assert line.seen().holders.keys() == {str(head)}
    assert line.seen().leases[str(head)] <= PROVISIONAL_S


# What it costs


def test_one_poll_serves_all_waiters_of_a_process(parties: Parties, theirs: Party, name: str) -> None:
    counted = CountingStore(parties.store)
    ours, line = parties(store=counted), Line(parties, name)
    holder = theirs.acquire(name, some_owner())
    owners = [some_owner() for _ in range(40)]
    places = [ours.begin("acquire", name, owner) for owner in owners]
    until(lambda: len(line.seen().line) == len(owners))
    counted.count.reset()
    time.sleep(1.0)
    assert counted.count.commits == 0
    assert counted.count.reads <= 2 * 20, "more reads than one poll of two slices every 50 ms on average"
    assert counted.count.reads >= 2 * 2, "they look less often than every 250 ms and some"
    first = theirs.waiters(name)[0].owner_id
    assert theirs.do(holder.release)
    until(lambda: any(place.done() for place in places), bound_s=SOON_S)
    assert [str(place.result().owner) for place in places if place.done()] == [first]
    for each in theirs.waiters(name):
        theirs.begin("cancel", name, each.owner_id)
    until(lambda: all(place.done() for place in places))


def test_a_release_costs_no_more_for_many_waiters(parties: Parties) -> None:
    counted = CountingStore(parties.store)
    ours, count = parties(store=counted), parties.most
    name = f"gpu {uuid4()}"
    ours.create(name, 5)
    line = Line(parties, name)
    holds = [ours.acquire(name, some_owner()) for _ in range(5)]
    places = [ours.begin("acquire", name, some_owner()) for _ in range(count)]
    until(lambda: len(line.seen().line) == count)
    until(lambda: len(ours.waiters(name)) == count)
    counted.count.reset()
    assert ours.do(holds[0].release)
    until(lambda: any(place.done() for place in places), bound_s=SOON_S)
    time.sleep(0.3)  # what else the release sets off
    assert counted.count.commits <= 3
    assert sum(place.done() for place in places) == 1
    ours.delete(name, force=True)
    until(lambda: all(place.done() for place in places))
