"""Ends: of the service, of a connection, of a client that waits; and a loop that nothing blocks."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
from blockbuster import blockbuster_ctx
from eventually import soon
from loopservice import Holding, client, on_loop

from slotkeeper.taskstore import Add
from slotkeeper.web.serving import Certificate

ADD = {"clientid": 7, "adds": [{"group": "g"}]}
CLAIM = {"clientid": 8, "group": "g", "duration": 60_000}
WAIT = {**CLAIM, "wait": 60_000}
NOTHING = {"tasks": None, "error": None}


async def test_a_stop_ends_waits_and_answers_what_is_under_way() -> None:
    journal = Holding()
    async with on_loop(journal) as service, client(service.url) as other, client(service.url) as late:
        waiting = asyncio.create_task(service.http.post("/claim", json={**WAIT, "group": "none"}))
        updating = asyncio.create_task(other.post("/update", json=ADD))
        await journal.held.wait()
        await soon(lambda: len(service.server.server_state.tasks) == 2)

        service.server.stop()
        await soon(lambda: bool(service.stopping))
        said = await waiting

        assert (said.status_code, said.json()) == (200, NOTHING)
        assert not service.ended.done()
        with pytest.raises(httpx2.ConnectError):
            await _until_refused(late)
        journal.go.set()
        assert len((await updating).json()["tasks"]) == 1
        await service.stopped()
        assert [task.group for task in await service.store.every_task()] == ["g"]


async def _until_refused(http: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(10):
        while True:
            with suppress(httpx2.RemoteProtocolError, httpx2.ReadError):  # let in at the last moment, and hung up on
                await http.get("/healthz", headers={"connection": "close"})


async def test_a_service_that_stops_is_not_ready_and_lets_nobody_wait() -> None:
    async with on_loop() as service:
        service.stopping.set()

        ready = await service.http.get("/readyz")
        claimed = await service.http.post("/claim", json=WAIT)

        assert (ready.status_code, ready.json()["type"]) == (503, "urn:slotkeeper:problem:stopping")
        assert claimed.json() == NOTHING
        assert (await service.http.post("/update", json=ADD)).status_code == 200
        assert len((await service.http.post("/claim", json=WAIT)).json()["tasks"]) == 1


async def test_what_does_not_end_in_time_is_cut_off() -> None:
    journal = Holding()
    async with on_loop(journal, grace_s=1, timeout_s=0.5) as service:
        updating = asyncio.create_task(service.http.post("/update", json=ADD))
        await journal.held.wait()

        await service.stopped()

        said = await updating
        assert (said.status_code, said.json()["type"]) == (504, "urn:slotkeeper:problem:outcome-unknown")
        journal.go.set()
        journal.settled = [True]
        assert [task.group for task in await service.store.every_task()] == ["g"]


async def test_a_second_word_does_not_wait_for_what_is_under_way() -> None:
    journal = Holding()
    async with on_loop(journal, grace_s=600, timeout_s=5.0) as service:
        updating = asyncio.create_task(service.http.post("/update", json=ADD))
        await journal.held.wait()
        service.server.stop()

        await service.stopped()

        assert not updating.done()
        journal.go.set()
        await updating


async def test_a_waiting_client_that_leaves_gives_its_place_up() -> None:
    async with on_loop() as service:
        async with client(service.url) as leaver:
            left = asyncio.create_task(leaver.post("/claim", json=WAIT))
            await soon(lambda: len(service.server.server_state.tasks) == 1)
            left.cancel()
            await asyncio.wait([left])
        await soon(lambda: not service.server.server_state.tasks)

        await service.store.update("me", adds=[Add("g")])

        assert (await service.store.stats()).waiting == 0
        [task] = await service.store.group("g")
        assert (task.claims, task.owner) == (0, "me")


async def test_what_was_claimed_for_a_client_that_has_left_is_given_back() -> None:
    journal = Holding()
    async with on_loop(journal) as service:
        journal.go.set()
        await service.store.update("me", adds=[Add("g")])
        journal.go.clear()
        journal.held.clear()
        async with client(service.url) as leaver:
            left = asyncio.create_task(leaver.post("/claim", json=CLAIM))
            await journal.held.wait()
            left.cancel()
            await asyncio.wait([left])
        connections: set[Any] = set(service.server.server_state.connections)
        await soon(lambda: all(connection.cycle.disconnected for connection in connections))

        journal.go.set()
        await soon(lambda: not service.server.server_state.tasks)

        [task] = await service.store.group("g")
        assert (task.claims, task.attempt) == (1, 0)
        assert len((await service.http.post("/claim", json=CLAIM)).json()["tasks"]) == 1


async def test_the_service_never_blocks_the_loop(tmp_path: Path) -> None:
    async with on_loop(f"disk:{tmp_path / 'tasks'}", tokens={"t" * 16: None}) as service:
        service.http.headers["authorization"] = f"Bearer {'t' * 16}"
        await _everything(service.http)  # once: the first time, Python imports
        with blockbuster_ctx():
            await _everything(service.http)


async def _everything(http: httpx2.AsyncClient) -> None:
    added = (await http.post("/update", json={"clientid": 8, "adds": [{"group": "g"}] * 3})).json()["tasks"]
    [task] = (await http.post("/claim", json=WAIT, headers={"idempotency-key": str(added[0]["id"])})).json()["tasks"]
    renewal = {"clientid": 8, "id": task["id"], "duration": 1000}
    [task] = (await http.post("/renew", json=renewal)).json()["tasks"]
    assert (await http.post("/release", json={"clientid": 8, "id": task["id"]})).status_code == 200
    for path in ("/snapshot", "/flush"):
        assert (await http.post(path)).status_code == 204
    looks = (
        "/groups",
        f"/task/{added[0]['id']}",
        f"/tasks/{added[0]['id']},7",
        "/group/g",
        "/tasks",
        "/stats",
        "/nowhere",
    )
    for path in (*looks, "/healthz", "/readyz", "/metrics", "/openapi.json"):
        assert (await http.get(path)).status_code in (200, 404)


async def test_a_certificate_makes_it_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    for blob in issued.cert_chain_pems:
        blob.write_to_path(tmp_path / "cert.pem", append=True)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    certificate = Certificate(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))

    async with (
        on_loop(certificate=certificate, verify=trusting, grace_s=600) as service,
        client(service.url) as stranger,
    ):
        assert service.url.startswith("https://127.0.0.1:")
        assert (await service.http.get("/readyz")).json() == {"status": "ready"}
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await stranger.get("/readyz")
        await service.stopped()  # though a client keeps its idle connection
