"""Requests that are sent again."""

from __future__ import annotations

import asyncio

import pytest
from eventually import soon
from loopservice import client, on_loop
from taskstores import FailingJournal

from slotkeeper.taskstore import Add, JournalFailed
from slotkeeper.taskstore.journal import Unsettled

ADD = {"clientid": 7, "adds": [{"group": "g"}]}
KEY = {"idempotency-key": "one"}


async def test_a_repeat_is_answered_and_not_carried_out() -> None:
    async with on_loop() as service:
        first = await service.http.post("/update", json=ADD, headers=KEY)
        again = await service.http.post("/update", json=ADD, headers=KEY)
        other = await service.http.post("/update", json=ADD, headers={"idempotency-key": "two"})

        assert (again.status_code, again.json()) == (200, first.json())
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert other.json()["tasks"][0]["id"] == first.json()["tasks"][0]["id"] + 1
        assert len((await service.http.get("/group/g")).json()) == 2


async def test_a_repeated_claim_gets_the_same_task() -> None:
    claim = {"clientid": 7, "group": "g", "duration": 60_000}
    async with on_loop() as service:
        await service.http.post("/update", json={"clientid": 7, "adds": [{"group": "g"}] * 2})

        first, again = [await service.http.post("/claim", json=claim, headers=KEY) for _ in range(2)]

        assert again.json() == first.json()
        assert len((await service.http.get("/group/g")).json()) == 1


async def test_a_key_belongs_to_one_body_and_one_route() -> None:
    async with on_loop() as service:
        await service.http.post("/update", json=ADD, headers=KEY)

        body = await service.http.post("/update", json={**ADD, "clientid": 8}, headers=KEY)
        route = await service.http.post("/claim", json={"clientid": 7, "group": "g", "duration": 1}, headers=KEY)

        assert (body.status_code, body.json()["type"]) == (422, "urn:slotkeeper:problem:idempotency-key")
        assert route.status_code == 200
        assert len(route.json()["tasks"]) == 1


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_has_a_length(key: str) -> None:
    async with on_loop() as service:
        said = await service.http.post("/update", json=ADD, headers={"idempotency-key": key})

        assert (said.status_code, said.json()["type"]) == (422, "urn:slotkeeper:problem:idempotency-key")


async def test_a_refusal_is_repeated_too() -> None:
    async with on_loop() as service:
        delete = {"clientid": 7, "deletes": [1]}
        first = await service.http.post("/update", json=delete, headers=KEY)
        await service.http.post("/update", json=ADD)

        again = await service.http.post("/update", json=delete, headers=KEY)

        assert (first.status_code, again.status_code) == (409, 409)
        assert again.json() == first.json()
        assert (await service.http.post("/update", json=delete)).status_code == 200


async def test_what_did_not_happen_is_tried_again_and_what_nobody_knows_is_not() -> None:
    journal = FailingJournal()
    async with on_loop(journal) as service:
        journal.failures = [JournalFailed(), Unsettled()]
        journal.settled = [True]

        said = [(await service.http.post("/update", json=ADD, headers=KEY)).status_code for _ in range(3)]

        assert said == [503, 504, 504]
        assert len((await service.http.get("/group/g")).json()) == 1


async def test_a_repeat_waits_for_the_first_one() -> None:
    claim = {"clientid": 7, "group": "g", "duration": 60_000, "wait": 60_000}
    async with on_loop() as service, client(service.url) as other:
        requests = [asyncio.create_task(http.post("/claim", json=claim, headers=KEY)) for http in (service.http, other)]
        await soon(lambda: len(service.server.server_state.tasks) == 2)

        await service.store.update("me", adds=[Add("g"), Add("g")])
        first, again = [await request for request in requests]

        assert again.json() == first.json()
        assert len((await service.http.get("/group/g")).json()) == 1


async def test_a_repeat_takes_the_place_of_one_whose_client_is_gone() -> None:
    claim = {"clientid": 7, "group": "g", "duration": 60_000, "wait": 60_000}
    async with on_loop() as service:
        async with client(service.url) as leaver:
            left = asyncio.create_task(leaver.post("/claim", json=claim, headers=KEY))
            await soon(lambda: len(service.server.server_state.tasks) == 1)
            again = asyncio.create_task(service.http.post("/claim", json=claim, headers=KEY))
            await soon(lambda: len(service.server.server_state.tasks) == 2)
            left.cancel()
            await asyncio.wait([left])
        await soon(lambda: len(service.server.server_state.tasks) == 1)

        await service.store.update("me", adds=[Add("g")])

        [task] = (await again).json()["tasks"]
        assert (task["ownerid"], task["attempt"]) == (7, 1)
