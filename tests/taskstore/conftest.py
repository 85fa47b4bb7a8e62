"""Each behaviour runs on every journal and through both faces, and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from eitherface import FACES
from readystore import ready_store
from taskstores import DatabasePlace, DiskPlace, Hands, MemoryPlace, Place, ServicePlace, Tasks, opened

from slotkeeper.database import Store

Reopen = Callable[..., Tasks]


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    """A face: threads or asyncio."""
    return str(request.param)


@pytest.fixture(scope="module")
def embedded_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An embedded store with the tables, for the tests of a module: each has rows of its own."""
    with ready_store(f"sqlite:///{tmp_path_factory.mktemp('tasks')}/tasks.db") as store:
        yield store


@pytest.fixture(params=["memory", "disk", "sqlite", "cassandra", "service"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for a journal."""
    if request.param == "service":
        return ServicePlace()
    if request.param == "memory":
        return MemoryPlace()
    if request.param == "disk":
        return DiskPlace(tmp_path / "journal")
    return database_place(request, request.param)


@pytest.fixture(params=["sqlite", "cassandra"])
def rows_place(request: pytest.FixtureRequest) -> DatabasePlace:
    """A place for a journal in a database."""
    return database_place(request, request.param)


def database_place(request: pytest.FixtureRequest, kind: str) -> DatabasePlace:
    """Return rows of a test's own."""
    store = request.getfixturevalue("embedded_store" if kind == "sqlite" else "cassandra_store")
    return DatabasePlace(store, f"store {uuid4()}")


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """A directory that is not there yet."""
    return tmp_path / "journal"


@pytest.fixture
def hands() -> Hands:
    """Clocks that the test moves."""
    return Hands()


@pytest.fixture
def open_tasks(face: str, place: Place, hands: Hands) -> Iterator[Reopen]:
    """A way to open the place's journal: it closes the store that had it before."""
    with ExitStack() as stack:

        def again(**options: Any) -> Tasks:
            stack.close()
            return stack.enter_context(opened(face, place.journal(), **{"clock": hands.clock(), **options}))

        yield again


@pytest.fixture
def tasks(open_tasks: Reopen) -> Tasks:
    """A strict store."""
    return open_tasks()
