"""The loop of a node: nothing in it blocks, whatever is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from locknodes import QUICK, new_database

from slotkeeper.database import open_store
from slotkeeper.locktable import LockHeld
from slotkeeper.locktable.remote import AsyncLockClient
from slotkeeper.locktable.service.running import LockServer, NodeSettings, serve
from slotkeeper.web.serving import bound


@pytest.fixture
def _no_blocking() -> Iterator[BlockBuster]:
    with blockbuster_ctx() as blockbuster:
        yield blockbuster


@pytest.mark.usefixtures("_no_blocking")
async def test_a_node_and_its_client_share_a_loop_that_never_blocks(tmp_path: Path) -> None:
    announced: asyncio.Future[tuple[LockServer, str]] = asyncio.get_running_loop().create_future()
    database = await asyncio.to_thread(new_database, tmp_path)
    store = await asyncio.to_thread(open_store, database)
    with closing(bound("127.0.0.1", 0)) as sock:
        settings = NodeSettings("n1", "loop", terms=QUICK, grace_s=2)
        serving = asyncio.ensure_future(
            serve(store, sock, settings, lambda server, url: announced.set_result((server, url)))
        )
        server, url = await announced
        async with AsyncLockClient(url) as client:
            lock = await client.acquire("a", wait_s=20)
            with pytest.raises(LockHeld):
                await client.acquire("a", wait_s=0.1)
            assert await client.renew(lock, 60)
            assert [each.name for each in await client.locks()] == ["a"]
            assert (await client.status()).speaks
            assert await client.release(lock)
        server.stop()
        await serving
    await asyncio.to_thread(store.close)
