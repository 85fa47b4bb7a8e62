"""What a failing, silent or lost journal does to a store, and what an interruption does."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import until
from taskstores import FailingJournal, opened

from slotkeeper.database import Unavailable
from slotkeeper.taskstore import (
    Add,
    AsyncTaskStore,
    BadJournal,
    Change,
    Fenced,
    Interrupted,
    JournalDamaged,
    JournalFailed,
    JournalFull,
    JournalLocked,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    TaskStore,
    TaskStoreError,
    UpdateError,
)
from slotkeeper.taskstore.journal import Unsettled
from slotkeeper.taskstore.record import Record


@pytest.mark.parametrize("failure", [JournalFailed(), JournalFull(), Unavailable()])
def test_a_failed_append_leaves_everything_as_it_was(face: str, failure: Exception) -> None:
    journal = FailingJournal()
    with opened(face, journal) as tasks:
        tasks.update("me", adds=[Add("g", b"1"), Add("h", b"2")])
        before = tasks.every_task()

        for call in (
            tasks.later("claim", "w", "g", 10),
            tasks.later("update", "me", adds=[Add("new", key="k")], changes=[Change(1)], deletes=[2]),
        ):
            journal.failures = [failure]
            (error,) = tasks.together(call)
            assert type(error) is type(failure)
            assert tasks.every_task() == before
            assert tasks.groups() == ["g", "h"]

        assert tasks.claim("w", "g", 10).data == b"1"
        assert tasks.update("me", adds=[Add("new", key="k")])[0].id > 4  # what failed has burnt its ids


def test_who_only_looks_is_not_told_of_others_failures(face: str) -> None:
    journal = FailingJournal()
    with opened(face, journal) as tasks:
        journal.failures = [JournalFailed()] * 3
        calls = [tasks.later("update", "me", adds=[Add("g")]), tasks.later("every_task"), tasks.later("groups")] * 3
        results = tasks.together(*calls)

        assert not [result for result in results[1::3] + results[2::3] if isinstance(result, Exception)]


@pytest.mark.parametrize("is_in", [True, False])
def test_an_unknown_outcome_is_settled_before_anything_else(face: str, is_in: bool) -> None:
    journal = FailingJournal()
    with opened(face, journal) as tasks:
        journal.failures, journal.settled = [Unsettled()], [Unsettled(), is_in]

        (error,) = tasks.together(tasks.later("update", "me", adds=[Add("g")]))
        assert isinstance(error, OutcomeUnknown)
        (error,) = tasks.together(tasks.later("groups"))
        assert isinstance(error, OutcomeUnknown | StoreBusy)
        assert tasks.groups() == (["g"] if is_in else [])


def test_others_of_an_unsettled_batch_get_their_answers() -> None:
    journal = FailingJournal()

    async def market() -> None:
        async with AsyncTaskStore(journal) as store:
            gate = asyncio.Event()

            async def held(records: Sequence[Record], deadline: float) -> None:
                await gate.wait()

            journal.append = held  # type: ignore[method-assign]
            first = asyncio.ensure_future(store.update("me", adds=[Add("g")]))
            await asyncio.sleep(0)
            second = asyncio.ensure_future(store.update("me", adds=[Add("h")]))
            third = asyncio.ensure_future(store.groups())
            await asyncio.sleep(0.01)
            first.cancel()  # the append belongs to the store: it is settled, and found to be in
            journal.settled = [True]
            gate.set()

            assert (await second)[0].id == 2
            assert await third == ["g", "h"]
            assert first.cancelled()

    asyncio.run(market())


def test_a_claim_whose_caller_was_cancelled_comes_back() -> None:
    journal = FailingJournal()

    async def market() -> None:
        async with AsyncTaskStore(journal) as store:
            await store.update("me", adds=[Add("g")])
            gate, append = asyncio.Event(), journal.append

            async def held(records: Sequence[Record], deadline: float) -> None:
                await gate.wait()
                await append(records, deadline)

            journal.append = held  # type: ignore[method-assign]
            claim = asyncio.ensure_future(store.claim("gone", "g", 600))
            await asyncio.sleep(0.01)
            claim.cancel()
            journal.settled = [True]
            gate.set()
            await asyncio.wait([claim])

            (task,) = await store.group("g")
            assert (task.attempt, task.claims) == (0, 1)

    asyncio.run(market())


def test_a_fenced_store_answers_no_more(face: str) -> None:
    journal = FailingJournal()
    with opened(face, journal) as tasks:
        tasks.update("me", adds=[Add("g")])
        journal.failures = [Fenced()]

        for call in (tasks.later("claim", "w", "g", 10), tasks.later("groups"), tasks.later("task", 1)):
            (error,) = tasks.together(call)
            assert isinstance(error, Fenced)


def test_an_interruption_in_the_middle_of_a_change_ends_the_store() -> None:
    def dice() -> float:
        raise KeyboardInterrupt

    with TaskStore(dice=dice) as store:
        store.update("me", adds=[Add("g"), Add("g")])
        with pytest.raises(KeyboardInterrupt):
            store.claim("w", "g", 10)
        with pytest.raises(Interrupted):
            store.groups()


def test_a_caller_whose_time_is_up_takes_its_request_back() -> None:
    journal = FailingJournal()
    with TaskStore(journal, timeout_s=0.2) as store, ThreadPoolExecutor(2) as threads:
        held, go = list[Sequence[Record]](), list[bool]()

        async def hold(records: Sequence[Record], deadline: float) -> None:
            held.append(records)
            until(lambda: go)

        journal.append = hold  # type: ignore[method-assign]
        first = threads.submit(store.update, "me", adds=[Add("g")])
        until(lambda: held)
        with pytest.raises(StoreBusy):
            store.update("me", adds=[Add("h")])
        go.append(True)
        assert first.result(5)
        assert store.groups() == ["g"]


@pytest.mark.parametrize(
    "error",
    [
        BadJournal("x"),
        Fenced(),
        Interrupted(),
        JournalDamaged("dir", ["segment 3 is missing", "and more"]),
        JournalFailed(),
        JournalFull(),
        JournalLocked("dir", "pid 7"),
        OutcomeUnknown(),
        StoreBusy(),
        StoreClosed(),
        UpdateError(changes=[1], deletes=[2], depends=[3], owned=[4], bugs=["five"]),
    ],
)
def test_errors_travel_between_processes(error: TaskStoreError) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_name_that_means_no_journal_is_told() -> None:
    with pytest.raises(BadJournal, match="nowhere"):
        TaskStore("nowhere:/x")
