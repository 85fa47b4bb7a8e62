"""What the README tells a newcomer to type: the compose file, then the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cluster import Server
from cluster.compose import compose_server

pytestmark = pytest.mark.container


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with compose_server() as server:
        yield server


def test_a_healthy_server_takes_lightweight_transactions_at_once(server: Server) -> None:
    server.wait_for_lwt(timeout_s=0)


def test_the_compose_file_asks_for_the_second_paxos(server: Server) -> None:
    with server.session() as session:
        row = session.execute("SELECT value FROM system_views.settings WHERE name = 'paxos_variant'").one()

    assert row.value == "v2"


def test_the_first_steps_of_the_command_line_work_against_it(server: Server) -> None:
    slotkeeper(server, "schema", "create-keyspace")
    slotkeeper(server, "schema", "setup")
    slotkeeper(server, "semaphore", "create", "gpu", "--size", "2")

    for hold in ("1", "2"):
        acquired = slotkeeper(server, "semaphore", "acquire", "gpu", "--workflow", "w", "--run", "r", "--hold", hold)
        assert acquired


def slotkeeper(server: Server, *arguments: str) -> str:
    """Run the command as a person would, told by the environment where the database is; give what it printed."""
    answer = subprocess.run(
        [sys.executable, "-m", "slotkeeper", *arguments],
        env={**os.environ, "SLOTKEEPER_DATABASE": server.url("slotkeeper")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, f"slotkeeper {' '.join(arguments)}\n{answer.stdout}"
    return answer.stdout
