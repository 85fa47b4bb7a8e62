"""A container of the server through testcontainers: how most people will run these tests."""

from __future__ import annotations

import pytest
from cluster import fresh_keyspace
from cluster.container import container_server

pytestmark = pytest.mark.container


def test_a_container_applies_lightweight_transactions_on_the_second_paxos() -> None:
    with container_server() as server, server.session() as session:
        with fresh_keyspace(session, server.local_dc, "container") as keyspace:
            session.execute(f"CREATE TABLE {keyspace}.slots (id int PRIMARY KEY)")
            first = session.execute(f"INSERT INTO {keyspace}.slots (id) VALUES (1) IF NOT EXISTS")
            second = session.execute(f"INSERT INTO {keyspace}.slots (id) VALUES (1) IF NOT EXISTS")
        variant = session.execute("SELECT value FROM system_views.settings WHERE name = 'paxos_variant'").one()

    assert (first.was_applied, second.was_applied) == (True, False)
    assert variant.value == "v2"
