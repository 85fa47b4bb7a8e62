"""What a node does not take on, and what its problems are called."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from eventually import until
from locknodes import new_database, running_node

from slotkeeper.database import Unavailable
from slotkeeper.locktable import BadEpoch, Limits, LockError, NoName, NotRebuilt
from slotkeeper.locktable.node import NoSpeaker, Unreachable
from slotkeeper.locktable.service.problems import problem_of, response_of

LOCK = "/api/cluster/lock"


def test_a_full_table_is_503(tmp_path: Path) -> None:
    limits = Limits(locks=1, waiters_a_name=1, wait_s=0.3)
    with running_node(new_database(tmp_path), limits=limits) as node, httpx2.Client(trust_env=False) as http:

        def post(**asked: object) -> httpx2.Response:
            return http.post(f"{node.url}{LOCK}", json=asked)

        assert post(name="a").status_code == 200
        assert post(name="a", wait="1h").status_code == 409  # a wait counts as 0.3 s here
        assert post(name="a", wait="1h", request="r1", slice_ms=20).status_code == 202
        until(lambda: node.node.speaking.table.waiting == 1)
        refused = [post(name="a", wait="1h"), post(name="b")]

    for answer in refused:
        assert (answer.status_code, answer.json()["title"]) == (503, "Lock table")
        assert answer.json()["type"].endswith("limit-reached")
        assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (Unreachable("http://n2", "it hung up"), 503, "node-unreachable"),
        (NoSpeaker(), 503, "lock-table"),
        (NotRebuilt(), 503, "not-rebuilt"),
        (NoName(), 400, "invalid-body"),
        (BadEpoch(), 500, "unexpected"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, LockError) else None,
)
def test_each_error_has_a_problem(error: LockError, status: int, name: str) -> None:
    problem = problem_of(error, 0.0)

    assert (problem.status, problem.name, problem.detail) == (status, name, str(error))


def test_what_is_no_error_of_locks_is_nobodys_here() -> None:
    assert response_of(Unavailable(), 0.0) is None
