"""A node from Maven artifacts and the machine's Java: the way to a real Cassandra that needs no container."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cluster
import pytest
from cluster import LocalNode, NotReady, Server, fresh_keyspace
from cluster.node import tail

pytestmark = pytest.mark.local_node


@pytest.fixture(scope="module")
def node() -> Iterator[LocalNode]:
    with LocalNode() as node:
        yield node


def test_a_started_node_applies_lightweight_transactions(node: LocalNode) -> None:
    with node.server.session() as session, fresh_keyspace(session, node.server.local_dc, "local") as keyspace:
        session.execute(f"CREATE TABLE {keyspace}.slots (id int PRIMARY KEY, holder text)")
        first = session.execute(f"INSERT INTO {keyspace}.slots (id, holder) VALUES (1, 'a') IF NOT EXISTS")
        second = session.execute(f"UPDATE {keyspace}.slots SET holder = 'b' WHERE id = 1 IF holder = 'c'")

    assert first.was_applied
    assert not second.was_applied


def test_a_node_runs_the_second_paxos(node: LocalNode) -> None:
    assert paxos_variant(node.server) == "v2"


def test_the_end_of_a_log_is_at_hand(node: LocalNode) -> None:
    assert "Startup complete" in node.log.read_text()
    assert len(tail(node.log, 5).splitlines()) == 5


def test_a_node_that_cannot_start_shows_the_end_of_its_log() -> None:
    node = LocalNode(heap_mb=10**9)

    with pytest.raises(NotReady, match=r"node\.log ends with:\n.*initialization of VM"):
        node.start()

    assert node.log.exists()
    assert not (node.home / "data").exists()


def test_a_port_that_is_taken_is_refused_at_once(node: LocalNode) -> None:
    with pytest.raises(NotReady, match=f"{node.server.host}:{node.server.port} is taken"):
        LocalNode(node.server.host, node.server.port).start()


def test_a_killed_owner_leaves_no_node_behind() -> None:
    """Nothing of the owner runs after kill -9: the node must go all the same."""
    with subprocess.Popen(
        [sys.executable, "-m", "cluster", "--address", "free"],
        cwd=Path(cluster.__file__).parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout
        server = Server.parse(owner.stdout.readline().split()[0])
        with socket.create_connection((server.host, server.port), timeout=5) as connection:
            os.kill(owner.pid, signal.SIGKILL)

            connection.settimeout(10)
            assert ended(connection)
    deadline = time.monotonic() + 10
    while listens(server):  # its sockets close one after the other
        assert time.monotonic() < deadline


def paxos_variant(server: Server) -> str:
    """Ask a server which Paxos it runs."""
    with server.session() as session:
        row = session.execute("SELECT value FROM system_views.settings WHERE name = 'paxos_variant'").one()
    return str(row.value)


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def listens(server: Server) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((server.host, server.port)) == 0
