"""Three nodes: whichever is asked, the one that speaks grants."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx2
import pytest
from eventually import until
from locknodes import RunningNode, client_of, new_database, running_node, running_nodes

from slotkeeper.locktable import LockHeld
from slotkeeper.web.answers import PIECE

LOCK = "/api/cluster/lock"


def test_a_lock_is_held_through_one_node_and_refused_through_all(
    three: list[RunningNode], http: httpx2.Client, name: str
) -> None:
    lock = http.post(f"{three[1].url}{LOCK}", json={"name": name, "holder": "job 7"}).json()

    for node in three:
        refused = http.post(f"{node.url}{LOCK}", json={"name": name})
        assert (refused.status_code, refused.json()["title"]) == (409, "Lock held")
        assert (refused.json()["lock"]["id"], refused.json()["lock"]["node"]) == (lock["id"], "n2")
        assert name in {each["name"] for each in http.get(f"{node.url}{LOCK}").json()["items"]}
    released = [
        http.delete(f"{node.url}{LOCK}", params={"name": name, "id": lock["id"]}).status_code for node in three[::-1]
    ]
    assert released == [204, 404, 404]


def test_a_lock_is_renewed_through_another_node(three: list[RunningNode], http: httpx2.Client, name: str) -> None:
    lock = http.post(f"{three[1].url}{LOCK}", json={"name": name, "lease": "2s"}).json()

    renewed = http.put(f"{three[2].url}{LOCK}", json={"name": name, "id": lock["id"], "lease": "1m"})
    other = http.put(f"{three[2].url}{LOCK}", json={"name": name, "id": "other"})

    assert (renewed.status_code, renewed.json()["node"], renewed.json()["fence"]) == (200, "n3", lock["fence"])
    assert renewed.json()["lasts_ms"] > 55_000
    assert (other.status_code, other.json()["title"]) == (404, "Not held")


def test_a_node_tells_what_another_one_holds(three: list[RunningNode], http: httpx2.Client, name: str) -> None:
    lock = http.post(f"{three[2].url}{LOCK}", json={"name": name}).json()

    def told(by: RunningNode, of: RunningNode) -> list[str]:
        listed = http.get(f"{by.url}/api/node/name/{of.name}/lock").json()
        return [each["id"] for each in listed["items"] if each["name"] == name]

    assert told(three[1], three[2]) == [lock["id"]]  # held
    assert told(three[1], three[0]) == [lock["id"]]  # granted
    assert told(three[0], three[1]) == []
    for node in three:
        path = f"{three[1].url}/api/node/name/{node.name}/lock"
        assert http.delete(path, params={"name": name, "id": lock["id"]}).status_code == 204
    assert told(three[1], three[2]) == []
    assert http.post(f"{three[1].url}{LOCK}", json={"name": name}).status_code == 200


def test_who_waits_through_one_node_gets_what_is_released_through_another(
    three: list[RunningNode], http: httpx2.Client, name: str
) -> None:
    lock = http.post(f"{three[1].url}{LOCK}", json={"name": name}).json()
    asked = {"name": name, "request": "r1", "wait": "30s", "slice_ms": 50}

    assert http.post(f"{three[2].url}{LOCK}", json=asked).status_code == 202
    http.delete(f"{three[0].url}{LOCK}", params={"name": name, "id": lock["id"]})
    granted = http.post(f"{three[1].url}{LOCK}", json=asked)  # another node is asked than before

    assert (granted.status_code, granted.json()["request"]) == (200, "r1")
    assert granted.json()["fence"] > lock["fence"]


def test_a_long_list_comes_as_a_whole(three: list[RunningNode], http: httpx2.Client, name: str) -> None:
    names = sorted(f"{name}/{number}" for number in range(PIECE + 2))
    for each in names:
        assert http.post(f"{three[0].url}{LOCK}", json={"name": each, "lease": "1m"}).status_code == 200

    for node in three[:2]:
        listed = http.get(f"{node.url}{LOCK}").json()
        assert listed["kind"] == "ClusterLockList"
        assert [each["name"] for each in listed["items"] if each["name"] in set(names)] == names


def test_all_nodes_are_ready_and_know_the_speaker(three: list[RunningNode], http: httpx2.Client) -> None:
    for node in three:
        assert http.get(f"{node.url}/readyz").status_code == 200
        status = http.get(f"{node.url}/api/status").json()
        assert status["speaker"]["node"] == "n1"
        assert status["speaks"] == (node is three[0])
        assert {each["node"] for each in status["members"]} == {"n1", "n2", "n3"}


def test_a_speaker_that_stops_hands_over_and_no_holder_loses_its_lock(tmp_path: Path) -> None:
    database = new_database(tmp_path)
    with running_nodes(database) as nodes, client_of(nodes[1], nodes[2]) as client:
        hold = client.hold("kept", lease_s=5)
        nodes[0].stop()
        began = time.monotonic()
        until(lambda: nodes[1].speaks or nodes[2].speaks)
        assert time.monotonic() - began < 5  # it was told: no lease had to end

        with pytest.raises(LockHeld):
            client.acquire("kept")
        assert client.acquire("new").fence > hold.fence
        assert hold.release()


def test_a_place_in_line_outlives_the_node_through_which_it_was_asked_for(tmp_path: Path) -> None:
    database = new_database(tmp_path)
    with running_nodes(database) as nodes, client_of(nodes[2], nodes[1]) as client, client_of(nodes[0]) as direct:
        first, got = direct.acquire("a"), list[str]()
        waiter = threading.Thread(target=lambda: got.append(client.acquire("a", holder="first", wait_s=60).holder))
        waiter.start()
        until(lambda: nodes[0].node.speaking.table.waiting == 1)
        behind = threading.Thread(target=lambda: got.append(direct.acquire("a", lease_s=1, wait_s=60).holder))
        behind.start()
        until(lambda: nodes[0].node.speaking.table.waiting == 2)
        nodes[2].stop()
        direct.release(first)
        waiter.join()
        direct.release("a", direct.locks()[0].id)
        behind.join()

    assert got == ["first", ""]


def test_a_node_without_a_speaker_grants_nothing(tmp_path: Path, http: httpx2.Client) -> None:
    """Nobody can speak: the seat is held by who does not answer."""
    database = new_database(tmp_path)
    with running_node(database, "n1") as first:
        first.node.speaking.election.end()  # it holds the seat, and does not renew it
        until(lambda: not first.speaks)
        answer = http.post(f"{first.url}{LOCK}", json={"name": "a"})
        ready = http.get(f"{first.url}/readyz")

    assert (answer.status_code, answer.json()["title"], ready.status_code) == (503, "Lock table", 503)
    assert answer.headers["retry-after"] == "1"
