"""Nodes on a real loop and a real database: what the schedules show holds there, too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from eventually import soon

from slotkeeper import schema
from slotkeeper.database import Store, open_store
from slotkeeper.locktable import LockHeld, LockUnavailable, Request
from slotkeeper.locktable.node import Answer, Message, Node, NodePort, Terms, Unreachable, open_node

BRIEF = Terms(speaker_lease_s=3, margin_s=0.2, ahead_s=1.0)


class Nodes:
    """Nodes of one cluster on one store. A node's address is its name, and a message a piece of JSON."""

    def __init__(self, store: Store) -> None:
        self.store, self.cluster = store, f"c-{uuid4()}"
        self.up: dict[str, Node] = {}

    async def carry(self, address: str, message: Message, timeout_s: float) -> Answer:
        if address not in self.up:
            raise Unreachable(address)
        heard = msgspec.json.decode(msgspec.json.encode(message), type=Message)
        try:
            answer = await asyncio.wait_for(self.up[address].answer(heard), timeout_s)
        except TimeoutError as error:
            raise Unreachable(address) from error
        return msgspec.json.decode(msgspec.json.encode(answer), type=Answer)

    async def start(self, name: str) -> Node:
        node = self.up[name] = open_node(name, self.cluster, name, self.store, self.carry, terms=BRIEF)
        await node.start()
        return node

    async def stop(self, name: str) -> None:
        await self.up[name].stop()
        await self.lost(name)

    async def lost(self, name: str) -> None:
        """Let a node be gone, as when its process is killed."""
        node = self.up.pop(name)
        assert isinstance(node.port, NodePort)
        await node.port.close()

    def speaker(self) -> Node | None:
        speaking = [node for node in self.up.values() if node.speaking.is_trusted and node.speaking.table.is_rebuilt]
        assert len(speaking) < 2
        return speaking[0] if speaking else None

    async def granting(self) -> Node:
        await soon(self.speaker)
        node = self.speaker()
        assert node is not None
        return node


@pytest.fixture
def anyio_backend() -> str:
    """Nodes run on asyncio."""
    return "asyncio"


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An embedded store with the tables."""
    path: Path = tmp_path_factory.mktemp("locks") / "locks.db"
    store = open_store(f"sqlite:///{path}")
    schema.setup(store)
    yield store
    store.close()


@pytest.fixture(params=["sqlite", "cassandra"])
def real_store(request: pytest.FixtureRequest) -> Store:
    """A store of either kind."""
    store: Store = request.getfixturevalue(f"{request.param}_store")
    return store


@asynccontextmanager
async def opened(store: Store, *names: str) -> AsyncIterator[Nodes]:
    nodes = Nodes(store)
    try:
        for name in names:
            await nodes.start(name)
        yield nodes
    finally:
        for name in list(nodes.up):
            with suppress(LockUnavailable):
                await nodes.stop(name)


async def test_locks_outlive_a_speaker_that_stops(real_store: Store) -> None:
    async with opened(real_store, "a", "b", "c") as nodes:
        speaker = await nodes.granting()
        other = next(node for node in nodes.up.values() if node is not speaker)
        await soon(lambda: other.known.speaker == speaker.me and len(speaker.members.others) == 2)
        own = await speaker.acquire(Request("own", lease_s=60))
        grant = await other.acquire(Request("x", holder="h", lease_s=60))

        await nodes.stop(speaker.me.node)
        after = await nodes.granting()

        assert {lock.id for lock in await after.locks()} == {own.lock.id, grant.lock.id}
        with pytest.raises(LockHeld, match="lock x is held by h"):
            await after.acquire(Request("x"))
        renewed = await after.renew("x", grant.lock.id, 60)
        assert renewed.lock.fence == grant.lock.fence
        assert await other.release("x", grant.lock.id)


async def test_a_killed_nodes_leases_end_before_anything_is_granted(real_store: Store) -> None:
    async with opened(real_store, "a") as nodes:
        speaker = await nodes.granting()
        grant = await speaker.acquire(Request("x", lease_s=4))
        await nodes.lost("a")
        await nodes.start("b")
        while True:
            after = await nodes.granting()
            with suppress(LockUnavailable):
                later = await after.acquire(Request("x"))
                break
        assert after.now() >= grant.lock.until
        assert later.lock.fence > grant.lock.fence


async def test_a_client_that_waits_gets_the_lock_at_the_release(real_store: Store) -> None:
    async with opened(real_store, "a", "b") as nodes:
        speaker = await nodes.granting()
        other = next(node for node in nodes.up.values() if node is not speaker)
        await soon(lambda: other.known.speaker == speaker.me)
        first = await speaker.acquire(Request("x"))
        waiting = asyncio.create_task(other.acquire(Request("x", wait_s=30)))
        await soon(lambda: speaker.speaking.table.waiting)

        await speaker.release("x", first.lock.id)

        assert (await waiting).lock.fence > first.lock.fence


async def test_an_error_in_the_background_is_logged(sqlite_store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise RuntimeError("a slip")

    async def endless() -> None:
        await asyncio.Event().wait()

    port = NodePort(sqlite_store, Nodes(sqlite_store).carry)
    with caplog.at_level(logging.ERROR):
        await port.begin(broken()).ended()
        await asyncio.sleep(0)
    assert "ended with an error" in caplog.text
    port.begin(endless())
    await port.close()
