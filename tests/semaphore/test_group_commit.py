"""What callers of one client ask meanwhile leaves together: one batch in flight, of bounded size, each with its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import cqlserver
import pytest
from contract.clients import some_owner
from cqlserver import Late, Request, invalid
from eventually import soon
from semaphorerows import seen
from servedstore import Behind, driven, served

from slotkeeper.database import StatementRejected, Store
from slotkeeper.database.batch import MOST_WRITES
from slotkeeper.owner import Owner, OwnerTooLong
from slotkeeper.semaphore import AsyncClient, Client, domain_id
from slotkeeper.semaphore.plan import MOST_BYTES

LATE_S = 0.005


@pytest.fixture
def behind() -> Iterator[Behind]:
    """A scripted server with a partition behind it."""
    with served(("127.0.0.1",)) as behind:
        yield behind


@pytest.fixture
def store(behind: Behind) -> Iterator[Store]:
    """The real driver in front of it."""
    with driven(behind) as store:
        yield store


@pytest.fixture
def name(behind: Behind) -> str:
    """A semaphore with room for all."""
    with Client(behind.store) as client:
        client.create("s", 250, 250)
    return "s"


class Traffic:
    """Counts the transactions that are on their way at once, and lets each take a while."""

    def __init__(self, behind: Behind) -> None:
        self._behind, self.now, self.most = behind, 0, 0
        behind.server.on_lwt = self._came

    def _came(self, _: Request) -> Late:
        self.now += 1
        self.most = max(self.most, self.now)
        return Late(LATE_S, self._goes)

    def _goes(self, request: Request) -> cqlserver.Answer:
        self.now -= 1
        return self._behind.commit(request)


async def together(behind: Behind, client: AsyncClient, name: str, *calls: Any) -> list[Any]:
    """Make calls while a batch is on its way, and return their answers."""
    gate, plug = Event(), some_owner()
    await client.describe(name)
    behind.server.script(Late(gate, behind.commit))
    first = asyncio.ensure_future(client.try_acquire(name, plug))
    await soon(lambda: not behind.server.script_left)
    tasks = [asyncio.ensure_future(call) for call in calls]
    for _ in range(5):
        await asyncio.sleep(0)
    gate.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


def size_of(request: Request) -> int:
    """Add up the bytes of a batch's values, as far as owners and clients choose them."""
    texts = (value for statement in request.statements for value in statement.values if isinstance(value, str))
    return sum(len(text.encode()) for text in texts)


def test_what_comes_while_a_batch_is_on_its_way_leaves_in_the_next_one(behind: Behind, store: Store, name: str) -> None:
    async def core() -> None:
        async with AsyncClient(store) as client:
            holds = await together(behind, client, name, *(client.try_acquire(name, some_owner()) for _ in range(60)))
            assert len({hold.token for hold in holds}) == 60
            assert len(behind.server.lwts) == 2
            await together(behind, client, name, *(hold.release() for hold in holds))
            assert len(behind.server.lwts) <= 5

    asyncio.run(core())
    assert all(len(request.statements) <= MOST_WRITES for request in behind.server.lwts)


def test_tasks_of_one_client_have_one_batch_in_flight(behind: Behind, store: Store, name: str) -> None:
    traffic, tasks, rounds = Traffic(behind), 64, 5

    async def cycle(client: AsyncClient) -> None:
        for _ in range(rounds):
            async with client.hold(name, some_owner()):
                pass

    async def core() -> None:
        async with AsyncClient(store) as client:
            await asyncio.gather(*(cycle(client) for _ in range(tasks)))

    asyncio.run(core())
    assert traffic.most == 1
    assert len(behind.server.lwts) < 2 * tasks * rounds / 10


def test_threads_of_one_client_have_one_batch_in_flight(behind: Behind, store: Store, name: str) -> None:
    traffic, threads, rounds = Traffic(behind), 32, 5
    with Client(store) as client, ThreadPoolExecutor(threads) as pool:

        def cycle(_: int) -> None:
            for _ in range(rounds):
                with client.hold(name, some_owner()):
                    pass

        list(pool.map(cycle, range(threads)))
        assert client.holders(name) == []
    assert traffic.most == 1
    assert len(behind.server.lwts) < 2 * threads * rounds / 3


def test_batch_of_many_bytes_is_split(behind: Behind, store: Store, name: str) -> None:
    async def core() -> None:
        owners = [Owner("w" * 4000, "run-1", number) for number in range(40)]
        async with AsyncClient(store) as client:
            holds = await together(behind, client, name, *(client.try_acquire(name, owner) for owner in owners))
            assert {hold.owner for hold in holds} == set(owners)

    asyncio.run(core())
    assert all(size_of(request) <= MOST_BYTES for request in behind.server.lwts)
    assert len(behind.server.lwts) < 20, "they left one by one"


def test_owner_that_no_row_can_name_is_refused_before_it_joins_a_batch(behind: Behind, store: Store, name: str) -> None:
    async def core() -> None:
        poison = Owner("é" * 2048, "run-1", 1)
        async with AsyncClient(store) as client:
            calls = [client.try_acquire(name, owner) for owner in (some_owner(), poison, some_owner())]
            first, refused, second = await together(behind, client, name, *calls)
            assert first.token != second.token
            assert isinstance(refused, OwnerTooLong)
            assert (refused.size, refused.text) == (len(str(poison).encode()), str(poison))
            for call in (client.release(name, poison), client.cancel(name, poison), client.token_of(name, poison)):
                with pytest.raises(OwnerTooLong, match="4096"):
                    await call

    asyncio.run(core())
    assert len(behind.server.lwts) == 2


def test_owner_as_long_as_may_be_can_hold(behind: Behind, store: Store, name: str) -> None:
    owner = Owner("w" * (4096 - len("4080::run-1:1")), "run-1", 1)
    assert len(str(owner)) == 4096
    with Client(store) as client:
        hold = client.acquire(name, owner)
        assert client.holders(name)[0].owner_id == str(owner)
        assert hold.release()


def test_rejected_batch_is_answered_one_by_one(behind: Behind, store: Store, name: str) -> None:
    """The server's rejection names no statement: only who is rejected alone is to blame."""
    poison, others = some_owner(), [some_owner() for _ in range(4)]

    def rejects(request: Request) -> cqlserver.Answer:
        named = {value for statement in request.statements for value in statement.values}
        return invalid("poison") if str(poison) in named else behind.commit(request)

    async def core() -> None:
        async with AsyncClient(store) as client:
            behind.server.on_lwt = rejects
            owners = [*others[:2], poison, *others[2:]]
            answers = await together(behind, client, name, *(client.try_acquire(name, owner) for owner in owners))
            rejected = answers.pop(2)
            assert isinstance(rejected, StatementRejected)
            assert "poison" in str(rejected)
            assert [hold.owner for hold in answers] == others
            behind.server.on_lwt = behind.commit
            released = await together(behind, client, name, *(client.release(name, owner) for owner in others))
            assert released == [True] * 4

    asyncio.run(core())
    holders = seen(behind.store, domain_id("default"), name).holders
    assert not holders.keys() & {str(owner) for owner in [poison, *others]}
