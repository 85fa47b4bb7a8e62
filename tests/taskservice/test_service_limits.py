"""How much a request may ask for, who may ask, and what is measured of it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx2
import pytest
from loopservice import client, on_loop

from slotkeeper.taskstore.service import Limits

SMALL = Limits(most_bytes=2_000, most_named=5, most_wait_s=1.5)
ADD = {"clientid": 7, "adds": [{"group": "g"}]}
ODD = ("PROPFIND", "MKCOL", "LOCK")  # of the methods that a server takes
TOKEN = "correct-horse-battery-staple"


@pytest.mark.parametrize("path", ["/update", "/claim", "/renew", "/release"])
async def test_a_body_that_is_too_large_is_413(path: str) -> None:
    async with on_loop(limits=SMALL) as service:
        announced = await service.http.post(path, content=b" " * 2_001)
        chunked = await service.http.post(path, content=_pieces(100))
        just = await service.http.post(path, content=b" " * 2_000)

        for said in (announced, chunked):
            assert (said.status_code, said.json()["type"]) == (413, "urn:slotkeeper:problem:body-too-large")
            assert "2000 bytes" in said.json()["detail"]
        assert just.status_code == 422
        assert (await service.http.get("/healthz")).status_code == 200


async def _pieces(number: int) -> Any:
    for _ in range(number):
        yield b" " * 100


@pytest.mark.parametrize(
    "parts",
    [
        {"adds": [{"group": "g"}] * 6},
        {"adds": [{"group": "g"}] * 3, "deletes": [1, 2, 3]},
        {"updates": [{"id": 1}], "depends": [1, 2, 3, 4, 5]},
    ],
)
async def test_an_update_that_names_too_much_is_a_bug(parts: dict[str, Any]) -> None:
    async with on_loop(limits=SMALL) as service:
        said = await service.http.post("/update", json={"clientid": 7, **parts})
        just = await service.http.post("/update", json={"clientid": 7, "adds": [{"group": "g"}] * 5})

        assert (said.status_code, said.json()["tasks"]) == (422, None)
        assert said.json()["error"]["bugs"] == ["an update names at most 5 tasks and groups here, not 6"]
        assert just.status_code == 200


async def test_a_look_and_a_claim_that_name_too_much_are_told() -> None:
    async with on_loop(limits=SMALL) as service:
        look = await service.http.get("/tasks/1,2,3,4,5,6")
        claim = await service.http.post("/claim", json={"clientid": 7, "groups": list("abcdef"), "duration": 1})

        assert (look.status_code, "at most" in look.json()["detail"]) == (422, True)
        assert (claim.status_code, "at most 5" in claim.json()["error"]["bugs"][0]) == (422, True)


async def test_a_claim_that_would_wait_too_long_is_told_how_long_it_may() -> None:
    async with on_loop(limits=SMALL) as service:
        said = await service.http.post("/claim", json={"clientid": 7, "group": "g", "duration": 1, "wait": 1501})

        assert said.status_code == 422
        assert said.json()["error"]["bugs"] == ["a claim waits 0 to 1500 ms here, not 1501; ask again after that"]


async def test_who_knows_no_token_learns_nothing() -> None:
    async with on_loop(tokens={TOKEN: None}) as service, client(service.url) as known:
        known.headers["authorization"] = f"Bearer {TOKEN}"
        assert (await known.post("/update", json=ADD)).status_code == 200

        for shown in (None, "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"):
            headers = {"authorization": shown} if shown is not None else {}
            for method, path in (("GET", "/groups"), ("GET", "/metrics"), ("GET", "/nowhere"), ("POST", "/update")):
                said = await service.http.request(method, path, headers=headers, json=ADD)
                assert (said.status_code, said.headers["www-authenticate"]) == (401, "Bearer")
                assert said.json()["type"] == "urn:slotkeeper:problem:token"
        assert [task["id"] for task in (await known.get("/group/g")).json()] == [1]
        assert (await known.get("/groups", headers={"authorization": f"bearer  {TOKEN}"})).status_code == 200


async def test_whether_it_lives_is_for_everybody() -> None:
    async with on_loop(tokens={TOKEN: None}) as service:
        assert (await service.http.get("/healthz")).json() == {"status": "ok"}
        assert (await service.http.get("/readyz")).json() == {"status": "ready"}


async def test_a_web_page_cannot_use_a_service_without_token() -> None:
    async with on_loop() as service:
        said = await service.http.post("/update", json=ADD, headers={"origin": "http://example.org"})

        assert (said.status_code, said.json()["type"]) == (403, "urn:slotkeeper:problem:web-page")
        assert (await service.http.get("/groups")).json() == []


async def test_metrics_count_by_route_and_no_name_makes_a_label() -> None:
    async with on_loop() as service:
        await service.http.post("/update", json=ADD)
        for number, method in enumerate(("MKCOL", "OPTIONS", "PURGE")):
            await service.http.get(f"/group/name-{number}")
            await service.http.get(f"/nowhere/name-{number}")
            await service.http.request(method, "/groups")
        waiting = asyncio.create_task(
            service.http.post("/claim", json={"clientid": 7, "group": "none", "duration": 1, "wait": 60_000})
        )
        text = await _metrics(service.http, "slotkeeper_tasks_claims_waiting 1.0")

        counts = dict(re.findall(r"^slotkeeper_tasks_request_seconds_count\{(.*)\} (\d+)\.0$", text, re.MULTILINE))
        assert counts['method="POST",route="/update",status="200"'] == "1"
        assert counts['method="GET",route="/group/{name}",status="200"'] == "3"
        assert counts['method="GET",route="other",status="404"'] == "3"
        assert counts['method="other",route="other",status="405"'] == "3"
        assert "name-" not in text
        for shown in ("requests_under_way 2.0", "tasks 1.0", "last_id 1.0", "behind 0.0", "behind_seconds 0.0"):
            assert f"\nslotkeeper_tasks_{shown}\n" in text
        service.stopping.set()
        assert (await waiting).json() == {"tasks": None, "error": None}


async def test_metrics_of_a_closed_store_are_those_of_the_service() -> None:
    async with on_loop() as service:
        await service.store.close()

        text = (await service.http.get("/metrics")).text

        assert "slotkeeper_tasks_claims_waiting 0.0" in text
        assert "slotkeeper_tasks_tasks" not in text


async def _metrics(http: httpx2.AsyncClient, wanted: str) -> str:
    async with asyncio.timeout(10):
        while wanted not in (text := (await http.get("/metrics")).text):
            pass
    return text


async def test_the_description_names_every_request_and_every_type() -> None:
    async with on_loop() as service:
        document = (await service.http.get("/openapi.json")).json()

    assert document["openapi"].startswith("3.1")
    paths = (
        "/groups /task/{id} /tasks/{ids} /group/{name} /update /claim /renew /release /snapshot /flush /stats /tasks"
    )
    assert set(paths.split()) | {"/healthz", "/readyz", "/metrics"} == set(document["paths"])
    schemas = document["components"]["schemas"]
    assert {"id", "group", "data", "data_base64", "timespec", "ownerid"} <= set(schemas["TaskDocument"]["properties"])
    assert schemas["UpdateRequest"]["required"] == ["clientid"]
    for reference in re.findall(r'"#/components/schemas/(\w+)"', str(document).replace("'", '"')):
        assert reference in schemas
