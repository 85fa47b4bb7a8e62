"""The documented contract, row by row, as a program sees it that has read nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from servedtasks import served

NOTHING_BROKEN: Mapping[str, list[Any]] = {"changes": [], "deletes": [], "depends": [], "owned": [], "bugs": []}
HOUR_MS = 3_600_000
ABSENT = 1_000_000_000
PROBLEM = "application/problem+json"
Json = Any


@pytest.fixture(scope="module")
def module_http() -> Iterator[httpx2.Client]:
    """A client of one service for all tests of this module."""
    with served() as service, httpx2.Client(base_url=service.url, timeout=30.0, trust_env=False) as http:
        yield http


@pytest.fixture
def http(module_http: httpx2.Client) -> httpx2.Client:
    """A client of a service that has no tasks."""
    owned: dict[int | str, list[int]] = {}
    for task in map(json.loads, module_http.get("/tasks").content.splitlines()):
        owned.setdefault(task["ownerid"], []).append(task["id"])
    for owner, ids in owned.items():
        assert module_http.post("/update", json={"clientid": owner, "deletes": ids}).status_code == 200
    return module_http


@pytest.fixture
def update(http: httpx2.Client) -> Callable[..., list[Json]]:
    """Make an update that succeeds; return its tasks."""

    def update(clientid: int | str = 7, **parts: Any) -> list[Json]:
        said = http.post("/update", json={"clientid": clientid, **parts})
        assert (said.status_code, said.json()["error"]) == (200, None), said.text
        return said.json()["tasks"]  # type: ignore[no-any-return]

    return update


Update = Callable[..., list[Json]]


def broken(said: httpx2.Response) -> Json:
    """Return what an answer says is broken, without the lists that are empty."""
    answer = said.json()
    assert answer["tasks"] is None
    assert set(answer["error"]) == set(NOTHING_BROKEN)
    return {kind: found for kind, found in answer["error"].items() if found}


def spelled(name: str) -> str:
    """Return a name as a part of a path. Dots too: alone, they would mean the path above."""
    return quote(name, safe="").replace(".", "%2E")


# Looking


def test_a_task_looks_as_documented(http: httpx2.Client, update: Update) -> None:
    [added] = update(7, adds=[{"group": "map", "data": "in.txt:0:4096", "timespec": 1388552400000}])

    shown = http.get(f"/task/{added['id']}").json()

    documented = {"id": added["id"], "group": "map", "data": "in.txt:0:4096", "timespec": 1388552400000, "ownerid": 7}
    ours = {"available_at_ns": 1388552400000 * 1_000_000, "claims": 0, "attempt": 0, "error": ""}
    assert shown == added == documented | ours


def test_groups_are_those_with_a_task_owned_ones_included(http: httpx2.Client, update: Update) -> None:
    assert http.get("/groups").json() == []
    update(adds=[{"group": "b"}, {"group": "a", "timespec": -HOUR_MS}])

    assert http.get("/groups").json() == ["a", "b"]


def test_an_absent_task_is_a_problem_document(http: httpx2.Client) -> None:
    said = http.get(f"/task/{ABSENT}")

    assert (said.status_code, said.headers["content-type"]) == (404, PROBLEM)
    assert said.json() == {
        "type": "urn:slotkeeper:problem:no-such-task",
        "title": "no such task",
        "status": 404,
        "detail": f"There is no task {ABSENT}, or not any more.",
    }


def test_tasks_come_in_the_order_asked_for_and_null_for_an_absent_one(http: httpx2.Client, update: Update) -> None:
    first, second = update(adds=[{"group": "g"}, {"group": "g"}])

    assert http.get(f"/tasks/{second['id']},{ABSENT},{first['id']}").json() == [second, None, first]


@pytest.mark.parametrize("path", ["/task/x", "/task/1.5", "/task/²", "/tasks/1,,2", "/tasks/1,x", "/group/g?limit=-1"])
@pytest.mark.parametrize("more", ["", "&limit=x", "&owned=maybe"])
def test_what_is_no_number_and_no_yes_is_told(http: httpx2.Client, path: str, more: str) -> None:
    said = http.get(f"/group/g?{more[1:]}" if more else path)

    assert (said.status_code, said.headers["content-type"]) == (422, PROBLEM)
    assert said.json()["type"] == "urn:slotkeeper:problem:bad-parameter"
    assert " not '" in said.json()["detail"]


def test_a_group_shows_unowned_tasks_without_limit_unless_asked(http: httpx2.Client, update: Update) -> None:
    old, new, owned = update(
        adds=[{"group": "g", "timespec": 1000}, {"group": "g", "timespec": 2000}, {"group": "g", "timespec": -HOUR_MS}]
    )

    def shown(**query: Any) -> list[int]:
        return [task["id"] for task in http.get("/group/g", params=query).json()]

    assert shown() == [old["id"], new["id"]]
    assert shown(limit=1) == [old["id"]]
    assert shown(limit=0) == shown(limit=9) == shown()
    for yes in ("1", "yes", "true", "YES", "True"):
        assert shown(owned=yes) == [old["id"], new["id"], owned["id"]]
    for no in ("0", "no", "false", "No", "FALSE"):
        assert shown(owned=no) == shown()
    assert shown(limit=2, owned="yes") == [old["id"], new["id"]]


def test_an_unknown_group_is_an_empty_list(http: httpx2.Client) -> None:
    said = http.get("/group/nobody")

    assert (said.status_code, said.json()) == (200, [])


@pytest.mark.parametrize(
    "name", ["a/b", "/", "a//b/", "a?limit=1", "50%", "%2F", "a#b", "ü €\t", "..", "a/../b", "+ &=", "\0"]
)
def test_a_group_may_have_any_character(http: httpx2.Client, update: Update, name: str) -> None:
    [added] = update(adds=[{"group": name}])

    said = http.get(f"/group/{spelled(name)}")

    assert said.json() == [added]
    assert http.get("/groups").json() == [name]


def test_a_group_is_not_taken_for_another_one(http: httpx2.Client) -> None:
    said = http.get("/group/%FF")

    assert (said.status_code, said.json()["type"]) == (422, "urn:slotkeeper:problem:bad-parameter")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(min_size=1, max_size=40))
def test_any_group_is_found_again(http: httpx2.Client, name: str) -> None:
    [added] = http.post("/update", json={"clientid": 1, "adds": [{"group": name}]}).json()["tasks"]

    assert http.get(f"/group/{spelled(name)}").json()[-1] == added


def test_all_tasks_come_one_a_line_in_the_order_of_their_ids(http: httpx2.Client, update: Update) -> None:
    assert http.get("/tasks").text == ""
    added = [task for _ in range(3) for task in update(adds=[{"group": "g", "data": "x" * 10}] * 700)]

    with http.stream("GET", "/tasks") as said:
        lines = list(said.iter_lines())

    assert said.headers["content-type"] == "application/x-ndjson"
    assert said.headers["transfer-encoding"] == "chunked"
    assert [json.loads(line) for line in lines] == added


def test_a_long_group_is_one_list_all_the_same(http: httpx2.Client, update: Update) -> None:
    added = update(adds=[{"group": "g"}] * 2100)

    said = http.get("/group/g")

    assert said.headers["transfer-encoding"] == "chunked"
    assert said.json() == added


# Updates


def test_an_add_has_no_data_and_is_available_now_unless_told(http: httpx2.Client, update: Update) -> None:
    before_ms = time.time_ns() // 1_000_000 - 1_000
    [added] = update("me", adds=[{"group": "g"}])

    assert (added["data"], added["ownerid"]) == ("", "me")
    assert before_ms <= added["timespec"] <= time.time_ns() // 1_000_000 + 1_000
    assert http.post("/claim", json={"clientid": "you", "group": "g", "duration": 1}).json()["tasks"]


def test_an_id_in_adds_is_ignored_as_is_all_else_that_a_task_shows(update: Update) -> None:
    [first] = update(adds=[{"group": "g", "data": "x"}])
    [second] = update(8, adds=[{**first, "id": ABSENT, "claims": 7, "ownerid": "x", "attempt": 3, "error": "e"}])

    assert second["id"] == first["id"] + 1
    assert (second["ownerid"], second["claims"], second["attempt"], second["error"]) == (8, 0, 0, "")
    assert (second["data"], second["available_at_ns"]) == ("x", first["available_at_ns"])


def test_a_future_add_is_born_owned_by_the_client(http: httpx2.Client, update: Update) -> None:
    [mine] = update(7, adds=[{"group": "g", "timespec": time.time_ns() // 1_000_000 + HOUR_MS}])

    said = http.post("/update", json={"clientid": 8, "deletes": [mine["id"]]})

    assert (said.status_code, broken(said)) == (409, {"owned": [mine["id"]]})
    assert update(7, deletes=[mine["id"]]) == []


def test_a_negative_timespec_counts_from_now_for_adds_and_updates_alike(update: Update) -> None:
    before_ms = time.time_ns() // 1_000_000
    [added] = update(adds=[{"group": "g", "timespec": -HOUR_MS}])
    [changed] = update(updates=[{"id": added["id"], "timespec": -2 * HOUR_MS}])

    assert 0 <= added["timespec"] - HOUR_MS - before_ms < 60_000
    assert 0 <= changed["timespec"] - 2 * HOUR_MS - before_ms < 60_000


def test_what_an_update_does_not_give_becomes_empty_and_now(update: Update) -> None:
    [added] = update(adds=[{"group": "g", "data": "x", "timespec": -HOUR_MS}])

    [changed] = update(updates=[{"id": added["id"]}])

    assert changed["data"] == ""
    assert changed["timespec"] < added["timespec"] - HOUR_MS // 2
    assert (changed["group"], changed["id"]) == ("g", added["id"] + 1)


def test_a_group_given_in_an_update_is_ignored(http: httpx2.Client, update: Update) -> None:
    [added] = update(adds=[{"group": "g", "data": "x"}])

    [changed] = update(updates=[{**added, "group": "elsewhere"}])

    assert (changed["group"], changed["data"]) == ("g", "x")
    assert http.get("/groups").json() == ["g"]


def test_with_keep_the_data_stays(update: Update) -> None:
    [added] = update(adds=[{"group": "g", "data_base64": "/w=="}])

    [kept] = update(updates=[{"id": added["id"], "keep": True}])
    [emptied] = update(updates=[{"id": kept["id"], "keep": True, "data": ""}])

    assert (kept["data_base64"], "data" in kept) == ("/w==", False)
    assert (emptied["data"], "data_base64" in emptied) == ("", False)


def test_a_task_moves_and_tells_of_its_attempts(http: httpx2.Client, update: Update) -> None:
    [added] = update(adds=[{"group": "g"}])

    [moved] = update(updates=[{"id": added["id"], "move_to": "h", "attempt": 3, "error": "no luck"}])

    assert (moved["group"], moved["attempt"], moved["error"]) == ("h", 3, "no luck")
    assert http.get("/groups").json() == ["h"]


def test_times_are_exact_to_the_nanosecond(update: Update) -> None:
    at_ns = 1_900_000_000_123_456_789

    [at] = update(adds=[{"group": "g", "available_at_ns": at_ns}])
    before_ns = time.time_ns()
    [after] = update(adds=[{"group": "g", "after_ns": HOUR_MS * 1_000_000 + 1}])

    assert (at["available_at_ns"], at["timespec"]) == (at_ns, at_ns // 1_000_000)
    assert abs(after["available_at_ns"] - HOUR_MS * 1_000_000 - before_ns) < 60_000_000_000
    [again] = update(updates=[{**at, "data": "y"}])  # both times, as they were shown
    assert again["available_at_ns"] == at_ns


def test_a_future_update_takes_ownership_and_renews(http: httpx2.Client, update: Update) -> None:
    [added] = update(7, adds=[{"group": "g"}])
    [taken] = update(8, updates=[{"id": added["id"], "timespec": -HOUR_MS}])
    [renewed] = update(8, updates=[{"id": taken["id"], "timespec": -2 * HOUR_MS}])

    said = http.post("/update", json={"clientid": 7, "updates": [{"id": renewed["id"]}]})

    assert renewed["ownerid"] == 8
    assert broken(said) == {"owned": [renewed["id"]]}


def test_new_tasks_are_adds_in_order_then_updates_in_order(update: Update) -> None:
    a, b = update(adds=[{"group": "g", "data": "a"}, {"group": "g", "data": "b"}])

    tasks = update(
        updates=[{"id": b["id"], "data": "B"}, {"id": a["id"], "data": "A"}],
        adds=[{"group": "g", "data": "c"}, {"group": "g", "data": "d"}],
    )

    assert [task["data"] for task in tasks] == ["c", "d", "B", "A"]
    assert [task["id"] for task in tasks] == sorted(task["id"] for task in tasks)


def test_every_broken_condition_is_listed(http: httpx2.Client, update: Update) -> None:
    [mine] = update(7, adds=[{"group": "g", "timespec": -HOUR_MS}])

    said = http.post(
        "/update",
        json={
            "clientid": 8,
            "adds": [{"group": "g"}],
            "updates": [{"id": ABSENT + 1}, {"id": mine["id"]}],
            "deletes": [ABSENT + 2],
            "depends": [ABSENT + 3, mine["id"]],
        },
    )

    assert said.status_code == 409
    assert broken(said) == {
        "changes": [ABSENT + 1],
        "deletes": [ABSENT + 2],
        "depends": [ABSENT + 3],
        "owned": [mine["id"]],
    }
    assert http.get("/group/g?owned=1").json() == [mine]


def test_bugs_are_listed_beside_what_is_broken(http: httpx2.Client) -> None:
    said = http.post(
        "/update",
        json={"clientid": 8, "adds": [{"group": ""}, {"data": "x"}], "updates": [{"id": ABSENT}], "deletes": [ABSENT]},
    )

    assert said.status_code == 422
    found = broken(said)
    assert (found["changes"], found["deletes"]) == ([ABSENT], [ABSENT])
    assert found["bugs"] == ["a group is a string that is not empty, not ''"] * 2 + [f"task {ABSENT} is named 2 times"]


@pytest.mark.parametrize(
    ("body", "bug"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `clientid`"),
        ('{"clientid": null}', "Expected `int | str`, got `null` - at `$.clientid`"),
        ('{"clientid": 1.5}', "Expected `int | str`, got `float`"),
        ('{"clientid": 18446744073709551616, "deletes": [1]}', "64 bits"),
        ('{"clientid": 1}', "an update that adds, changes and deletes nothing"),
        ('{"clientid": 1, "depends": [1]}', "an update that adds, changes and deletes nothing"),
        ('{"clientid": 1, "add": []}', "unknown field `add`"),
        ('{"clientid": 1, "adds": [{"grop": "g"}]}', "unknown field `grop` - at `$.adds[0]`"),
        ('{"clientid": 1, "adds": [{"group": 7}]}', "Expected `str`, got `int` - at `$.adds[0].group`"),
        ('{"clientid": 1, "adds": [{"group": "g", "data": "x", "data_base64": ""}]}', "both given"),
        ('{"clientid": 1, "adds": [{"group": "g", "data_base64": "?"}]}', "Invalid base64"),
        ('{"clientid": 1, "adds": [{"group": "g", "data": "\\ud800"}]}', "cannot be read"),
        ('{"clientid": 1, "adds": [{"group": "g", "timespec": 5, "after_ns": 5}]}', "different times"),
        ('{"clientid": 1, "adds": [{"group": "g", "timespec": 5, "available_at_ns": 7}]}', "different times"),
        ('{"clientid": 1, "adds": [{"group": "g", "timespec": 1e400}]}', "cannot be read"),
        ('{"clientid": 1, "adds": [{"group": "g", "timespec": -' + "9" * 60 + "}]}", "after_s is a number of seconds"),
        ('{"clientid": 1, "adds": [{"group": "g", "key": ""}]}', "a key is a string that is not empty"),
        ('{"clientid": 1, "updates": [{"data": "x"}]}', "missing required field `id` - at `$.updates[0]`"),
        ('{"clientid": 1, "updates": [{"id": 1, "attempt": -1}]}', "an attempt is a number"),
        ('{"clientid": 1, "deletes": ["1"]}', "Expected `int`, got `str` - at `$.deletes[0]`"),
        ('{"clientid": 1, "adds": [{"id":' + "[" * 5_000, "cannot be read"),
    ],
)
def test_what_no_state_would_allow_is_a_bug(http: httpx2.Client, body: str, bug: str) -> None:
    said = http.post("/update", content=body)

    assert said.status_code == 422
    assert [found for found in broken(said)["bugs"] if bug in found], said.text


def test_data_that_is_no_text_comes_back_in_base64(http: httpx2.Client, update: Update) -> None:
    [text, raw] = update(adds=[{"group": "g", "data": "\0ü\n"}, {"group": "g", "data_base64": "AP/+"}])

    assert http.get(f"/task/{text['id']}").json()["data"] == "\0ü\n"
    assert http.get(f"/task/{raw['id']}").json() == raw
    assert (raw["data_base64"], "data" in raw) == ("AP/+", False)


@pytest.mark.parametrize("client", [0, 7, -7, 2**64 - 1, -(2**63), "me", "", "007", "+7", "-0", "1" * 25, "ü", "٣"])
def test_an_owner_is_a_number_where_the_client_id_was_one(update: Update, client: int | str) -> None:
    [added] = update(client, adds=[{"group": "g"}])

    assert added["ownerid"] == client
    assert type(added["ownerid"]) is type(client)


def test_a_key_adds_once(http: httpx2.Client, update: Update) -> None:
    [first] = update(adds=[{"group": "g", "data": "x", "key": "order 7"}])
    [again] = update(adds=[{"group": "g", "data": "x", "key": "order 7"}])
    other = http.post("/update", json={"clientid": 7, "adds": [{"group": "g", "data": "y", "key": "order 7"}]})

    assert again == first
    assert other.status_code == 422
    assert "order 7" in broken(other)["bugs"][0]


# Claims


def test_a_claim_owns_one_task_under_its_new_id(http: httpx2.Client, update: Update) -> None:
    [added] = update(7, adds=[{"group": "g", "data": "x"}])
    before_ms = time.time_ns() // 1_000_000

    answer = http.post("/claim", json={"clientid": 8, "group": "g", "duration": HOUR_MS}).json()

    [task] = answer["tasks"]
    assert answer["error"] is None
    assert (task["id"], task["ownerid"], task["data"], task["claims"]) == (added["id"] + 1, 8, "x", 1)
    assert 0 <= task["timespec"] - HOUR_MS - before_ms < 60_000
    assert http.get(f"/task/{added['id']}").status_code == 404


def test_nothing_to_claim_is_no_task_and_no_error(http: httpx2.Client) -> None:
    said = http.post("/claim", json={"clientid": 8, "group": "g", "duration": 1000})

    assert (said.status_code, said.json()) == (200, {"tasks": None, "error": None})


def test_absent_dependencies_are_an_error_even_when_there_is_nothing_to_claim(http: httpx2.Client) -> None:
    said = http.post("/claim", json={"clientid": 8, "group": "g", "duration": 1000, "depends": [ABSENT, ABSENT + 1]})

    assert (said.status_code, broken(said)) == (409, {"depends": [ABSENT, ABSENT + 1]})


def test_a_claim_takes_from_several_groups_and_in_nanoseconds(http: httpx2.Client, update: Update) -> None:
    update(adds=[{"group": "a"}, {"group": "b"}])
    claim = {"clientid": 8, "groups": ["a", "b"], "duration_ns": HOUR_MS * 1_000_000 + 1}

    got = [http.post("/claim", json=claim).json()["tasks"] for _ in range(3)]

    assert {task["group"] for tasks in got[:2] for task in tasks} == {"a", "b"}
    assert got[2] is None


@pytest.mark.parametrize(
    ("body", "bug"),
    [
        ({"clientid": 8, "duration": 1}, "a claim names no group"),
        ({"clientid": 8, "group": "g"}, "for how long"),
        ({"clientid": 8, "group": "g", "duration": 1, "duration_ns": 1}, "for how long"),
        ({"clientid": 8, "group": "g", "duration": -1}, "not negative"),
        ({"clientid": 8, "group": "g", "duration": 1, "wait": -1}, "waits 0 to"),
        ({"clientid": 8, "group": "g", "duration": 1.5}, "Expected `int | null`, got `float`"),
        ({"group": "g", "duration": 1}, "missing required field `clientid`"),
    ],
)
def test_a_claim_that_means_nothing_is_a_bug(http: httpx2.Client, body: Json, bug: str) -> None:
    said = http.post("/claim", json=body)

    assert said.status_code == 422
    assert [found for found in broken(said)["bugs"] if bug in found], said.text


def test_the_owner_may_act_after_its_time_as_long_as_nobody_else_did(http: httpx2.Client, update: Update) -> None:
    update(adds=[{"group": "g"}, {"group": "h"}])
    claims = [{"clientid": 8, "group": group, "duration": 0} for group in "gh"]
    [late], [lost] = (http.post("/claim", json=claim).json()["tasks"] for claim in claims)
    http.post("/update", json={"clientid": 9, "updates": [{"id": lost["id"], "timespec": -HOUR_MS}]})

    assert update(8, deletes=[late["id"]]) == []
    said = http.post("/update", json={"clientid": 8, "deletes": [lost["id"]]})
    assert (said.status_code, broken(said)) == (409, {"deletes": [lost["id"]]})


# Ours


def test_renew_and_release(http: httpx2.Client, update: Update) -> None:
    update(adds=[{"group": "g"}])
    [task] = http.post("/claim", json={"clientid": 8, "group": "g", "duration": 1000}).json()["tasks"]

    [renewed] = http.post("/renew", json={"clientid": 8, "id": task["id"], "duration": HOUR_MS}).json()["tasks"]
    stranger = http.post("/release", json={"clientid": 9, "id": renewed["id"]})
    [back] = http.post(
        "/release", json={"clientid": 8, "id": renewed["id"], "after": HOUR_MS, "error": "no luck"}
    ).json()["tasks"]
    gone = http.post("/renew", json={"clientid": 8, "id": renewed["id"], "duration": 1})

    assert renewed["timespec"] > task["timespec"] + HOUR_MS // 2
    assert broken(stranger) == {"owned": [renewed["id"]]}
    assert (back["attempt"], back["error"], back["ownerid"]) == (1, "no luck", "")
    assert back["timespec"] >= renewed["timespec"] - 1000
    assert (gone.status_code, broken(gone)) == (409, {"changes": [renewed["id"]]})


def test_stats_count(http: httpx2.Client, update: Update) -> None:
    update(adds=[{"group": "g"}, {"group": "h", "timespec": -HOUR_MS}])

    stats = http.get("/stats").json()

    assert (stats["strict"], stats["size"], stats["waiting"], stats["behind"]) == (True, 2, 0, 0)
    assert (stats["groups"]["g"]["available"], stats["groups"]["h"]["future"]) == (1, 1)


@pytest.mark.parametrize("path", ["/snapshot", "/flush"])
def test_snapshot_and_flush_say_nothing_but_that_it_is_done(http: httpx2.Client, path: str) -> None:
    said = http.post(path)

    assert (said.status_code, said.content) == (204, b"")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/group"), ("GET", "/tasks/"), ("POST", "/update/")]
)
def test_what_is_not_there_is_a_problem_document(http: httpx2.Client, method: str, path: str) -> None:
    said = http.request(method, path)

    assert (said.status_code, said.headers["content-type"]) == (404, PROBLEM)
    assert said.json()["type"] == "urn:slotkeeper:problem:not-found"
    assert path in said.json()["detail"]


@pytest.mark.parametrize(("method", "path", "allowed"), [("GET", "/update", "POST"), ("DELETE", "/task/1", "GET")])
def test_another_method_is_a_problem_document(http: httpx2.Client, method: str, path: str, allowed: str) -> None:
    said = http.request(method, path)

    assert (said.status_code, said.headers["content-type"]) == (405, PROBLEM)
    assert allowed in said.headers["allow"]
    assert said.json()["type"] == "urn:slotkeeper:problem:method-not-allowed"
