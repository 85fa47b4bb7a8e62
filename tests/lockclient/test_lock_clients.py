"""The two faces on a real node: holds that are renewed, lost, given back; ends; cancelled and interrupted callers."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from eventually import soon, until
from locknodes import RunningNode, client_of, new_database, running_node
from lossyproxy import LossyProxy

from slotkeeper.locktable import LockHeld, LockLost, NotHeld
from slotkeeper.locktable.remote import AsyncLockClient, ForkedLockClient, LockClient, LockClientClosed
from slotkeeper.web.failures import BadAddress, BadToken


def holders(node: RunningNode, name: str) -> list[str]:
    with client_of(node) as client:
        return [lock.holder for lock in client.locks() if lock.name == name]


# --- threads --------------------------------------------------------------------------------------------------------------


def test_a_hold_is_renewed_while_its_holder_is_busy(node: RunningNode, name: str) -> None:
    with client_of(node) as client, client.hold(name, lease_s=1.5) as hold:
        began, first = time.monotonic(), hold.trusted_until
        until(lambda: hold.trusted_until > first + 1.5)
        assert not hold.is_lost
        assert holders(node, name) == [""]
        assert time.monotonic() - began > 1.5
    assert holders(node, name) == []


def test_a_hold_that_somebody_else_releases_is_lost(node: RunningNode, name: str) -> None:
    with client_of(node) as client:
        hold = client.hold(name, lease_s=2)
        assert client.release(name, hold.id)
        assert hold.lost.wait(10)
        with pytest.raises(LockLost):
            hold.check()
        with pytest.raises(LockLost):
            hold.release()


def test_a_hold_whose_node_is_gone_is_lost_before_its_lease_ends(tmp_path: Path) -> None:
    with running_node(new_database(tmp_path)) as node:
        client = client_of(node, timeout_s=1).open()
        hold = client.hold("a", lease_s=2)
        node.stop()
        assert hold.lost.wait(10)
        assert time.monotonic() <= hold.trusted_until + 0.5
        with pytest.raises(LockLost), hold:
            pass
        client.close()


def test_the_body_of_a_hold_keeps_its_error(node: RunningNode, name: str) -> None:
    with client_of(node) as client, pytest.raises(LookupError), client.hold(name):
        raise LookupError
    assert holders(node, name) == []


def test_another_node_of_the_list_is_asked(node: RunningNode, name: str) -> None:
    with (
        LockClient(f"http://127.0.0.1:9, {node.url}") as client,
        client.hold(name, holder="job 7", lease_s=1.5) as hold,
    ):
        first = hold.trusted_until
        until(lambda: hold.trusted_until > first)
        assert holders(node, name) == ["job 7"]
        assert client.status().node.node == "n1"


def test_what_one_client_holds_another_one_waits_for(node: RunningNode, name: str) -> None:
    with client_of(node) as ann, client_of(node) as bob:
        lock = ann.acquire(name, holder="ann")
        with pytest.raises(LockHeld, match="is held by ann on n1"):
            bob.acquire(name)
        assert not bob.release(name, "other")
        threading.Timer(0.1, ann.release, args=(lock,)).start()
        assert bob.acquire(name, wait_s=20).fence > lock.fence


def test_what_was_released_is_not_renewed(node: RunningNode, name: str) -> None:
    with client_of(node) as client:
        lock = client.acquire(name)
        assert client.release(lock)
        with pytest.raises(NotHeld):
            client.renew(lock, 5)


def test_a_request_of_ones_own_is_repeated_and_given_up(node: RunningNode, name: str) -> None:
    with client_of(node) as client:
        first, again = (client.acquire(name, request="mine") for _ in range(2))
        assert first.id == again.id
        assert client.release_request(name, "mine")
        assert not client.release_request(name, "mine")


def test_a_client_ends_clearly(node: RunningNode) -> None:
    client = client_of(node)
    with pytest.raises(LockClientClosed):
        client.locks()
    assert client.open() is client.open()
    assert client.is_open
    assert repr(client) == f"<LockClient {node.url} open>"
    client.close()
    client.close()
    assert repr(client).endswith("not open>")
    with pytest.raises(LockClientClosed):
        client.hold("a")


def test_a_client_does_not_work_in_a_forked_child(node: RunningNode) -> None:
    def child(client: LockClient, told: multiprocessing.SimpleQueue[str]) -> None:
        try:
            client.locks()
        except Exception as error:
            told.put(type(error).__name__)

    with client_of(node) as client:
        context = multiprocessing.get_context("fork")
        told: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
        process = context.Process(target=child, args=(client, told))
        process.start()
        assert told.get() == ForkedLockClient.__name__
        process.join()
        assert client.locks() is not None
    assert process.pid != os.getpid()


def test_wrong_addresses_and_tokens_are_refused_at_once() -> None:
    with pytest.raises(BadAddress):
        LockClient("n1:8049")
    with pytest.raises(BadAddress):
        LockClient("")
    with pytest.raises(BadAddress):
        LockClient([])
    with pytest.raises(BadToken):
        LockClient(token="two words")


# --- tasks ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _no_blocking() -> Iterator[BlockBuster]:
    with blockbuster_ctx() as blockbuster:
        yield blockbuster


@pytest.mark.usefixtures("_no_blocking")
async def test_nothing_blocks_the_loop(node: RunningNode, name: str) -> None:
    async with AsyncLockClient(node.url) as client:
        async with client.hold(name, lease_s=1.5) as hold:
            first = hold.trusted_until
            await soon(lambda: hold.trusted_until > first)
            renewed = await client.renew(hold.lock, 5)
            assert renewed.until > hold.trusted_until
            with pytest.raises(LockHeld):
                await client.acquire(name, wait_s=0.05)
            assert name in {lock.name for lock in await client.locks()}
            assert (await client.status()).cluster == "cluster"
        assert await client.release_request(name, "unknown") is False
        assert await client.release(await client.acquire(name))


async def test_a_hold_is_renewed_while_the_loop_is_blocked(node: RunningNode, name: str) -> None:
    async with AsyncLockClient(node.url) as client, client.hold(name, lease_s=1.5) as hold:
        first = hold.trusted_until
        until(lambda: hold.trusted_until > first + 1.5)  # this loop does not come round meanwhile
        assert not hold.is_lost


async def test_an_async_hold_that_is_taken_away_is_lost(node: RunningNode, name: str) -> None:
    async def held(client: AsyncLockClient) -> None:
        async with client.hold(name, lease_s=2) as hold:
            await client.release(name, hold.id)
            await asyncio.wait_for(hold.lost.wait(), 10)

    async with AsyncLockClient(node.url) as client:
        with pytest.raises(LockLost):
            await held(client)


async def test_a_cancelled_wait_leaves_no_place_behind(node: RunningNode, name: str) -> None:
    async with AsyncLockClient(node.url) as client:
        lock = await client.acquire(name)
        waiting = asyncio.ensure_future(client.acquire(name, wait_s=60))
        await soon(lambda: node.node.speaking.table.waiting == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await soon(lambda: node.node.speaking.table.waiting == 0, bound_s=3)
        assert await client.release(lock)
    assert holders(node, name) == []


async def test_a_cancelled_request_that_was_granted_is_taken_back(
    node: RunningNode, proxy: LossyProxy, name: str
) -> None:
    """It is cancelled as its answer is lost: nobody knows of the grant but the node."""
    async with AsyncLockClient(proxy.url) as client:
        asking: list[asyncio.Task[object]] = []
        loop, lost = asyncio.get_running_loop(), asyncio.Event()

        def cancel() -> None:
            asking[0].cancel()
            lost.set()

        proxy.upon_loss = lambda: loop.call_soon_threadsafe(cancel)
        proxy.lose_answers = 1
        asking.append(asyncio.ensure_future(client.acquire(name)))
        await lost.wait()
        with pytest.raises(asyncio.CancelledError):
            await asking[0]
    assert holders(node, name) == []


async def test_an_async_client_ends_clearly(node: RunningNode) -> None:
    client = AsyncLockClient(node.url)
    with pytest.raises(LockClientClosed):
        await client.locks()
    assert await client.open() is await client.open()
    await client.close()
    await client.close()
    with pytest.raises(LockClientClosed):
        await client.acquire("a")
