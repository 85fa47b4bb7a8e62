"""Requests and answers that get lost between a client and a real service: repeated, never doubled, and unknown at last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from lossyproxy import LossyProxy, lossy
from servedtasks import ServedTasks, served
from taskstores import MemoryPlace

from slotkeeper.taskstore import Add, Change, OutcomeUnknown, Task, UpdateError
from slotkeeper.taskstore.remote import ServiceUnreachable, TaskClient


@pytest.fixture
def service() -> Iterator[ServedTasks]:
    """A service."""
    with served() as running:
        yield running


@pytest.fixture
def proxy(service: ServedTasks) -> Iterator[LossyProxy]:
    """A proxy before it, which loses what a test says."""
    with lossy(service.port) as running:
        yield running


@pytest.fixture
def client(proxy: LossyProxy) -> Iterator[TaskClient]:
    """A client that asks through the proxy."""
    with TaskClient(proxy.url, timeout_s=10) as opened:
        yield opened


Change_ = Callable[[TaskClient, Task], object]
CHANGES: dict[str, Change_] = {
    "add": lambda client, task: client.update("me", adds=[Add("g", b"new")]),
    "change": lambda client, task: client.update("me", changes=[Change(task.id, data=b"new")]),
    "delete": lambda client, task: client.update("me", deletes=[task.id]),
    "claim": lambda client, task: client.claim("me", "g", 60),
    "renew": lambda client, task: client.renew("me", task, 60),
    "release": lambda client, task: client.release("me", task, error="no luck"),
}


@pytest.mark.parametrize("lost", ["lose_requests", "lose_answers"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_whose_answer_is_lost_is_made_once(
    client: TaskClient, proxy: LossyProxy, service: ServedTasks, change: str, lost: str
) -> None:
    (task,) = client.update("me", adds=[Add("g", b"old")])
    setattr(proxy, lost, 2)

    told = CHANGES[change](client, task)

    assert proxy.lost == 2
    with TaskClient(service.url) as straight:
        shown = straight.every_task()
        assert straight.stats().last_id == (1 if change == "delete" else 2)  # one change, one id
    if change == "delete":
        assert shown == []
    else:
        assert (told if isinstance(told, Task) else told[0]) == shown[-1]  # type: ignore[index]


def test_a_refusal_whose_answer_is_lost_is_the_same_refusal(client: TaskClient, proxy: LossyProxy) -> None:
    (task,) = client.update("me", adds=[Add("g")])
    proxy.lose_answers = 1

    with pytest.raises(UpdateError) as refused:
        client.update("me", changes=[Change(task.id)], deletes=[70], depends=[80])

    assert (refused.value.deletes, refused.value.depends, refused.value.changes) == ((70,), (80,), ())
    assert proxy.lost == 1


def test_a_look_is_simply_asked_again(client: TaskClient, proxy: LossyProxy) -> None:
    added = client.update("me", adds=[Add("g")])
    proxy.lose_answers = 2

    assert client.every_task() == added


def test_what_stays_lost_is_unknown_and_a_look_tells(proxy: LossyProxy, service: ServedTasks) -> None:
    with TaskClient(proxy.url, timeout_s=0.3) as client:
        client.update("me", adds=[Add("g")])
        proxy.lose_answers = 1000

        with pytest.raises(OutcomeUnknown, match="look before you repeat"):
            client.update("me", adds=[Add("g", b"x")])
        with pytest.raises(OutcomeUnknown):
            client.claim("me", "g", 60)
        with pytest.raises(ServiceUnreachable, match="Nothing was changed"):
            client.groups()

        proxy.lose_answers = 0
        assert sorted(task.data for task in client.group("g", owned=True)) == [b"", b"x"]


def test_a_service_that_was_started_anew_carries_no_repeat_out() -> None:
    place, services = MemoryPlace(), list[ServedTasks]()
    services.append(ServedTasks(place.journal()))

    def start_anew() -> None:
        services[-1].stop()
        services.append(ServedTasks(place.journal(), port=services[0].port))

    try:
        with lossy(services[0].port) as proxy, TaskClient(proxy.url, timeout_s=10) as client:
            client.update("me", adds=[Add("g")])
            proxy.upon_loss, proxy.lose_answers = start_anew, 1

            with pytest.raises(OutcomeUnknown, match="started anew"):
                client.update("me", adds=[Add("g", b"once")])

            assert [task.data for task in client.every_task()] == [b"", b"once"]
            assert client.update("me", adds=[Add("g", b"twice")])[0].data == b"twice"
    finally:
        services[-1].stop()
    assert len(services) == 2


def test_a_service_that_was_started_anew_between_two_calls_is_just_asked() -> None:
    place = MemoryPlace()
    first = ServedTasks(place.journal())
    with TaskClient(first.url, timeout_s=10) as client:
        client.update("me", adds=[Add("g", b"before")])
        first.stop()
        second = ServedTasks(place.journal(), port=first.port)

        try:
            client.update("me", adds=[Add("g", b"after")])
            assert [task.data for task in client.every_task()] == [b"before", b"after"]
        finally:
            second.stop()


def test_threads_over_a_bad_line_lose_and_double_nothing(proxy: LossyProxy, service: ServedTasks) -> None:
    proxy.lose_each = 7
    done: list[bytes] = []
    with TaskClient(proxy.url, timeout_s=20) as client, ThreadPoolExecutor(4) as threads:

        def add(n: int) -> None:
            client.update("me", adds=[Add("g", b"%d" % n)])

        def work(name: str) -> None:
            while (task := client.claim(name, "g", 60)) is not None:
                client.update(name, deletes=[task.id])
                done.append(task.data)

        list(threads.map(add, range(60)))
        list(threads.map(work, ["w1", "w2", "w3", "w4"]))

        assert client.every_task() == []
    assert sorted(done) == sorted(b"%d" % n for n in range(60))
    assert proxy.lost > 10
