"""What a worker makes of its tasks: done, tried again, set aside, given back."""

from __future__ import annotations

import doctest
import threading
from collections.abc import Callable
from typing import Any

import pytest
from eventually import until
from taskstores import SECOND_NS
from workshops import BOUND_S, Shop

from slotkeeper.taskstore import (
    Add,
    BadWorker,
    Change,
    ClaimLost,
    Outcome,
    Quarantine,
    Task,
    TaskStore,
    Worker,
    worker,
)


def test_the_example_works() -> None:
    assert doctest.testmod(worker).failed == 0


def test_a_task_that_was_handled_is_gone(shop: Shop) -> None:
    shop.add(Add("g", b"1"), Add("g", b"2"), Add("other"))
    seen: list[bytes] = []
    with shop.works(lambda task: seen.append(task.data)) as made:
        until(lambda: made.done == 2)
    assert sorted(seen) == [b"1", b"2"]
    assert shop.call("groups") == ["other"]


def test_a_worker_claims_from_all_its_groups(shop: Shop) -> None:
    shop.add(Add("g"), Add("h"))
    with shop.works(lambda task: None, ["g", "h"]) as made:
        until(lambda: made.done == 2)


def test_a_task_that_turns_up_later_is_handled(shop: Shop) -> None:
    with shop.works(lambda task: None) as made:
        until(lambda: "claim" in shop.troubles.calls)
        shop.add(Add("g"))
        until(lambda: made.done == 1)


def test_what_a_handler_adds_and_changes_comes_with_the_end_of_its_task(shop: Shop) -> None:
    other, gone, _ = shop.add(Add("other", b"old"), Add("gone"), Add("g", b"x"))

    def handle(task: Any) -> Outcome:
        return Outcome(adds=[Add("new", task.data)], changes=[Change(other.id, data=b"new")], deletes=[gone.id])

    with shop.works(handle) as made:
        until(lambda: made.done == 1)
    assert {task.group: task.data for task in shop.call("every_task")} == {"new": b"x", "other": b"new"}


def test_an_outcome_that_is_refused_changes_nothing_and_is_tried_again(shop: Shop) -> None:
    shop.add(Add("g"))
    with shop.works(lambda task: Outcome(adds=[Add("new")], deletes=[12345])) as made:
        until(lambda: made.failed == 1)
    (task,) = shop.call("every_task")
    assert (task.group, task.attempt) == ("g", 1)
    assert "UpdateError" in task.error
    assert "12345" in task.error


def test_a_handler_may_change_its_own_task_instead_of_ending_it(shop: Shop) -> None:
    shop.add(Add("g", b"half"))
    with shop.works(lambda task: Outcome(changes=[Change(task.id, data=b"whole", group="next")])) as made:
        until(lambda: made.done == 1)
    (task,) = shop.call("every_task")
    assert (task.group, task.data) == ("next", b"whole")


def test_a_handler_may_name_its_own_task_among_those_to_delete(shop: Shop) -> None:
    shop.add(Add("g"))
    with shop.works(lambda task: Outcome(deletes=[task.id], depends=[task.id])) as made:
        until(lambda: made.done == 1)
    assert shop.call("every_task") == []


def test_a_task_whose_handler_fails_is_tried_again_later_and_later(shop: Shop) -> None:
    shop.add(Add("g"))

    def handle(task: Any) -> None:
        raise LookupError(f"attempt {task.attempt}")

    with shop.works(handle, retry_s=8, most_retry_s=20) as made:
        for attempt, pause_s in ((1, 4), (2, 8), (3, 10), (4, 10)):  # half of 8, 16, 20, 20: the dice show 0
            until(lambda attempt=attempt: made.failed == attempt)  # type: ignore[misc]
            (task,) = shop.every("g")
            assert task.error == f"LookupError: attempt {attempt}"
            assert task.available_at_ns == shop.hands.wall_ns + pause_s * SECOND_NS
            shop.hands.go_on(pause_s)
            shop.add(Add("other"))  # the line looks again when something happens


def test_pauses_differ_by_chance(shop: Shop) -> None:
    shop.add(Add("g"))
    with shop.works(lambda task: 1 / 0, retry_s=8, dice=lambda: 0.5) as made:
        until(lambda: made.failed == 1)
    assert shop.every("g")[0].available_at_ns == shop.hands.wall_ns + 6 * SECOND_NS


def test_the_last_attempt_in_vain_moves_a_task_to_quarantine(open_shop: Callable[..., Shop]) -> None:
    shop = open_shop(most_attempts=2)
    shop.add(Add("g"))
    with shop.works(lambda task: 1 / 0, retry_s=0) as made:
        until(lambda: made.failed == 2)
    (task,) = shop.call("every_task")
    assert (task.group, task.attempt) == ("g/quarantine", 2)


def test_a_handler_can_send_its_task_to_quarantine_at_once(shop: Shop) -> None:
    shop.add(Add("g", b"nonsense"))

    def handle(task: Any) -> None:
        raise Quarantine("not a number")

    with shop.works(handle) as made:
        until(lambda: made.failed == 1)
    (task,) = shop.call("every_task")
    assert (task.group, task.data, task.error) == ("g/quarantine", b"nonsense", "not a number")
    assert shop.call("claim", "me", "g/quarantine", 1) is not None


def test_what_is_in_quarantine_stays_in_this_one(shop: Shop) -> None:
    shop.add(Add("g/quarantine"))

    def handle(task: Any) -> None:
        made.stop()
        raise Quarantine("still not a number")

    made = shop.made(handle, "g/quarantine")
    shop.begun(made).result(BOUND_S)
    assert shop.call("groups") == ["g/quarantine"]


def test_what_no_handler_may_return_is_a_failure_and_not_done(shop: Shop) -> None:
    shop.add(Add("g"))
    with shop.works(lambda task: [Add("new")]) as made:
        until(lambda: made.failed == 1)
    assert "a handler returns None or an Outcome" in shop.every("g")[0].error


def test_as_many_are_handled_at_once_as_was_asked_for(shop: Shop) -> None:
    shop.add(*(Add("g") for _ in range(6)))
    together = threading.Barrier(3)

    def handle(task: Any) -> None:
        together.wait(BOUND_S)

    with shop.works(handle, concurrency=3) as made:
        until(lambda: made.done == 6)


def test_each_hand_owns_under_a_name_of_its_own(shop: Shop) -> None:
    shop.add(Add("g"), Add("g"))
    together, owners = threading.Barrier(2), set()

    def handle(held: Any) -> None:
        owners.add(held.task.owner)
        together.wait(BOUND_S)

    with shop.works(handle, concurrency=2) as made:
        until(lambda: made.done == 2)
    assert owners == {"w/1", "w/2"}


def test_a_stopped_worker_finishes_what_is_in_hand_and_claims_nothing_more(shop: Shop) -> None:
    shop.add(Add("g"), Add("g"))
    begun, go_on = threading.Event(), threading.Event()

    def handle(task: Any) -> None:
        begun.set()
        assert go_on.wait(BOUND_S)

    made = shop.made(handle)
    ended = shop.begun(made)
    assert begun.wait(BOUND_S)
    made.stop()
    assert not ended.done()
    go_on.set()
    ended.result(BOUND_S)
    assert (made.done, len(shop.call("group", "g"))) == (1, 1)


@pytest.mark.parametrize("stops", [[None, None], [0.05], [60, 0.0]], ids=["twice", "time's up", "less time"])
def test_a_second_stop_or_the_end_of_the_time_gives_back_what_is_in_hand(shop: Shop, stops: list[float | None]) -> None:
    shop.add(Add("g"))
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()
    held: list[Any] = []

    def handle(task: Any) -> Outcome:
        held.append(task)
        begun.set()
        assert go_on.wait(BOUND_S)
        over.set()
        return Outcome(adds=[Add("too late")])

    made = shop.made(handle)
    ended = shop.begun(made)
    assert begun.wait(BOUND_S)
    for timeout_s in stops:
        made.stop(timeout_s)
    ended.result(BOUND_S)

    (task,) = shop.call("group", "g")
    assert (task.attempt, task.claims) == (0, 1)
    assert held[0].lost.is_set()
    go_on.set()
    assert over.wait(BOUND_S)
    until(lambda: made.lost == 1)
    assert shop.call("groups") == ["g"]


def test_a_claim_that_is_answered_after_the_stop_is_given_back_unharmed(shop: Shop) -> None:
    shop.add(Add("g"))
    made = shop.made(lambda task: None)
    shop.troubles.during["claim"] = made.stop
    shop.begun(made).result(BOUND_S)
    (task,) = shop.call("group", "g")
    assert (task.attempt, task.claims, made.done) == (0, 1, 0)


def test_a_worker_that_was_stopped_before_claims_nothing(shop: Shop) -> None:
    shop.add(Add("g"))
    made = shop.made(lambda task: None)
    made.stop()
    shop.begun(made).result(BOUND_S)
    assert "claim" not in shop.troubles.calls


def test_a_worker_runs_once(shop: Shop) -> None:
    made = shop.made(lambda task: None)
    made.stop()
    shop.begun(made).result(BOUND_S)
    with pytest.raises(BadWorker, match="runs once"):
        shop.begun(made).result(BOUND_S)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"groups": []}, "group"),
        ({"owner": ""}, "owner"),
        ({"for_s": 0}, "for_s"),
        ({"for_s": float("nan")}, "for_s"),
        ({"for_s": float("inf")}, "for_s"),
        ({"concurrency": 0}, "concurrency"),
        ({"quarantine": ""}, "quarantine"),
    ],
)
def test_a_worker_that_cannot_work_is_refused(shop: Shop, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(BadWorker, match=told):
        shop.made(lambda task: None, **wrong)


def test_a_worker_says_how_it_is_doing(shop: Shop) -> None:
    made = shop.made(lambda task: None)
    assert "w g not running" in repr(made)
    assert (made.done, made.failed, made.lost, made.owner) == (0, 0, 0, "w")
    made.stop()
    shop.begun(made).result(BOUND_S)
    assert "done=0 failed=0 lost=0" in repr(made)


def test_two_workers_without_a_name_have_different_ones(shop: Shop) -> None:
    assert shop.made(lambda task: None, owner=None).owner != shop.made(lambda task: None, owner=None).owner


def test_interrupting_run_gives_back_what_is_in_hand() -> None:
    with TaskStore() as store:
        store.update("me", adds=[Add("g")])
        go_on = threading.Event()

        def handle(task: Any) -> None:
            main.raise_in_wait()
            assert go_on.wait(BOUND_S)

        main = Interrupting(store, "g", handle, wait_s=0.05)
        with pytest.raises(KeyboardInterrupt):
            main.run()
        (task,) = store.group("g")
        go_on.set()
    assert task.attempt == 0


class Interrupting(Worker):
    """A worker whose `run` can be interrupted, as by Ctrl-C."""

    def _begins(self, shift: Any) -> Any:
        self._former = shift.changed
        return super()._begins(shift)

    def raise_in_wait(self) -> None:
        """Wake `run` up, and let it be interrupted in its next wait."""
        assert self._shift is not None
        self._shift.changed = _Breaking()
        self._former.set()


class _Breaking:
    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool:
        return False

    async def wait(self, timeout_s: float) -> bool:
        raise KeyboardInterrupt


def test_leaving_a_block_by_an_error_gives_back_what_is_in_hand() -> None:
    go_on, begun = threading.Event(), threading.Event()

    def handle(task: Any) -> None:
        begun.set()
        assert go_on.wait(BOUND_S)

    def fail_meanwhile() -> None:
        with Worker(store, "g", handle, wait_s=0.05):
            assert begun.wait(BOUND_S)
            raise LookupError

    with TaskStore() as store:
        store.update("me", adds=[Add("g")])
        with pytest.raises(LookupError):
            fail_meanwhile()
        assert [task.attempt for task in store.group("g")] == [0]
        go_on.set()


def test_check_tells_of_a_lost_claim_and_the_handler_may_let_it_through(shop: Shop) -> None:
    shop.add(Add("g"))
    told: list[BaseException] = []

    def handle(held: Any) -> None:
        taken: Task = shop.call("update", held.task.owner, changes=[Change(held.id)])[0]
        assert taken.id not in held.ids
        until(held.lost.is_set)
        try:
            held.check()
        except ClaimLost as error:
            told.append(error)
            raise

    with shop.works(handle, for_s=0.05) as made:
        until(lambda: made.lost == 1)
        made.stop()
    assert told
