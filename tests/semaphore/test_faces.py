"""The two clients: the same names, clear ends, no blocked loop, and what they look like in a log."""

from __future__ import annotations

import asyncio
import doctest
import importlib
import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from contract.clients import some_owner
from eventually import soon, until
from readystore import ready_store
from semaphorerows import seen

from slotkeeper import schema
from slotkeeper.database import ClosedError, Store, open_store
from slotkeeper.owner import Owner
from slotkeeper.semaphore import AsyncClient, AsyncSemaphore, Client, Hold, NotAcquired, Semaphore

DOCUMENTED = ["slotkeeper.semaphore", "slotkeeper.semaphore.client", "slotkeeper.semaphore.hold"]


@pytest.fixture
def store() -> Iterator[Store]:
    """An embedded store with the tables."""
    with ready_store() as store:
        yield store


def methods(kind: type) -> dict[str, inspect.Signature]:
    """Return the public methods of a class, as they are called."""
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(method) for name, method in found if not name.startswith("_")}


def named(signature: inspect.Signature) -> list[tuple[str, object, object]]:
    """Return what a caller has to know of a signature."""
    return [(each.name, each.kind, each.default) for each in signature.parameters.values()]


# Names


@pytest.mark.parametrize(("kind", "other"), [(Client, AsyncClient), (Semaphore, AsyncSemaphore)])
def test_both_faces_have_the_same_methods_with_the_same_parameters(kind: type, other: type) -> None:
    ours, theirs = methods(kind), methods(other)
    assert ours.keys() == theirs.keys()
    for name, signature in ours.items():
        assert named(signature) == named(theirs[name]), name


@pytest.mark.parametrize(("kind", "client"), [(Semaphore, Client), (AsyncSemaphore, AsyncClient)])
def test_bound_semaphore_has_the_methods_of_its_client_without_the_name(kind: type, client: type) -> None:
    of_client = {name: named(signature) for name, signature in methods(client).items()}
    for name, signature in methods(kind).items():
        assert [("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty)] == of_client[name][1:2]
        assert named(signature)[1:] == of_client[name][2:], name
    takes_a_name = {name for name, parameters in of_client.items() if [each[0] for each in parameters[1:2]] == ["name"]}
    assert takes_a_name - methods(kind).keys() == {"semaphore"}


@pytest.mark.parametrize("kind", [Client, AsyncClient, Semaphore, AsyncSemaphore, Hold])
def test_every_public_method_is_documented(kind: type) -> None:
    undocumented = [
        name
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not inspect.getdoc(method)
    ]
    assert not undocumented


@pytest.mark.parametrize("module", DOCUMENTED)
def test_documented_examples_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_bound_semaphore_does_what_its_client_does(store: Store) -> None:
    with Client(store) as client:
        gpu, owner = client.semaphore("gpu"), some_owner()
        assert gpu.create(1) == client.describe("gpu") == gpu.describe()
        hold = gpu.acquire(owner, lease_s=30)
        assert gpu.renew(owner, lease_s=60, fence=hold.fence) == hold.fence
        assert (gpu.holder_of(1), gpu.holders()) == (gpu.token_of(owner), client.holders("gpu"))
        with pytest.raises(NotAcquired):
            gpu.acquire(some_owner(), wait_s=0)
        assert (gpu.waiters(), gpu.standing(owner), gpu.cancel(owner)) == ([], None, False)
        assert gpu.release(owner) is True
        with gpu.hold(owner) as held:
            assert gpu.try_acquire(some_owner()) is None
            assert held.token == 1
        gpu.delete()


# Ends


def test_client_opens_and_closes_twice(store: Store) -> None:
    client = Client(store)
    with pytest.raises(ClosedError, match="open"):
        client.describe("s")
    assert client.open() is client.open()
    client.create("s", 1)
    client.close()
    client.close()
    for call in (lambda: client.describe("s"), lambda: client.acquire("s", some_owner()), lambda: client.holders("s")):
        with pytest.raises(ClosedError):
            call()
    with client:  # a lent store stays open
        assert client.describe("s").size == 1


def test_async_client_opens_and_closes_twice(store: Store) -> None:
    async def core() -> None:
        client = AsyncClient(store)
        with pytest.raises(ClosedError, match="open"):
            await client.describe("s")
        assert await client.open() is await client.open()
        await client.create("s", 1)
        await client.close()
        await client.close()
        with pytest.raises(ClosedError):
            await client.acquire("s", some_owner())
        async with client:
            assert (await client.describe("s")).size == 1

    asyncio.run(core())


def test_client_closes_the_store_that_it_opened_and_no_other(tmp_path: Path, store: Store) -> None:
    url = f"sqlite:///{tmp_path / 'slots.db'}"
    with closing(open_store(url)) as own:
        schema.setup(own)
    before = threading.active_count()
    with Client(url) as client:
        client.create("s", 1)
        assert client.acquire("s", some_owner(), lease_s=600)
    assert threading.active_count() <= before
    with Client(store) as client:
        client.create("s", 1)
    assert store.layout("semaphore_tokens")


def test_closing_ends_the_waits_of_threads(store: Store) -> None:
    with Client(store) as other, ThreadPoolExecutor(2) as threads:
        client = Client(store, domain=other.domain_id).open()
        client.create("s", 1)
        other.acquire("s", some_owner())
        waits = [threads.submit(client.acquire, "s", some_owner()) for _ in range(2)]
        until(lambda: len(other.waiters("s")) == 2)
        client.close()
        assert [type(wait.exception(5)) for wait in waits] == [ClosedError] * 2


def test_closing_ends_the_waits_of_tasks(store: Store) -> None:
    async def core() -> None:
        async with AsyncClient(store) as other:
            client = await AsyncClient(store, domain=other.domain_id).open()
            await client.create("s", 1)
            await other.acquire("s", some_owner())
            waits = [asyncio.ensure_future(client.acquire("s", some_owner())) for _ in range(2)]
            await soon(lambda: len(seen(store, client.domain_id, "s").line) == 2)
            await client.close()
            async with asyncio.timeout(5):
                ends = await asyncio.gather(*waits, return_exceptions=True)
            assert [type(end) for end in ends] == [ClosedError] * 2

    asyncio.run(core())


AT_EXIT = """
import atexit, sys
from slotkeeper.semaphore import Client
client = Client(sys.argv[1]).open()
hold = client.acquire("s", sys.argv[2], lease_s=600)
def end():
    print("released", hold.release())
    client.close(); client.close()
    print("closed")
atexit.register(end)
"""

FORKED = """
import os, sys
from slotkeeper.database import ForkedError
from slotkeeper.semaphore import Client
client = Client(sys.argv[1], timeout_s=5).open()
hold = client.acquire("s", sys.argv[2], lease_s=600)
if os.fork() == 0:
    try:
        client.acquire("s", "2:wf:run-1:999")
    except ForkedError as error:
        print("child:", type(error).__name__, flush=True)
    client.close()
    os._exit(0)
os.wait()
print("parent:", hold.release(), flush=True)
client.close()
"""


FORKED_AT_WORK = """
import os, sys, threading, time
from slotkeeper.database import ForkedError
from slotkeeper.database.sqlite import SqliteStore
from slotkeeper.semaphore import Client

class Slow(SqliteStore):
    def commit_begun(self, batch):
        at_work.set()
        time.sleep(0.5)
        return super().commit_begun(batch)

at_work = threading.Event()
client = Client(Slow(sys.argv[1].removeprefix("sqlite:///"))).open()
thread = threading.Thread(target=client.acquire, args=("s", sys.argv[2]))
thread.start()
at_work.wait()
began = time.monotonic()
if os.fork() == 0:
    try:
        client.acquire("s", "2:wf:run-1:999")
    except ForkedError as error:
        print("child:", time.monotonic() - began < 5, flush=True)
    os._exit(0)
os.wait()
thread.join()
print("parent:", client.release("s", sys.argv[2]), flush=True)
client.close()
"""


def run(script: str, url: str) -> str:
    """Run a script in a process of its own, which must end well, and return what it printed."""
    ran = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore:This process:DeprecationWarning",
            "-c",
            script,
            url,
            str(some_owner()),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return ran.stdout


@pytest.fixture(params=["sqlite", "cassandra"])
def url(request: pytest.FixtureRequest, tmp_path: Path, cassandra_url: str) -> str:
    """A database of its own with a semaphore of two slots."""
    url = f"sqlite:///{tmp_path / 'slots.db'}" if request.param == "sqlite" else cassandra_url
    with closing(open_store(url)) as store:
        schema.setup(store)
        with Client(store) as client:
            client.create("s", 2)
    return url


def test_slots_can_be_given_back_at_exit(url: str) -> None:
    assert run(AT_EXIT, url).splitlines() == ["released True", "closed"]


def test_forked_child_is_told_and_the_parent_goes_on(url: str) -> None:
    assert run(FORKED, url).splitlines() == ["child: ForkedError", "parent: True"]


def test_child_is_told_at_once_though_a_thread_was_at_work_when_it_was_forked(tmp_path: Path) -> None:
    """The bucket's lock is taken for ever in the child: nobody may wait for it."""
    url = f"sqlite:///{tmp_path / 'slots.db'}"
    with closing(open_store(url)) as store:
        schema.setup(store)
        with Client(store) as client:
            client.create("s", 2)
    assert run(FORKED_AT_WORK, url).splitlines() == ["child: True", "parent: True"]


# The loop


@pytest.fixture
def blockbuster() -> Iterator[BlockBuster]:
    """Turn any call that blocks the loop into an error."""
    with blockbuster_ctx() as blockbuster:
        yield blockbuster


async def everything(store: Store) -> None:
    """Use all that an async client can do."""
    async with AsyncClient(store, domain=uuid4()) as client:
        await client.create("s", 2)
        first, second = await asyncio.gather(*(client.acquire("s", some_owner(), lease_s=60) for _ in range(2)))
        heir = some_owner()
        waits = asyncio.ensure_future(client.acquire("s", heir))
        await in_line(client, heir)
        assert await first.release()
        third = await waits
        assert await client.renew("s", second.owner, lease_s=30, fence=second.fence) == second.fence
        await client.attach("s", second.owner, second.detach(), lease_s=30)
        with pytest.raises(NotAcquired):
            await client.acquire("s", some_owner(), wait_s=0.05)
        assert await client.cancel("s", some_owner()) is False
        assert len(await client.holders("s")) == 2
        assert await client.holder_of("s", third.token)
        assert await client.token_of("s", third.owner)
        assert await client.release("s", third.owner)
        async with client.hold("s", some_owner()):
            pass
        assert [found.name async for found in client.semaphores()] == ["s"]
        await client.delete("s", force=True)


async def in_line(client: AsyncClient, owner: Owner) -> None:
    """Wait until an owner stands in line."""
    async with asyncio.timeout(10):
        while await client.standing("s", owner) is None:  # noqa: ASYNC110 - another process would set no event either
            await asyncio.sleep(0.005)


@pytest.mark.usefixtures("blockbuster")
def test_async_client_never_blocks_the_loop(store: Store) -> None:
    asyncio.run(everything(store))


def test_async_client_never_blocks_the_loop_on_cassandra(cassandra_store: Store, blockbuster: BlockBuster) -> None:
    asyncio.run(everything(cassandra_store))


@pytest.mark.usefixtures("blockbuster")
def test_opening_and_closing_do_not_block_the_loop(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'slots.db'}"

    async def core() -> None:
        async with AsyncClient(database) as client:
            await client.create("s", 1)
            await client.acquire("s", some_owner(), lease_s=60)

    with closing(open_store(database)) as store:
        schema.setup(store)
    asyncio.run(core())


def test_blocked_loop_would_be_noticed(blockbuster: BlockBuster) -> None:
    async def core() -> None:
        with Client("sqlite:///:memory:"):
            pass

    with pytest.raises(Exception, match="Blocking call"):
        asyncio.run(core())


# What they look like


def test_repr_shows_the_state_and_no_secret(cassandra_url: str, store: Store) -> None:
    with Client(store) as client:
        client.create("s", 1)
        hold = client.acquire("s", some_owner(), lease_s=30)
        assert f"#{hold.token} {hold.owner} fence={hold.fence} lease=30s held" in repr(hold)
        assert hold.release()
        assert "ended" in repr(hold)
        assert client.client_id in repr(client)
        assert "'s'" in repr(client.semaphore("s"))
    assert "not open" in repr(client)
    secret = Client("cassandra://somebody:s3cret@127.0.0.1/slots")
    assert "s3cret" not in repr(secret) + repr(secret.semaphore("s"))
