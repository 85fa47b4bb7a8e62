"""A client on a real Cassandra, and Cadence's own statements beside it on the same tables."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from cassandra.cluster import Session
from contract.cadence import Cadence

from slotkeeper.database import Store
from slotkeeper.semaphore import Client


@pytest.fixture
def client(cassandra_store: Store) -> Iterator[Client]:
    """A client of a domain of its own."""
    with Client(cassandra_store, domain=uuid4()) as client:
        yield client


@pytest.fixture
def other(cassandra_store: Store, client: Client) -> Iterator[Client]:
    """A second client of the domain, as another process would have it."""
    with Client(cassandra_store, domain=client.domain_id) as other:
        yield other


@pytest.fixture
def cadence(cassandra_session: Session, keyspace: str, client: Client) -> Cadence:
    """Cadence, in the client's domain."""
    return Cadence(cassandra_session, keyspace, client.domain_id)
