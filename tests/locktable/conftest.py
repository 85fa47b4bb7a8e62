"""Each behaviour of a lock table is asked of both faces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from locktables import FACES, Scheduled, Tables, table


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    """A face: threads or asyncio."""
    return str(request.param)


@pytest.fixture
def fresh(face: str) -> Iterator[Tables]:
    """A table that nobody has rebuilt yet, on a clock that stands still."""
    with table(face) as tables:
        yield tables


@pytest.fixture
def tables(fresh: Tables) -> Tables:
    """A rebuilt table that holds nothing."""
    return fresh.empty()


@pytest.fixture(autouse=True)
def _schedules_end() -> Iterator[None]:
    """Leave nothing waiting."""
    yield
    Scheduled.end()


@pytest.fixture
def scheduled() -> Scheduled:
    """A rebuilt table in a schedule."""
    return Scheduled()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let those tests ask for a Cassandra that run on it, and leave the others alone."""
    for item in items:
        if isinstance(item, pytest.Function) and _runs_on_cassandra(item):
            item.fixturenames = [*item.fixturenames, "cassandra_server"]


def _runs_on_cassandra(item: pytest.Function) -> bool:
    return hasattr(item, "callspec") and "cassandra" in item.callspec.params.values()
