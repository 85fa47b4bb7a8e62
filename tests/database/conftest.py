"""Servers, stores and faces for the tests of the Cassandra store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cassandra.cluster import Session
from contract.faces import FACES, Face
from cqlserver import ScriptedServer
from scriptedstore import HASTY_S, HOSTS, SERVED, Bench, checked, opened
from scriptedtokens import TOKENS, connect

from slotkeeper.database.cassandra import CassandraStore


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """A port, blocking or asyncio."""
    with FACES[request.param]() as face:
        yield face


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[ScriptedServer, CassandraStore]]:
    """A server and a store for the tests of a module that cut no connection."""
    with ScriptedServer([SERVED], hosts=HOSTS) as server, opened(server) as store:
        yield server, store


@pytest.fixture
def bench(shared: tuple[ScriptedServer, CassandraStore], face: Face) -> Iterator[Bench]:
    """The shared server and store."""
    server, store = shared
    server.on_read = server.on_prepare = None
    yield from checked(Bench(server, store, face))


@pytest.fixture
def fresh(face: Face) -> Iterator[Bench]:
    """A server and a store of the test's own, for cuts."""
    with ScriptedServer([SERVED], hosts=HOSTS) as server, opened(server) as store:
        yield from checked(Bench(server, store, face))


@pytest.fixture
def hasty(face: Face) -> Iterator[Bench]:
    """A server and a store of the test's own, for silence: the store waits only briefly."""
    with ScriptedServer([SERVED], hosts=HOSTS) as server, opened(server, request_timeout_s=HASTY_S) as store:
        yield from checked(Bench(server, store, face))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server of the test's own, with a table of tokens."""
    with ScriptedServer([TOKENS]) as server:
        yield server


@pytest.fixture
def session(server: ScriptedServer) -> Iterator[Session]:
    """The real driver, connected to it."""
    with connect(server) as session:
        yield session
