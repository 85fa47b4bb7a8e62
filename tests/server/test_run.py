"""What a test run gives the tests that ask for a server, and what it says of itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cassandra.cluster import Session
from cluster import Server
from cluster.choice import VARIABLE

HERE = Path(__file__).parent


def test_a_module_has_a_keyspace_of_its_own(
    cassandra_server: Server, cassandra_session: Session, keyspace: str, cassandra_url: str
) -> None:
    cassandra_session.execute(f"CREATE TABLE {keyspace}.slots (id int PRIMARY KEY)")
    answer = cassandra_session.execute(f"INSERT INTO {keyspace}.slots (id) VALUES (1) IF NOT EXISTS")

    assert answer.was_applied
    assert cassandra_url == cassandra_server.url(keyspace)


def test_one_line_says_which_server_a_run_uses(cassandra_server: Server) -> None:
    run = pytest_run("-k", "keyspace_of_its_own", **{VARIABLE: cassandra_server.url()})

    assert f"cassandra: {cassandra_server.url()}, named by {VARIABLE}" in run.stdout
    assert run.returncode == 0, run.stdout


def test_without_an_engine_one_line_says_what_is_left_out() -> None:
    run = pytest_run("--collect-only", DOCKER_HOST="unix:///nowhere.sock")

    assert "container tests: 4 left out: no Docker engine answers" in run.stdout
    assert "test_container.py" not in run.stdout
    assert run.returncode == 0


def test_without_a_server_the_run_fails_and_says_why() -> None:
    run = pytest_run("-k", "keyspace_of_its_own", **{VARIABLE: "127.0.0.1:9042"})

    assert f"{VARIABLE}: not a database URL" in run.stdout
    assert "skipped" not in run.stdout
    assert run.returncode == 1


def pytest_run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run these tests in a process of their own, as a person would."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(HERE), *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120)
