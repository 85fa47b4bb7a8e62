"""Each path of the lock service: its statuses, its documents, its problems."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from locknodes import RunningNode

Ask = Callable[..., httpx2.Response]
LOCK = "/api/cluster/lock"
PROBLEM = "application/problem+json"
FIELDS = {"name", "id", "node", "holder", "acquired_at", "expires_at", "expires_in", "expires_in_ms", "fence"}


def problem(answer: httpx2.Response, status: int, title: str) -> dict[str, Any]:
    """Return a problem document, which must have this status and title."""
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found["status"], found["title"]) == (status, status, title)
    assert answer.headers["content-type"] == PROBLEM
    assert found["type"].startswith("urn:slotkeeper:problem:")
    return found


def acquired(ask: Ask, name: str, **more: object) -> dict[str, Any]:
    answer = ask("POST", LOCK, json={"name": name, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


# --- acquire ------------------------------------------------------------------------------------------------------------


def test_a_lock_is_granted_with_all_its_fields(ask: Ask, name: str) -> None:
    lock = acquired(ask, name, holder="job 7", lease="1m30s", request="r1")

    assert set(lock) == FIELDS | {"request", "waited_ms", "lasts_ms"}
    assert (lock["name"], lock["holder"], lock["node"], lock["request"]) == (name, "job 7", "n1", "r1")
    assert lock["expires_in"].startswith("1m2") or lock["expires_in"] == "1m30s"
    assert 85_000 < lock["expires_in_ms"] <= lock["lasts_ms"] <= 90_000
    assert lock["waited_ms"] < 5_000
    acquired_at, expires_at = (datetime.fromisoformat(lock[each]) for each in ("acquired_at", "expires_at"))
    assert (expires_at - acquired_at).total_seconds() == 90
    assert abs((datetime.now(UTC) - acquired_at).total_seconds()) < 60


@pytest.mark.parametrize(
    ("asked", "lease_s"),
    [
        ({}, 30),
        ({"lease": ""}, 30),
        ({"lease": "0"}, 30),
        ({"lease": "-5s"}, 30),
        ({"lease": "500ms"}, 0.5),
        ({"lease": "1h"}, 600),
        ({"lease_ms": 2_500}, 2.5),
        ({"lease": "9s", "lease_ms": 2_500}, 2.5),
    ],
)
def test_leases_as_they_are_asked_for(ask: Ask, name: str, asked: dict[str, object], lease_s: float) -> None:
    lock = acquired(ask, name, **asked)

    assert lock["lasts_ms"] == pytest.approx(lease_s * 1000, abs=300)


def test_a_held_lock_is_409_with_its_holder(ask: Ask, name: str) -> None:
    lock = acquired(ask, name, holder="job 7")

    found = problem(ask("POST", LOCK, json={"name": name}), 409, "Lock held")

    assert found["detail"].startswith(f"lock {name} is held by job 7 on n1 until 2")
    assert (found["lock"]["id"], found["lock"]["holder"]) == (lock["id"], "job 7")


def test_a_wait_that_ends_is_409(ask: Ask, name: str) -> None:
    acquired(ask, name)

    began = datetime.now()
    problem(ask("POST", LOCK, json={"name": name, "wait": "300ms"}), 409, "Lock held")

    assert 0.3 <= (datetime.now() - began).total_seconds() < 10


def test_who_waits_gets_the_lock_when_its_lease_ends(ask: Ask, name: str) -> None:
    first = acquired(ask, name, lease="300ms")

    second = acquired(ask, name, wait="20s")

    assert second["id"] != first["id"]
    assert second["fence"] > first["fence"]
    assert 100 <= second["waited_ms"] <= 10_000
    assert second["lasts_ms"] == pytest.approx(30_000 + second["waited_ms"], abs=50)


def test_a_request_repeated_under_its_id_gets_the_same_lock(ask: Ask, name: str) -> None:
    first, again = (acquired(ask, name, request="r1") for _ in range(2))

    assert (again["id"], again["fence"], again["again"]) == (first["id"], first["fence"], True)
    assert "again" not in first


def test_a_released_request_is_refused(ask: Ask, name: str) -> None:
    acquired(ask, name, request="r1")
    assert ask("DELETE", LOCK, params={"name": name, "request": "r1"}).status_code == 204

    found = problem(ask("POST", LOCK, json={"name": name, "request": "r1"}), 409, "Already released")

    assert "r1" in found["detail"]


def test_a_request_that_waits_on_keeps_its_place(ask: Ask, name: str) -> None:
    lock = acquired(ask, name)
    asked: dict[str, Any] = {"request": "r1", "wait": "30s", "slice_ms": 100}

    waiting = ask("POST", LOCK, json={"name": name, **asked})
    assert (waiting.status_code, waiting.json()) == (202, {"waiting": True, "kept_ms": 5000})
    behind = problem(ask("POST", LOCK, json={"name": name}), 409, "Lock held")
    assert behind["ahead"] == 1
    assert ask("DELETE", LOCK, params={"name": name, "id": lock["id"]}).status_code == 204
    problem(ask("POST", LOCK, json={"name": name}), 409, "Lock held")

    assert acquired(ask, name, **asked)["request"] == "r1"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"{", "Input data was truncated"),
        (b"[]", "Expected `object`"),
        (b'{"name": 1}', "Expected `str`"),
        (b'{"name": "a", "leese": "1s"}', "unknown field `leese`"),
        (b'{"name": "a", "lease": "soon"}', "'soon' is no duration"),
        (b'{"name": "a", "wait": "1d"}', "'1d' is no duration"),
        (b'{"name": ""}', "a lock needs a name"),
        (b"{}", "a lock needs a name"),
        (b'{"name": "a\\nb"}', "printable characters"),
        (b'{"name": "a", "node": "n9"}', "node is set by the nodes"),
        (b"\xff\xfe", "malformed"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value)[:12],
)
def test_what_is_no_request_is_400(ask: Ask, body: bytes, detail: str) -> None:
    found = problem(ask("POST", LOCK, content=body), 400, "Invalid Body")

    assert detail.lower() in found["detail"].lower()


def test_a_body_is_not_without_end(ask: Ask) -> None:
    assert ask("POST", LOCK, json={"name": "a", "holder": "x" * 100_000}).status_code == 413


# --- renew --------------------------------------------------------------------------------------------------------------


def test_a_lease_is_counted_anew(ask: Ask, name: str) -> None:
    lock = acquired(ask, name, lease="20s")

    renewed = ask("PUT", LOCK, json={"name": name, "id": lock["id"], "lease": "1m"})

    assert renewed.status_code == 200
    assert renewed.json()["lasts_ms"] == pytest.approx(60_000, abs=100)
    assert (renewed.json()["id"], renewed.json()["fence"]) == (lock["id"], lock["fence"])


def test_what_is_not_held_is_not_renewed(ask: Ask, name: str) -> None:
    found = problem(ask("PUT", LOCK, json={"name": name, "id": "other"}), 404, "Not held")

    assert "other" in found["detail"]


def test_a_renewal_names_its_lock(ask: Ask, name: str) -> None:
    problem(ask("PUT", LOCK, json={"name": name}), 400, "Invalid Body")
    problem(ask("PUT", LOCK, json={"id": "a"}), 400, "Invalid Body")
    problem(ask("PUT", LOCK, json={"name": name, "id": "a", "lease": "x"}), 400, "Invalid Body")


# --- release ------------------------------------------------------------------------------------------------------------


def test_a_release_is_204_and_the_next_404(ask: Ask, name: str) -> None:
    lock = acquired(ask, name)
    named = {"name": name, "id": lock["id"]}

    problem(ask("DELETE", LOCK, params={"name": name, "id": "other"}), 404, "Not held")
    first = ask("DELETE", LOCK, params=named)
    second = problem(ask("DELETE", LOCK, params=named), 404, "Not held")

    assert (first.status_code, first.content) == (204, b"")
    assert lock["id"] in second["detail"]
    assert acquired(ask, name)["fence"] > lock["fence"]


def test_a_release_by_request_gives_a_place_in_line_up(ask: Ask, name: str) -> None:
    acquired(ask, name)
    assert ask("POST", LOCK, json={"name": name, "request": "r1", "wait": "30s", "slice_ms": 50}).status_code == 202

    assert ask("DELETE", LOCK, params={"name": name, "request": "r1"}).status_code in (204, 404)

    assert problem(ask("POST", LOCK, json={"name": name}), 409, "Lock held").get("ahead", 0) == 0


@pytest.mark.parametrize("params", [{}, {"name": "a"}, {"id": "a"}])
def test_a_release_names_its_lock(ask: Ask, params: dict[str, str]) -> None:
    problem(ask("DELETE", LOCK, params=params), 400, "Invalid Body")


# --- looking ------------------------------------------------------------------------------------------------------------


def test_the_list_has_what_is_held(ask: Ask, name: str) -> None:
    lock = acquired(ask, name, holder="job 7")

    listed = ask("GET", LOCK).json()

    assert set(listed) == {"kind", "items"}
    assert listed["kind"] == "ClusterLockList"
    (found,) = [each for each in listed["items"] if each["name"] == name]
    assert set(found) == FIELDS
    assert found["id"] == lock["id"]
    assert [each["name"] for each in listed["items"]] == sorted(each["name"] for each in listed["items"])


def test_a_node_tells_what_it_holds_and_forgets(ask: Ask, name: str) -> None:
    lock = acquired(ask, name)
    path = "/api/node/name/n1/lock"

    before = [each["id"] for each in ask("GET", path).json()["items"]]
    forgotten = [ask("DELETE", path, params={"name": name, "id": each}).status_code for each in (lock["id"], "other")]
    after = [each["id"] for each in ask("GET", path).json()["items"]]

    assert before.count(lock["id"]) == 2  # held here, and granted here
    assert forgotten == [204, 204]
    assert lock["id"] not in after
    assert acquired(ask, name)


def test_a_node_that_is_not_known_is_404(ask: Ask) -> None:
    problem(ask("GET", "/api/node/name/n9/lock"), 404, "No such node")
    problem(ask("DELETE", "/api/node/name/n9/lock", params={"name": "a", "id": "b"}), 404, "No such node")


@pytest.mark.parametrize("params", [{}, {"name": "a"}, {"id": "a"}])
def test_what_is_to_be_forgotten_is_named(ask: Ask, params: dict[str, str]) -> None:
    problem(ask("DELETE", "/api/node/name/n1/lock", params=params), 400, "Invalid Body")


def test_the_status_tells_who_speaks(ask: Ask, node: RunningNode) -> None:
    status = ask("GET", "/api/status").json()

    assert (status["cluster"], status["node"]["node"], status["node"]["address"]) == ("one", "n1", node.url)
    assert status["speaker"] == status["node"]
    assert (status["speaks"], status["rebuilt"], status["epoch"]) == (True, True, 1)


# --- what every service has ---------------------------------------------------------------------------------------------


def test_health_readiness_and_description(ask: Ask) -> None:
    assert ask("GET", "/healthz").json() == {"status": "ok"}
    assert ask("GET", "/readyz").json() == {"status": "ready"}
    described = ask("GET", "/openapi.json").json()
    assert described["info"]["title"] == "slotkeeper locks"
    assert set(described["paths"]) == {
        *(LOCK, "/api/node/name/{node}/lock", "/api/status", "/api/peer"),
        *("/healthz", "/readyz", "/metrics"),
    }
    assert set(described["paths"][LOCK]) == {"get", "post", "put", "delete"}


def test_metrics_have_the_node_and_what_it_granted(ask: Ask, name: str) -> None:
    def value(metric: str) -> float:
        lines = ask("GET", "/metrics").text.splitlines()
        (found,) = [line for line in lines if line.startswith(f"slotkeeper_locks_{metric} ")]
        return float(found.split()[1])

    before = {each: value(each) for each in ("granted", "released", "renewed", "lost")}
    lock = acquired(ask, name)
    held = value("held")
    ask("PUT", LOCK, json={"name": name, "id": lock["id"]})
    ask("PUT", LOCK, json={"name": name, "id": "other"})
    ask("DELETE", LOCK, params={"name": name, "id": lock["id"]})

    assert {each: value(each) - was for each, was in before.items()} == dict.fromkeys(before, 1.0)
    assert held >= 1
    assert (value("speaks"), value("epoch"), value("waiting")) == (1.0, 1.0, 0.0)
    assert 0 < value("rebuild_seconds") < 30


def test_nothing_is_elsewhere(ask: Ask) -> None:
    assert ask("GET", "/api/cluster").status_code == 404
    assert ask("PATCH", LOCK).status_code == 405
