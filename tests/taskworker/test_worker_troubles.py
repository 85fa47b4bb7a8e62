"""Renewals, and what a worker does about lost claims, lost answers and stores that do not answer."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from eventually import soon, until
from workshops import BOUND_S, Shop, renewed

from slotkeeper.database import Unavailable
from slotkeeper.taskstore import (
    Add,
    AsyncTaskStore,
    AsyncWorker,
    Change,
    Fenced,
    Interrupted,
    JournalFailed,
    Outcome,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    UpdateError,
)
from slotkeeper.taskstore.shift import Pauses

QUICK_S = 0.06  # of a claim: on the worker's clock; the store's stands still, so that nothing ends by being slow
PASSING = [StoreBusy(), Unavailable(), JournalFailed(), OutcomeUnknown(), ConnectionResetError(), TimeoutError()]
ENDING = [StoreClosed(), Fenced(), Interrupted(), LookupError("a slip")]
REFUSED = UpdateError(bugs=["no"])


def tag(error: BaseException) -> str:
    """Name a case."""
    return type(error).__name__


def test_a_task_is_renewed_while_its_handler_works_and_ended_under_its_latest_id(shop: Shop) -> None:
    (first,) = shop.add(Add("g"))
    seen: list[Any] = []

    def handle(held: Any) -> Outcome:
        renewed(held, 3)
        seen.append(held)
        return Outcome(adds=[Add("new")])

    with shop.works(handle, for_s=QUICK_S) as made:
        until(lambda: made.done == 1)
    assert seen[0].id > first.id + 3
    assert shop.call("groups") == ["new"]
    assert not seen[0].lost.is_set()


def test_the_claim_lasts_for_s_from_the_last_renewal(shop: Shop) -> None:
    shop.add(Add("g"))

    def handle(held: Any) -> None:
        shop.hands.go_on(7.5)
        until(lambda: shop.every("g")[0].available_at_ns == shop.hands.wall_ns + int(0.6 * 1e9))

    with shop.works(handle, for_s=0.6) as made:
        until(lambda: made.done == 1)


def test_a_renewal_under_way_is_waited_for_and_the_end_names_what_it_made(shop: Shop) -> None:
    shop.add(Add("g"))
    renewing, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        renewing.set()
        assert go_on.wait(BOUND_S)

    def handle(held: Any) -> None:
        assert renewing.wait(BOUND_S)

    shop.troubles.during["renew"] = slow
    with shop.works(handle, for_s=1.0) as made:
        assert renewing.wait(BOUND_S)
        assert "update" not in shop.troubles.calls
        go_on.set()
        until(lambda: made.done == 1)
    assert (made.lost, shop.call("every_task")) == (0, [])


def test_what_comes_of_a_lost_claim_is_dropped_and_the_new_owner_keeps_the_task(shop: Shop) -> None:
    shop.add(Add("g", b"x"))
    tasks: list[Any] = []

    def stolen() -> bool:  # a renewal may come between the end of the claim and the theft
        shop.hands.go_on(60)
        tasks[:] = [shop.call("claim", "thief", "g", 1000)]
        return tasks != [None]

    def handle(held: Any) -> Outcome:
        until(stolen)
        until(held.lost.is_set)
        return Outcome(adds=[Add("twice")])

    with shop.works(handle, for_s=0.2) as made:
        until(lambda: made.lost == 1)
        made.stop()
    assert shop.call("every_task") == tasks
    assert made.done == 0


def test_a_claim_lost_unnoticed_is_refused_at_the_end(shop: Shop) -> None:
    shop.add(Add("g"))

    def handle(held: Any) -> Outcome:
        shop.call("update", held.task.owner, deletes=[held.id])
        return Outcome(adds=[Add("new")])

    with shop.works(handle) as made:
        until(lambda: made.lost == 1)
    assert (made.done, shop.call("every_task")) == (0, [])


def test_a_claim_that_nobody_could_renew_is_told_as_lost_when_its_time_is_over(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.before["renew"] = [ConnectionResetError() for _ in range(100)]

    def handle(held: Any) -> None:
        until(held.lost.is_set)

    with shop.works(handle, for_s=0.1) as made:
        until(lambda: made.lost == 1)
        made.stop()
    assert len(shop.every("g")) == 1


def test_whoever_asks_hears_of_the_end_of_the_claim_before_the_renewing_thread_does(shop: Shop) -> None:
    shop.add(Add("g"))
    go_on, told = threading.Event(), threading.Event()

    def slow() -> None:
        assert go_on.wait(BOUND_S)

    def handle(held: Any) -> None:
        until(lambda: held.is_lost)
        told.set()
        go_on.set()

    shop.troubles.during["renew"] = slow
    with shop.works(handle, for_s=0.1):
        assert told.wait(BOUND_S)


@pytest.mark.parametrize("error", PASSING, ids=tag)
def test_an_error_of_the_store_that_may_pass_is_waited_out(shop: Shop, error: BaseException) -> None:
    shop.add(Add("g"))
    shop.troubles.before |= {"claim": [error], "update": [error, error]}
    with shop.works(lambda task: Outcome(adds=[Add("new")])) as made:
        until(lambda: made.done == 1)
    assert [task.group for task in shop.call("every_task")] == ["new"]


@pytest.mark.parametrize("error", [*ENDING, REFUSED], ids=tag)
def test_an_error_of_the_store_that_does_not_pass_ends_the_worker(shop: Shop, error: BaseException) -> None:
    shop.troubles.before["claim"] = [error]
    with pytest.raises(type(error)):
        shop.begun(shop.made(lambda task: None, concurrency=2)).result(BOUND_S)


@pytest.mark.parametrize("method", ["update", "renew", "release"])
def test_a_store_that_ends_while_a_task_is_in_hand_ends_the_worker(shop: Shop, method: str) -> None:
    shop.add(Add("g"))
    shop.troubles.before[method] = [Fenced()]

    def handle(held: Any) -> None:
        if method == "renew":
            until(lambda: "renew" in shop.troubles.calls)
        if method == "release":
            raise LookupError

    with pytest.raises(Fenced):
        shop.begun(shop.made(handle, for_s=0.3)).result(BOUND_S)


def test_the_other_hands_finish_when_one_meets_the_end(shop: Shop) -> None:
    shop.add(Add("g"), Add("g"))
    begun, go_on = threading.Event(), threading.Event()

    def handle(held: Any) -> None:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(BOUND_S)
        else:
            shop.troubles.before["update"] = [StoreClosed()]

    made = shop.made(handle, concurrency=2)
    ended = shop.begun(made)
    assert begun.wait(BOUND_S)
    until(lambda: not shop.troubles.before.get("update", [0]))
    go_on.set()
    with pytest.raises(StoreClosed):
        ended.result(BOUND_S)
    assert made.done == 1


def test_a_renewal_that_was_not_answered_but_happened_costs_nothing(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.after["renew"] = [ConnectionResetError()]

    def handle(held: Any) -> None:
        until(lambda: held.in_doubt)

    with shop.works(handle, for_s=2.0) as made:
        until(lambda: made.done == 1)
    assert (made.lost, shop.call("every_task")) == (0, [])


def test_renewing_goes_on_after_a_renewal_that_was_not_answered(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.after["renew"] = [OutcomeUnknown()]

    def handle(held: Any) -> None:
        until(lambda: held.in_doubt)
        renewed(held, 2)

    with shop.works(handle, for_s=0.5) as made:
        until(lambda: made.done == 1)
    assert (made.lost, shop.call("every_task")) == (0, [])


def test_a_renewal_that_was_not_answered_and_did_not_happen_costs_nothing(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.before["renew"] = [OutcomeUnknown()]

    def handle(held: Any) -> None:
        until(lambda: held.in_doubt)
        renewed(held)

    with shop.works(handle, for_s=0.5) as made:
        until(lambda: made.done == 1)
    assert made.lost == 0


def test_a_renewal_that_comes_through_behind_the_look_is_found_by_the_next(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.before["renew"] = [ConnectionResetError()]

    def handle(held: Any) -> None:
        until(lambda: held.in_doubt)
        shop.troubles.during["update"] = lambda: shop.call("renew", held.task.owner, held.id, 30) and None

    with shop.works(handle, for_s=6.0) as made:
        until(lambda: made.done == 1)
    assert (made.lost, shop.call("every_task")) == (0, [])


def test_no_other_task_is_taken_for_one_whose_renewal_was_not_answered(shop: Shop) -> None:
    shop.add(Add("g", b"mine"))

    def handle(held: Any) -> None:
        owner = held.task.owner
        for data in (b"mine", b"other"):  # one looks the same but was never claimed, one is owned but not the same
            shop.call("update", owner, adds=[Add("g", data, after_s=1000)])
        until(lambda: held.in_doubt)
        shop.call("update", owner, deletes=[held.id])

    shop.troubles.before["renew"] = [ConnectionResetError()]
    with shop.works(handle, for_s=6.0) as made:
        until(lambda: made.lost == 1)
        made.stop()
    assert sorted(task.data for task in shop.every("g")) == [b"mine", b"other"]


def test_an_end_that_was_not_answered_happens_once(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.after["update"] = [OutcomeUnknown()]
    with shop.works(lambda task: Outcome(adds=[Add("new")])):
        until(lambda: shop.troubles.calls.count("task") == 1)
    assert [task.group for task in shop.call("every_task")] == ["new"]


def test_a_release_that_was_not_answered_happens_once(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.after["release"] = [OutcomeUnknown()]
    with shop.works(lambda task: 1 / 0, retry_s=1000):
        until(lambda: shop.troubles.calls.count("task") == 1)
    (task,) = shop.every("g")
    assert (task.attempt, task.owner) == (1, "")


def test_an_end_under_way_is_waited_for_even_when_there_is_no_more_time(shop: Shop) -> None:
    shop.add(Add("g"))
    ending, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        ending.set()
        assert go_on.wait(BOUND_S)

    shop.troubles.during["update"] = slow
    made = shop.made(lambda task: Outcome(adds=[Add("new")]))
    ended = shop.begun(made)
    assert ending.wait(BOUND_S)
    made.stop(0.0)
    until(made._shift.abandoned.is_set)
    assert not ended.done()
    go_on.set()
    ended.result(BOUND_S)
    assert (made.done, shop.call("groups")) == (1, ["new"])


def test_a_worker_that_is_stopped_for_good_waits_for_no_store(shop: Shop) -> None:
    shop.add(Add("g"))
    shop.troubles.before["update"] = [Unavailable() for _ in range(1000)]
    made = shop.made(lambda task: None)
    ended = shop.begun(made)
    until(lambda: "update" in shop.troubles.calls)
    made.stop(0.0)
    ended.result(BOUND_S)
    until(lambda: made.lost == 1)


def test_a_task_that_cannot_be_given_back_comes_back_by_itself(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.add(Add("g"))
    begun, go_on = threading.Event(), threading.Event()
    shop.troubles.before["release"] = [Unavailable()]

    def handle(held: Any) -> None:
        begun.set()
        assert go_on.wait(BOUND_S)

    made = shop.made(handle)
    ended = shop.begun(made)
    assert begun.wait(BOUND_S)
    made.stop(0.0)
    ended.result(BOUND_S)
    go_on.set()
    assert "comes back when its claim ends" in caplog.text
    shop.hands.go_on(31)
    assert shop.call("claim", "me", "g", 1) is not None


def test_a_handler_that_is_cancelled_by_itself_has_failed() -> None:
    async def handle(held: Any) -> None:
        raise asyncio.CancelledError

    async def run() -> None:
        async with AsyncTaskStore() as store:
            await store.update("me", adds=[Add("g")])
            made = AsyncWorker(store, "g", handle, wait_s=0.05, retry_s=1000)
            async with made:
                await soon(lambda: made.failed)
            (task,) = await store.group("g", owned=True)
            assert task.error == "HandlerCancelled: The handler was cancelled."

    asyncio.run(asyncio.wait_for(run(), BOUND_S))


@pytest.mark.parametrize("way", ["cancel", "error"])
def test_cancelling_run_cancels_the_handler_and_gives_its_task_back(way: str) -> None:
    cancelled: list[bool] = []

    async def handle(held: Any) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(held.lost.is_set())
            raise

    async def fail_meanwhile(store: AsyncTaskStore) -> None:
        async with AsyncWorker(store, "g", handle, wait_s=0.05):
            await begun.wait()
            raise LookupError

    async def run() -> None:
        async with AsyncTaskStore() as store:
            await store.update("me", adds=[Add("g")])
            if way == "error":
                with pytest.raises(LookupError):
                    await fail_meanwhile(store)
            else:
                task = asyncio.create_task(AsyncWorker(store, "g", handle, wait_s=0.05).run())
                await begun.wait()
                task.cancel()
                await asyncio.wait({task})
                assert task.cancelled()
            assert [(task.attempt, task.claims) for task in await store.group("g")] == [(0, 1)]

    begun = asyncio.Event()
    asyncio.run(asyncio.wait_for(run(), BOUND_S))
    assert cancelled == [True]


@pytest.mark.parametrize("face", ["threads"])  # in asyncio an interruption ends the loop itself
def test_an_interrupted_handler_gives_its_task_back_and_ends_the_worker(shop: Shop) -> None:
    shop.add(Add("g"))

    def handle(held: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        shop.begun(shop.made(handle)).result(BOUND_S)
    assert [task.attempt for task in shop.call("group", "g")] == [0]


def test_each_try_waits_longer_than_the_one_before() -> None:
    pauses = Pauses(0.1, 10)
    assert [pauses.after(n, lambda: 1.0) for n in (0, 1, 2, 3, 8, 100_000)] == [0.1, 0.1, 0.2, 0.4, 10, 10]
    assert pauses.after(2, lambda: 0.0) == 0.1


def test_a_change_of_ones_own_keeps_all_that_was_asked_for() -> None:
    asked = Change(3, b"data", after_s=5, group="g", attempt=2, error="e")
    made = Outcome(changes=[asked, Change(9)], deletes=[3, 4], depends=[5, 8]).against(7, frozenset((3, 5, 7)))
    assert made["changes"] == [Change(7, b"data", after_s=5, group="g", attempt=2, error="e"), Change(9)]
    assert (made["deletes"], made["depends"]) == ([4], [8])
