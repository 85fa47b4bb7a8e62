"""A client's first use of a semaphore reads what it is: once, however many ask at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from contract.clients import some_owner
from simulator.client import DOMAIN
from simulator.history import START_MS
from simulator.stage import NAME, Actor, Stage

from slotkeeper import schema
from slotkeeper.database import Batch, Table, delete, insert, open_store
from slotkeeper.semaphore import Client, NoSuchSemaphore
from slotkeeper.semaphore.operations import Granted
from slotkeeper.semaphore.rows import METADATA

MANY = 20


class Counted:
    """Counts how often something that takes a table reads what semaphores are."""

    def __init__(self, read: Any) -> None:
        self._read, self.count = read, 0

    def __call__(self, table: Table, *rest: Any, **named: Any) -> Any:
        self.count += table is METADATA
        return self._read(table, *rest, **named)


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A semaphore of enough slots."""
    stage = Stage(MANY)
    yield stage
    stage.close()


@pytest.fixture
def one(stage: Stage) -> Actor:
    """A client that has not used it yet."""
    return stage.actor("one")


def counted(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Count an actor's reads."""
    reads = Counted(actor.network.read)
    monkeypatch.setattr(actor.network, "read", reads)
    return reads


def test_tasks_that_come_at_once_share_one_reading(stage: Stage, one: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted(one, monkeypatch)
    asked = [one.acquire(number) for number in range(MANY)]

    assert all(isinstance(stage.answer(task), Granted) for task in asked)
    assert reads.count == 1


def test_threads_that_come_at_once_share_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    store, together = open_store("sqlite:///:memory:"), Barrier(MANY)
    schema.setup(store)
    with Client(store) as client:
        client.create("gpu", MANY)
        reads = Counted(store.read_begun)
        monkeypatch.setattr(store, "read_begun", reads)

        def acquire(_: int) -> object:
            together.wait(10)
            return client.try_acquire("gpu", some_owner())

        with ThreadPoolExecutor(MANY) as threads:
            assert None not in list(threads.map(acquire, range(MANY)))
    store.close()
    assert reads.count == 1


@pytest.mark.parametrize("trouble", ["fails", "is cancelled"])
def test_those_who_share_a_reading_that_comes_to_nothing_read_again(stage: Stage, one: Actor, trouble: str) -> None:
    one.network.reads.append("down" if trouble == "fails" else "slow")
    first, second = one.acquire(1), one.acquire(2)
    stage.passes(0.0)
    if trouble == "is cancelled":
        stage.cancel(first)

    assert isinstance(stage.answer(second, within_s=0.5), Granted)


def test_semaphore_that_a_shared_reading_does_not_show_may_be_there_since(stage: Stage, one: Actor) -> None:
    write(stage, delete((NAME,), expect={"size": (MANY,)}))
    one.network.reads.append("slow")
    early = one.acquire(1)
    stage.passes(0.1)
    values = {"size": MANY, "bucket_size": MANY, "created_time": START_MS}
    write(stage, insert((NAME,), values, absent=True))
    late = one.acquire(2)

    with pytest.raises(NoSuchSemaphore):
        stage.answer(early)
    assert isinstance(stage.answer(late), Granted)


def write(stage: Stage, change: Any) -> None:
    """Change what semaphores there are, as another client would."""
    stage.store.commit(Batch(METADATA, (DOMAIN,), (change,)))
