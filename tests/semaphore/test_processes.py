"""Processes that crash, stall and are interrupted, and the others that wait for their slots."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from contract.clients import some_owner
from eventually import until
from semaphorerows import Seen, seen
from slotprocess import Process, process

from slotkeeper import schema
from slotkeeper.database import Store, open_store
from slotkeeper.semaphore import Client, domain_id
from slotkeeper.semaphore.planned import PROVISIONAL_S

LEASE_S = 2
Record = Callable[[str, object], None]


class Place:
    """A semaphore of one slot in a database that other processes open too."""

    def __init__(self, url: str, store: Store, stack: ExitStack) -> None:
        self.url, self.store, self._stack = url, store, stack
        self.name = f"gpu {uuid4()}"
        self.client = stack.enter_context(Client(store))
        self.client.create(self.name, 1)

    def process(self, face: str = "threads", owner: object = None, lease_s: int | None = None) -> Process:
        """Start a process."""
        started = process(face, self.url, self.name, owner or some_owner(), lease_s)
        return self._stack.enter_context(started)

    def processes(self, count: int) -> list[Process]:
        """Start processes."""
        return [self.process() for _ in range(count)]

    def seen(self) -> Seen:
        """Read the rows."""
        return seen(self.store, domain_id("default"), self.name)

    def waiting(self, count: int) -> None:
        """Wait until so many stand in line."""
        until(lambda: len(self.seen().line) == count)


def _placed(url: str) -> Iterator[Place]:
    store = open_store(url)
    try:
        schema.setup(store)
        with ExitStack() as stack:
            yield Place(url, store, stack)
    finally:
        store.close()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Place]:
    """A file that processes of one host share."""
    yield from _placed(f"sqlite:///{tmp_path / 'slots.db'}")


@pytest.fixture
def on_cassandra(cassandra_url: str) -> Iterator[Place]:
    """A keyspace."""
    yield from _placed(cassandra_url)


def gaps_between_processes(place: Place, rounds: int, waited_s: float = 0.0) -> list[float]:
    """Hand a slot to and fro, and return how long after the release began the other had it, in milliseconds."""
    holder, heir = place.processes(2)
    holder.does("acquire")
    gaps = []
    for _ in range(rounds):
        heir.tell("acquire")
        place.waiting(1)
        time.sleep(waited_s)
        released, acquired = holder.does("release"), heir.hear()
        assert released["released"] is True
        gaps.append(1000 * (acquired["at"] - released["began"]))
        holder, heir = heir, holder
    print(f"{place.store}, after {waited_s:g} s: median {statistics.median(gaps):.0f} ms, most {max(gaps):.0f} ms")
    return gaps


def test_waiter_gets_in_soon_after_the_release(on_cassandra: Place, record_property: Record) -> None:
    gaps = gaps_between_processes(on_cassandra, rounds=7)
    record_property("median_gap_ms", round(statistics.median(gaps)))
    assert max(gaps) < 2000


def test_waiter_of_long_standing_gets_in_soon_after_the_release(on_sqlite: Place, record_property: Record) -> None:
    """Who has waited for long is looked for at the slowest pace."""
    gaps = gaps_between_processes(on_sqlite, rounds=1, waited_s=1.5)
    record_property("median_gap_ms", round(statistics.median(gaps)))
    assert max(gaps) < 2000


def test_killed_holder_is_followed_when_its_lease_ends(on_cassandra: Place) -> None:
    holder, heir = on_cassandra.process(lease_s=LEASE_S), on_cassandra.process()
    first = holder.does("acquire")
    heir.tell("acquire")
    on_cassandra.waiting(1)
    killed_at = time.monotonic()
    holder.signal(signal.SIGKILL)
    acquired = heir.hear()
    assert acquired["fence"] > first["fence"]
    assert acquired["at"] - killed_at < LEASE_S + 2


def test_killed_first_of_three_waiters_does_not_hold_up_the_second(on_cassandra: Place) -> None:
    holder, *waiters = on_cassandra.processes(4)
    holder.does("acquire")
    for place, waiter in enumerate(waiters, start=1):
        waiter.tell("acquire")
        on_cassandra.waiting(place)
    waiters[0].signal(signal.SIGKILL)
    released = holder.does("release")
    second = waiters[1].hear()
    assert second["at"] - released["at"] < PROVISIONAL_S + 2
    assert len(on_cassandra.seen().line) == 1
    waiters[1].does("release")
    assert waiters[2].hear()["did"] == "acquire"


def test_holder_that_stalled_beyond_its_lease_changes_nothing_and_is_told(on_cassandra: Place) -> None:
    stalled, heir = on_cassandra.process(lease_s=LEASE_S), on_cassandra.process()
    old = stalled.does("acquire")
    heir.tell("acquire")
    on_cassandra.waiting(1)
    stalled.signal(signal.SIGSTOP)
    new = heir.hear()
    assert new["fence"] > old["fence"]
    before = on_cassandra.seen()
    stalled.signal(signal.SIGCONT)
    assert stalled.does("release by fence")["released"] is False
    assert stalled.does("renew")["error"] == "StaleFence"
    assert stalled.does("release")["error"] == "LeaseLost"
    assert stalled.does("lost")["lost"] is True
    assert on_cassandra.seen() == before
    assert heir.does("release")["released"] is True


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_interrupted_waiter_leaves_no_row_behind(on_cassandra: Place, face: str) -> None:
    holder, waiter = on_cassandra.process(), on_cassandra.process(face)
    holder.does("acquire")
    waiter.tell("acquire")
    on_cassandra.waiting(1)
    waiter.signal(signal.SIGINT)
    assert waiter.hear()["did"] == "interrupted"
    assert on_cassandra.seen().line == []
    assert waiter.popen.wait(10) == 0
    assert holder.does("release")["released"] is True
    assert on_cassandra.seen().holders == {}


@pytest.mark.parametrize("face", ["threads", "tasks"])
def test_interrupted_holder_gives_its_slot_back(on_sqlite: Place, face: str) -> None:
    holder = on_sqlite.process(face)
    assert holder.does("work")["did"] == "work"
    assert len(on_sqlite.seen().holders) == 1
    holder.signal(signal.SIGINT)
    assert holder.hear()["did"] == "interrupted"
    assert on_sqlite.seen().holders == {}
