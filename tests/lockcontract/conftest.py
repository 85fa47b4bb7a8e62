"""Each behaviour in every room, on both databases: a table needs none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from lockcontract.lockrooms import ROOMS, LockRoom, embedded, prepared

PLACES = [("table", "memory"), *((room, store) for room in list(ROOMS)[1:] for store in ("sqlite", "cassandra"))]
NUMBERS = count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let those tests ask for a Cassandra that run on it."""
    for item in items:
        if isinstance(item, pytest.Function) and _runs_on_cassandra(item):
            item.fixturenames.append("cassandra_server")


def _runs_on_cassandra(item: pytest.Function) -> bool:
    place: Any = item.callspec.params.get("lock_room", ()) if hasattr(item, "callspec") else ()
    return "cassandra" in place


@pytest.fixture(scope="module", params=PLACES, ids=" on ".join)
def lock_room(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockRoom]:
    """Two clients of the same locks."""
    kind, store = request.param
    if store == "cassandra":
        database = prepared(request.getfixturevalue("cassandra_url"))
    else:
        database = embedded(tmp_path_factory.mktemp("room"))
    with ROOMS[kind](database) as room:
        yield room


@pytest.fixture
def name() -> str:
    """A lock that no other test has."""
    return f"lock/{next(NUMBERS)}"
