"""Each behaviour in every room, on both databases: a table needs none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from lockcontract.lockrooms import ROOMS, LockRoom, embedded, prepared

PLACES = [("table", "memory"), *((room, store) for room in list(ROOMS)[1:] for store in ("sqlite", "cassandra"))]
NUMBERS = count()


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
