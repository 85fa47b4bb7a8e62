"""What each error of the store is over HTTP, and what a balancer is told."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from loopservice import Holding, on_loop
from taskstores import FailingJournal

from slotkeeper.database import Unavailable
from slotkeeper.database.errors import DatabaseError, LoginRefused, StoreFull
from slotkeeper.errors import SlotkeeperError
from slotkeeper.taskstore import (
    Fenced,
    Interrupted,
    JournalFailed,
    JournalFull,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    TaskStoreError,
)
from slotkeeper.taskstore.journal import Unsettled
from slotkeeper.taskstore.service.failures import answered_error
from slotkeeper.taskstore.wire import PROBLEMS

ADD = {"clientid": 7, "adds": [{"group": "g"}]}
PREFIX = "urn:slotkeeper:problem:"


def problem(said: httpx2.Response) -> str:
    """Return what a problem document names."""
    document = said.json()
    assert said.headers["content-type"] == "application/problem+json"
    assert document["status"] == said.status_code
    assert all((document["title"], document["detail"]))
    assert ("retry-after" in said.headers) == (said.status_code == 503)
    return str(document["type"].removeprefix(PREFIX))


@pytest.mark.parametrize(
    ("raised", "status", "name"),
    [
        (JournalFailed(), 503, "journal-failed"),
        (JournalFull(), 503, "journal-full"),
        (Unavailable(), 503, "unavailable"),
        (LoginRefused(), 503, "unavailable"),
        (StoreFull(), 503, "unavailable"),
        (DatabaseError(), 503, "unavailable"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_what_did_not_happen_is_503_and_may_be_sent_again(raised: Exception, status: int, name: str) -> None:
    journal = FailingJournal()
    async with on_loop(journal) as service:
        journal.failures = [raised]

        said = await service.http.post("/update", json=ADD)

        assert (said.status_code, problem(said)) == (status, name)
        assert said.headers["retry-after"] == "1"
        assert (await service.http.get("/groups")).json() == []
        assert (await service.http.get("/readyz")).status_code == 200
        assert (await service.http.post("/update", json=ADD)).status_code == 200


async def test_an_unknown_outcome_is_504() -> None:
    journal = FailingJournal()
    async with on_loop(journal) as service:
        journal.failures, journal.settled = [Unsettled()], [True]

        said = await service.http.post("/update", json=ADD)

        assert (said.status_code, problem(said)) == (504, "outcome-unknown")
        assert (await service.http.get("/groups")).json() == ["g"]


async def test_a_store_that_is_busy_is_503() -> None:
    journal = Holding()
    async with on_loop(journal, timeout_s=0.2) as service:
        update = asyncio.create_task(service.http.post("/update", json=ADD))
        await journal.held.wait()

        said = await service.http.get("/groups")

        assert (said.status_code, problem(said)) == (503, "store-busy")
        journal.go.set()
        assert (await update).status_code == 200
        assert (await service.http.get("/groups")).json() == ["g"]


async def test_a_store_that_is_fenced_is_not_ready() -> None:
    journal = FailingJournal()
    async with on_loop(journal) as service:
        assert (await service.http.get("/readyz")).json() == {"status": "ready"}
        journal.failures = [Fenced()]

        answers = [await service.http.post("/update", json=ADD) for _ in range(2)]
        answers += [await service.http.get(path) for path in ("/groups", "/readyz", "/stats")]

        assert {(said.status_code, problem(said)) for said in answers} == {(503, "fenced")}
        assert (await service.http.get("/healthz")).json() == {"status": "ok"}


async def test_a_store_that_is_closed_is_not_ready() -> None:
    async with on_loop() as service:
        await service.store.close()

        answers = [await service.http.post(path, json=ADD) for path in ("/update", "/flush", "/snapshot")]
        answers += [await service.http.get(path) for path in ("/groups", "/readyz", "/stats", "/tasks", "/group/g")]

        assert {(said.status_code, problem(said)) for said in answers} == {(503, "store-closed")}


def surprise() -> float:
    """Draw no lot."""
    raise KeyError("surprise")


async def test_a_store_that_was_interrupted_is_not_ready() -> None:
    claim = {"clientid": 7, "group": "g", "duration": 1}
    async with on_loop(dice=surprise) as service:
        await service.http.post("/update", json={"clientid": 7, "adds": [{"group": "g"}] * 2})
        said = await service.http.post("/claim", json=claim)
        assert (said.status_code, problem(said)) == (500, "unexpected")
        assert "surprise" not in said.text

        answers = [await service.http.post("/update", json=ADD), await service.http.get("/readyz")]

        assert {(said.status_code, problem(said)) for said in answers} == {(503, "interrupted")}


def test_every_error_of_a_running_store_has_a_name_of_its_own() -> None:
    kinds = (StoreBusy, OutcomeUnknown, Fenced, JournalFull, JournalFailed, StoreClosed, Interrupted, Unavailable)

    assert {kind for kind, _ in PROBLEMS.values()} == set(kinds)
    for name, (kind, status) in PROBLEMS.items():
        response = answered_error(kind())
        assert response is not None
        assert (response.status_code, name.encode() in response.body) == (status, True)


def test_what_nobody_foresaw_is_500_and_stays_in_the_log() -> None:
    assert answered_error(TaskStoreError()) is None
    assert answered_error(SlotkeeperError()) is None
