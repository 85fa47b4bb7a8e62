"""Fixtures for behaviours in which time passes by itself: both stores, and clients of both faces."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from contract.parties import FACES, Parties, Party
from readystore import ready_store

from slotkeeper.database import Store


@pytest.fixture(scope="module", params=["sqlite", "cassandra"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with the tables."""
    if request.param == "cassandra":
        yield request.getfixturevalue("cassandra_store")
        return
    with ready_store(f"sqlite:///{tmp_path_factory.mktemp('timely') / 'slots.db'}") as store:
        yield store


@pytest.fixture(scope="module", params=FACES)
def parties(request: pytest.FixtureRequest, world: Store) -> Iterator[Parties]:
    """Where clients of one face come from."""
    with FACES[request.param](world) as parties:
        yield parties


@pytest.fixture(scope="module")
def ours(parties: Parties) -> Party:
    """A client."""
    return parties()


@pytest.fixture(scope="module")
def theirs(parties: Parties) -> Party:
    """Another client, as another process would have it."""
    return parties()


@pytest.fixture
def name(ours: Party) -> str:
    """A semaphore of one slot, which no other test has."""
    name = f"gpu {uuid4()}"
    ours.create(name, 1)
    return name
