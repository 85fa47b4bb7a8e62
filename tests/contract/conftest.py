"""Each behaviour runs on both stores and through both ports."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from contract.clients import Slots, slots
from contract.faces import FACES, Face
from contract.rooms import Room
from contract.worlds import World, cassandra_world, sqlite_world

from slotkeeper import schema


@pytest.fixture(scope="module", params=["sqlite", "cassandra"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A store with its tables, shared by the tests of a module: each has a partition of its own."""
    opened = (
        sqlite_world(tmp_path_factory.mktemp("contract") / "lamps.db")
        if request.param == "sqlite"
        else cassandra_world(request.getfixturevalue("cassandra_url"))
    )
    with opened as world:
        yield world


@pytest.fixture(scope="module", params=FACES)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """A port, blocking or asyncio."""
    with FACES[request.param]() as face:
        yield face


@pytest.fixture
def room(world: World, face: Face) -> Room:
    """A partition of its own."""
    return Room(world, face)


@pytest.fixture(scope="module")
def ours(world: World, face: Face) -> Iterator[Slots]:
    """A client of semaphores, in a domain that other clients of the module share."""
    schema.setup(world.store)
    with slots(world.store, face, domain="behaviours") as client:
        yield client


@pytest.fixture(scope="module")
def theirs(world: World, face: Face, ours: Slots) -> Iterator[Slots]:
    """Another client, as another process would have it: with buckets of its own."""
    with slots(world.store, face, domain="behaviours") as client:
        yield client


@pytest.fixture
def name() -> str:
    """The name of a semaphore that no other test has."""
    return f"gpu {uuid4()}"
