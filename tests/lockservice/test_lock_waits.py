"""Waits: whose client leaves, whose node stops, whose connection is lost."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from eventually import until
from locknodes import RunningNode, new_database, running_node

from slotkeeper.locktable import Grant
from slotkeeper.locktable.service import waits
from slotkeeper.locktable.service.waits import Waits

Ask = Callable[..., httpx2.Response]
LOCK = "/api/cluster/lock"


def waiting_in(node: RunningNode) -> int:
    found: int = node.node.speaking.table.waiting
    return found


def left_hanging(node: RunningNode, body: str) -> socket.socket:
    """Ask over a connection that the test can cut."""
    host, port = node.url.removeprefix("http://").split(":")
    sock = socket.create_connection((host, int(port)))
    head = f"POST {LOCK} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    sock.sendall((head + body).encode())
    return sock


def test_who_leaves_without_a_request_id_leaves_the_line_at_once(ask: Ask, node: RunningNode, name: str) -> None:
    ask("POST", LOCK, json={"name": name})

    with left_hanging(node, f'{{"name": "{name}", "wait": "1m"}}'):
        until(lambda: waiting_in(node) == 1)

    until(lambda: waiting_in(node) == 0, bound_s=waits.KEEP_S / 2)


def test_who_loses_its_connection_keeps_its_place_for_a_moment(ask: Ask, node: RunningNode, name: str) -> None:
    lock = ask("POST", LOCK, json={"name": name}).json()
    asked = f'{{"name": "{name}", "wait": "1m", "request": "r1"}}'

    with left_hanging(node, asked):
        until(lambda: waiting_in(node) == 1)
    behind = ask("POST", LOCK, json={"name": name}).json()
    ask("DELETE", LOCK, params={"name": name, "id": lock["id"]})
    granted = ask("POST", LOCK, content=asked.encode())

    assert behind["ahead"] == 1
    assert (granted.status_code, granted.json()["request"]) == (200, "r1")


def test_a_place_is_not_kept_for_ever(ask: Ask, node: RunningNode, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "KEEP_S", 0.2)
    ask("POST", LOCK, json={"name": name})

    assert ask("POST", LOCK, json={"name": name, "wait": "1m", "request": "r1", "slice_ms": 20}).status_code == 202
    assert waiting_in(node) == 1

    until(lambda: waiting_in(node) == 0)


def test_a_node_that_stops_ends_waits_with_503(tmp_path: Path) -> None:
    answers: list[httpx2.Response] = []
    with running_node(new_database(tmp_path)) as node, httpx2.Client(trust_env=False, timeout=30) as http:
        http.post(f"{node.url}{LOCK}", json={"name": "a"})
        asked = {"name": "a", "wait": "1m"}
        thread = threading.Thread(target=lambda: answers.append(http.post(f"{node.url}{LOCK}", json=asked)))
        thread.start()
        until(lambda: waiting_in(node) == 1)
        kept = http.post(f"{node.url}{LOCK}", json={**asked, "request": "r1", "slice_ms": 20})
        node.stop()
        thread.join()

    assert kept.status_code == 202
    (answer,) = answers
    assert (answer.status_code, answer.json()["title"]) == (503, "Lock table")
    assert "stopping" in answer.json()["detail"]


def test_who_waits_is_told_what_comes_of_it() -> None:
    async def refused() -> Grant:
        raise LookupError("a")

    async def main() -> None:
        with pytest.raises(LookupError, match="a"):
            await Waits().outcome(refused(), keep=True, slice_s=1.0)

    asyncio.run(main())


def test_the_end_ends_all_that_wait_on() -> None:
    ended: list[str] = []

    async def never(name: str) -> str:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(name)
        return name

    async def main() -> None:
        waiting = Waits()
        assert await waiting.outcome(never("a"), keep=True, slice_s=0.01) is None
        cancelled = [asyncio.ensure_future(waiting.outcome(never(name), keep=name == "b")) for name in ("b", "c")]
        await asyncio.sleep(0)
        for task in cancelled:
            task.cancel()
        await asyncio.wait(cancelled)
        assert (len(waiting), ended) == (2, ["c"])
        await waiting.end()
        assert len(waiting) == 0

    asyncio.run(main())
    assert sorted(ended) == ["a", "b", "c"]
