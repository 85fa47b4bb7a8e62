"""A worker whose store is a client of the task service: the same promises over HTTP."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from eventually import until
from servedtasks import served
from workshops import BOUND_S, renewed

from slotkeeper.taskstore import Add, AsyncWorker, MemoryJournal, Outcome, TaskStore, Worker
from slotkeeper.taskstore.remote import AsyncTaskClient, TaskClient


def work(face: str, url: str, handler: Any, stop_after: int, **options: Any) -> Any:
    """Let a worker do so many tasks over HTTP, and return it."""
    options = {"wait_s": 0.2, "for_s": 30, "retry_s": 0.01, **options}
    if face == "threads":
        with TaskClient(url, timeout_s=2.0) as client:
            worker = Worker(client, "g", handler, **options)
            worker.start()
            until(lambda: worker.done >= stop_after)
            worker.stop()
            worker.join()
            return worker
    return asyncio.run(work_in_loop(url, handler, stop_after, **options))


async def work_in_loop(url: str, handler: Any, stop_after: int, **options: Any) -> Any:
    """Do as `work` does, in a loop."""

    async def handle(held: Any) -> Any:
        return await asyncio.to_thread(handler, held)

    async with AsyncTaskClient(url, timeout_s=2.0) as client:
        worker = AsyncWorker(client, "g", handle, **options)
        async with worker:
            await asyncio.to_thread(until, lambda: worker.done >= stop_after)
        return worker


def test_tasks_are_done_and_renewed_over_http(face: str) -> None:
    seen: list[Any] = []

    def handle(held: Any) -> Outcome:
        renewed(held, 2)
        seen.append(held)
        return Outcome(adds=[Add("done", held.data)])

    with served() as service:
        with TaskClient(service.url) as client:
            client.update("me", adds=[Add("g", b"x"), Add("g", b"y")])
        worker = work(face, service.url, handle, 2, for_s=1.5, concurrency=2)
        with TaskClient(service.url) as client:
            assert sorted(task.data for task in client.every_task()) == [b"x", b"y"]
            assert client.groups() == ["done"]
    assert (worker.failed, worker.lost) == (0, 0)
    assert {held.task.owner for held in seen} <= {f"{worker.owner}/1", f"{worker.owner}/2"}


def test_a_service_that_is_away_for_a_while_is_waited_for_and_the_end_recorded_once(face: str) -> None:
    journal = MemoryJournal(keep=True)
    begun, away = threading.Event(), threading.Event()

    def handle(held: Any) -> Outcome:
        begun.set()
        assert away.wait(BOUND_S)
        return Outcome(adds=[Add("done")])

    with TaskStore(journal) as store:
        store.update("me", adds=[Add("g")])
    made: list[Any] = []
    with served(journal) as first:
        thread = threading.Thread(target=lambda: made.append(work(face, first.url, handle, 1)))
        thread.start()
        assert begun.wait(BOUND_S)
    away.set()
    with served(journal, port=first.port):
        thread.join(BOUND_S)
        assert not thread.is_alive()
    with TaskStore(journal) as store:
        assert [task.group for task in store.every_task()] == ["done"]
    assert made[0].lost == 0
