"""What renewing costs: many holds in few transactions, nothing for a hold that has ended, and one thread while there is any."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import cast
from uuid import uuid4

import pytest
from contract.clients import some_owner
from countingstore import CountingStore
from eventually import soon, until
from hypothesis import given
from hypothesis import strategies as st
from readystore import ready_store

from slotkeeper.database import Store
from slotkeeper.semaphore import AsyncClient, AsyncHold, Client
from slotkeeper.semaphore.lease import Lease

HOLDS, LEASE_S = 100, 6


@pytest.fixture
def store() -> Iterator[Store]:
    """An embedded store with the tables."""
    with ready_store() as store:
        yield store


def lent(counted: CountingStore) -> Store:
    """Return the counting store as what it is: it passes everything on."""
    return cast(Store, counted)


def threads() -> list[str]:
    """Name the threads that renew leases."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("slotkeeper-leases")]


@pytest.mark.parametrize("begun_in_s", [0.0, 1.0], ids=["together", "one after the other"])
def test_leases_of_one_process_are_renewed_in_few_batches(store: Store, begun_in_s: float) -> None:
    asyncio.run(renewed_in_few_batches(CountingStore(store), begun_in_s))


def test_leases_of_one_process_are_renewed_in_few_batches_on_cassandra(cassandra_store: Store) -> None:
    asyncio.run(renewed_in_few_batches(CountingStore(cassandra_store), begun_in_s=0.0))


async def renewed_in_few_batches(counted: CountingStore, begun_in_s: float) -> None:
    """Hold many leases, and count what renewing each of them once costs."""

    async def acquired(pause_s: float) -> AsyncHold:
        await asyncio.sleep(pause_s)
        return await client.acquire("s", some_owner(), lease_s=LEASE_S)

    async with AsyncClient(lent(counted), domain=uuid4()) as client:
        await client.create("s", HOLDS)
        holds = await asyncio.gather(*(acquired(begun_in_s * number / HOLDS) for number in range(HOLDS)))
        before = {hold: hold.trusted_until or 0.0 for hold in holds}
        counted.count.reset()
        await soon(lambda: all((hold.trusted_until or 0.0) > before[hold] for hold in holds), bound_s=LEASE_S)
        assert counted.count.commits <= 10
        assert counted.count.reads <= 10
        assert len(threads()) == 1
        await asyncio.gather(*(hold.release() for hold in holds))


@given(
    began_at=st.floats(0, 1e7),
    lease_s=st.integers(2, 86_400),
    phase=st.floats(0, 1),
    other=st.floats(0, 1),
)
def test_renewal_is_due_at_a_beat_of_the_process_within_a_third_of_the_lease(
    began_at: float, lease_s: int, phase: float, other: float
) -> None:
    """Leases of one process are due together, and those of processes that began together are not."""
    lease, beat_s = Lease("s", "o", 1, lease_s, began_at=began_at), lease_s / 12
    due = lease.due_at(phase)
    assert began_at + lease_s / 4 - 1e-6 <= due <= began_at + lease_s / 3 + 1e-6
    off = (due - phase * beat_s) % beat_s
    assert min(off, beat_s - off) < 1e-5
    apart = abs(lease.due_at(other) - due) / beat_s
    assert abs(apart - abs(phase - other)) < 1e-3 or abs(apart + abs(phase - other) - 1) < 1e-3


@pytest.mark.parametrize("ends", ["released", "detached", "lost"])
def test_ended_hold_is_renewed_no_more(store: Store, ends: str) -> None:
    counted = CountingStore(store)
    with Client(lent(counted)) as client, Client(store) as other:
        client.create("s", 1)
        hold = client.acquire("s", some_owner(), lease_s=2)
        renewed_for = hold.trusted_until or 0.0
        until(lambda: (hold.trusted_until or 0.0) > renewed_for, bound_s=2)
        if ends == "released":
            assert hold.release()
        elif ends == "detached":
            hold.detach()
        else:
            assert other.release("s", hold.owner)
            until(hold.lost.is_set, bound_s=2)
        counted.count.reset()
        time.sleep(0.8)  # a renewal is due every 0.7 s
        assert (counted.count.commits, counted.count.reads) == (0, 0)


def test_thread_begins_with_the_first_lease_and_ends_with_the_client(store: Store) -> None:
    client = Client(store).open()
    client.create("s", 3)
    assert client.acquire("s", some_owner())
    assert threads() == []
    hold = client.acquire("s", some_owner(), lease_s=600)
    client.acquire("s", some_owner(), lease_s=600)
    assert len(threads()) == 1
    client.close()
    client.close()
    assert threads() == []
    hold.detach()
    assert threads() == []


def test_lease_that_a_closed_client_held_is_lost_when_its_count_ends(store: Store) -> None:
    """Nobody renews it any more, and no thread is there to say so: the count itself does."""
    with Client(store) as client:
        client.create("s", 1)
        hold = client.acquire("s", some_owner(), lease_s=2)
    assert not hold.is_lost
    until(lambda: hold.is_lost, bound_s=2)
    assert time.monotonic() >= (hold.trusted_until or 0.0)
    assert hold.lost.is_set()
    with Client(store) as client:
        assert client.try_acquire("s", some_owner()) is None, "it was told too late"
