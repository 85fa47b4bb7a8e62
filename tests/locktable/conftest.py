"""Each behaviour of a lock table is asked of both faces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eitherface import FACES
from locktables import Scheduled, Tables, table


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
