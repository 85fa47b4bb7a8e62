"""Claims that wait: served in order, one for one task, on time, and leaving nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from eventually import until
from servedtasks import ServedTasks
from taskstores import FailingJournal, soon

from slotkeeper.taskstore import Add, AsyncTaskStore, Change, JournalFailed, StoreClosed, TaskStore, UpdateError
from slotkeeper.taskstore.remote import AsyncTaskClient

LONG_S = 20.0
AnyStore = AsyncTaskStore | AsyncTaskClient
NewStore = Callable[[], AbstractAsyncContextManager[AnyStore]]


@pytest.fixture(params=["store", "service"])
def new_store(request: pytest.FixtureRequest) -> NewStore:
    """A way to open a store: itself, or over HTTP."""
    return AsyncTaskStore if request.param == "store" else served_store


@asynccontextmanager
async def served_store() -> AsyncIterator[AsyncTaskClient]:
    """Open a store behind a service."""
    service = await asyncio.to_thread(ServedTasks, "memory")
    try:
        async with AsyncTaskClient(service.url) as client:
            yield client
    finally:
        await asyncio.to_thread(service.stop)


async def waiting(store: AnyStore, number: int) -> None:
    """Wait until so many stand in line."""

    async def stand() -> bool:
        return (await store.stats()).waiting == number

    await soon(stand)


async def test_a_task_that_turns_up_goes_to_the_first_in_line(new_store: NewStore) -> None:
    async with new_store() as store:
        claims = []
        for n in range(3):
            claims.append(asyncio.ensure_future(store.claim(f"w{n}", "g", 10, wait_s=LONG_S)))
            await waiting(store, n + 1)

        await store.update("me", adds=[Add("g", b"1"), Add("other")])
        first = await claims[0]

        assert first is not None
        assert first.data == b"1"
        assert not claims[1].done()
        await store.update("me", adds=[Add("g", b"2"), Add("g", b"3")])
        assert {task.owner for task in await asyncio.gather(*claims[1:]) if task} == {"w1", "w2"}


async def test_who_comes_later_does_not_pass_the_line(new_store: NewStore) -> None:
    async with new_store() as store:
        first = asyncio.ensure_future(store.claim("first", "g", 10, wait_s=LONG_S))
        await waiting(store, 1)

        added, late = await asyncio.gather(store.update("me", adds=[Add("g")]), store.claim("late", "g", 10))

        assert added
        assert late is None
        assert (await first) is not None


async def test_a_claim_waits_for_several_groups(new_store: NewStore) -> None:
    async with new_store() as store:
        both = asyncio.ensure_future(store.claim("both", ["g", "h"], 10, wait_s=LONG_S))
        await waiting(store, 1)
        only_h = asyncio.ensure_future(store.claim("only h", "h", 10, wait_s=LONG_S))
        await waiting(store, 2)

        await store.update("me", adds=[Add("g")])
        assert (await both) is not None
        await store.update("me", adds=[Add("h")])
        assert (await only_h) is not None
        assert (await store.stats()).waiting == 0


async def test_time_makes_a_task_available_to_who_waits(new_store: NewStore) -> None:
    async with new_store() as store:
        claims = []
        for n in range(2):
            claims.append(asyncio.ensure_future(store.claim(f"w{n}", "g", 10, wait_s=LONG_S)))
            await waiting(store, n + 1)
        await store.update("me", adds=[Add("g", b"later", after_s=0.15), Add("g", b"sooner", after_s=0.05)])

        first, second = await asyncio.wait_for(asyncio.gather(*claims), 5)

        assert first is not None
        assert second is not None
        assert (first.data, second.data) == (b"sooner", b"later")


async def test_a_release_and_the_end_of_a_claim_serve_the_line(new_store: NewStore) -> None:
    async with new_store() as store:
        await store.update("me", adds=[Add("g")])
        held = await store.claim("holder", "g", 0.1)
        assert held is not None
        after_its_end = await asyncio.wait_for(store.claim("heir", "g", 60, wait_s=LONG_S), 5)
        assert after_its_end is not None

        heir = asyncio.ensure_future(store.claim("third", "g", 60, wait_s=LONG_S))
        await waiting(store, 1)
        await store.release("heir", after_its_end)
        assert (await heir) is not None


async def test_patience_ends_with_none(new_store: NewStore) -> None:
    async with new_store() as store:
        assert await store.claim("w", "g", 10, wait_s=0.02) is None
        assert (await store.stats()).waiting == 0
        await store.update("me", adds=[Add("g")])
        assert (await store.stats()).groups["g"].available == 1


async def test_who_is_cancelled_leaves_the_line_and_takes_no_task(new_store: NewStore) -> None:
    async with new_store() as store:
        claim = asyncio.ensure_future(store.claim("gone", "g", 60, wait_s=LONG_S))
        heir = asyncio.ensure_future(store.claim("heir", "g", 60, wait_s=LONG_S))
        await waiting(store, 2)

        claim.cancel()
        await asyncio.wait([claim])
        await store.update("me", adds=[Add("g", after_s=0.02)])

        task = await asyncio.wait_for(heir, 5)
        assert task is not None
        assert task.owner == "heir"


async def test_a_task_that_was_handed_to_a_cancelled_claim_comes_back() -> None:
    async with AsyncTaskStore() as store:
        claim = asyncio.ensure_future(store.claim("gone", "g", 600, wait_s=LONG_S))
        await waiting(store, 1)
        adding = asyncio.ensure_future(store.update("me", adds=[Add("g")]))
        await asyncio.sleep(0)
        claim.cancel()  # before it has learnt of its task
        await asyncio.wait([claim, adding])

        await soon(lambda: store.group("g"))
        (task,) = await store.group("g")
        assert task.attempt == 0


async def test_a_dependency_that_goes_ends_the_wait(new_store: NewStore) -> None:
    async with new_store() as store:
        (lock,) = await store.update("me", adds=[Add("lock")])
        claim = asyncio.ensure_future(store.claim("w", "g", 10, depends=[lock.id], wait_s=LONG_S))
        await waiting(store, 1)

        await store.update("me", adds=[Add("g")], deletes=[lock.id])

        with pytest.raises(UpdateError) as refused:
            await claim
        assert refused.value.depends == (lock.id,)
        assert len(await store.group("g")) == 1


async def test_closing_ends_the_wait() -> None:
    store = await AsyncTaskStore().open()
    claim = asyncio.ensure_future(store.claim("w", "g", 10, wait_s=LONG_S))
    await waiting(store, 1)

    await store.close()

    with pytest.raises(StoreClosed):
        await claim


async def test_a_failed_append_puts_the_line_back() -> None:
    journal = FailingJournal()
    async with AsyncTaskStore(journal) as store:
        claim = asyncio.ensure_future(store.claim("w", "g", 10, wait_s=LONG_S))
        await waiting(store, 1)
        journal.failures = [JournalFailed()]

        with pytest.raises(JournalFailed):
            await store.update("me", adds=[Add("g")])

        assert (await store.stats()).waiting == 1
        await store.update("me", adds=[Add("g")])
        assert (await claim) is not None


def test_threads_wait_and_each_task_wakes_one() -> None:
    with TaskStore() as store, ThreadPoolExecutor(8) as threads:
        claims = [threads.submit(store.claim, f"w{n}", "g", 60, wait_s=LONG_S) for n in range(8)]
        until(lambda: store.stats().waiting == 8)

        for n in range(8):
            store.update("me", adds=[Add("g", b"%d" % n)])

        got = [claim.result(LONG_S) for claim in claims]
        assert {task.data for task in got if task} == {b"%d" % n for n in range(8)}


def test_threads_wait_for_time_to_pass() -> None:
    with TaskStore() as store, ThreadPoolExecutor(3) as threads:
        claims = [threads.submit(store.claim, f"w{n}", "g", 60, wait_s=LONG_S) for n in range(3)]
        until(lambda: store.stats().waiting == 3)
        store.update("me", adds=[Add("g", after_s=0.03 * n) for n in range(1, 4)])

        assert all(claim.result(5) for claim in claims)


def test_a_busy_market_of_threads_loses_and_doubles_nothing() -> None:
    with TaskStore(most_attempts=None) as store:
        done: list[bytes] = []
        lock = threading.Lock()

        def work(name: str) -> None:
            while (task := store.claim(name, ["a", "b"], 60, wait_s=0.3)) is not None:
                if len(task.data) % 3 == 0:
                    store.update(name, changes=[Change(task.id, data=task.data + b"!")])
                    continue
                store.update(name, deletes=[task.id])
                with lock:
                    done.append(task.data.rstrip(b"!"))

        with ThreadPoolExecutor(6) as threads:
            workers = [threads.submit(work, f"w{n}") for n in range(6)]
            for n in range(300):
                store.update("me", adds=[Add("ab"[n % 2], b"%d" % n)])
            for worker in workers:
                worker.result(60)

        assert sorted(done) == sorted(b"%d" % n for n in range(300))
        assert store.every_task() == []
