"""Eight processes set up one empty database at once."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session

from slotkeeper import schema
from slotkeeper.database import open_store
from slotkeeper.schema.manifest import shipped

STARTER = Path(__file__).parent / "starter.py"
EIGHT = 8
PATIENCE_S = 90.0


class Crew:
    """Eight processes that report through one pipe."""

    def __init__(self, url: str, lease_s: int, last_step: str = "") -> None:
        self._read, write = os.pipe()
        self._lines, self._part = list[dict[str, Any]](), b""
        command = [sys.executable, str(STARTER), url, str(lease_s), last_step]
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE) for _ in range(EIGHT)
        ]
        os.close(write)

    def start(self) -> None:
        """Let all of them go, once all are ready."""
        for _ in range(EIGHT):
            self.heard("ready")
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()

    def heard(self, event: str) -> dict[str, Any]:
        """Wait for the next report of this kind."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for line in self._lines:
                if line["event"] == event:
                    self._lines.remove(line)
                    return line
            self._receive(deadline)

    def _receive(self, deadline: float) -> None:
        readable, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
        arrived = os.read(self._read, 65536) if readable else b""
        assert arrived, f"no more reports: {[self._errors(p) for p in self.processes if p.poll()]}"
        *whole, self._part = (self._part + arrived).split(b"\n")
        self._lines += [json.loads(line) for line in whole]

    @staticmethod
    def _errors(process: subprocess.Popen[bytes]) -> str:
        assert process.stderr is not None
        return process.stderr.read().decode()[-1000:]

    def close(self) -> None:
        """End what still runs."""
        for process in self.processes:
            process.kill()
            process.wait(10)
            for pipe in (process.stdin, process.stderr):
                assert pipe is not None
                pipe.close()
        os.close(self._read)


@pytest.fixture
def crew() -> Iterator[Any]:
    """A way to bring eight processes to the start."""
    crews: list[Crew] = []

    def gather(*args: Any) -> Crew:
        crews.append(Crew(*args))
        return crews[-1]

    yield gather
    for one in crews:
        one.close()


def test_eight_starters_make_one_schema(any_url: str, crew: Any) -> None:
    starters = crew(any_url, 30)

    starters.start()
    reports = [starters.heard("done") for _ in range(EIGHT)]

    assert {report["after"] for report in reports} == {"0.3"}
    assert [process.wait(30) for process in starters.processes] == [0] * EIGHT
    assert_whole(any_url)


def test_seven_finish_what_the_eighth_died_over(any_url: str, crew: Any) -> None:
    starters = crew(any_url, 10, "created table semaphore_metadata")  # a lease that a busy machine keeps renewing

    starters.start()
    holder = starters.heard("still")["pid"]
    os.kill(holder, signal.SIGKILL)
    reports = [starters.heard("done") for _ in range(EIGHT - 1)]

    assert {report["after"] for report in reports} == {"0.3"}
    assert sorted(process.wait(30) for process in starters.processes) == [-signal.SIGKILL] + [0] * (EIGHT - 1)
    assert not any(f" pid {holder} " in change.who for change in assert_whole(any_url))


def test_one_id_a_table_whoever_creates_it(cassandra: str, cassandra_session: Session, crew: Any) -> None:
    starters = crew(cassandra, 30)
    starters.start()
    for _ in range(EIGHT):
        starters.heard("done")

    keyspace = cassandra.partition("?")[0].rpartition("/")[2]
    ids = "SELECT id FROM system_schema.tables WHERE keyspace_name = %s"
    seeds = f"SELECT value FROM {keyspace}.slotkeeper_schema WHERE scope = 'slotkeeper' AND kind = 'setting'"
    seed = next(row.value for row in cassandra_session.execute(f"{seeds} AND name = 'table_ids'"))
    named = schema.statements("cql", keyspace, seed=UUID(seed))

    found = [str(row.id) for row in cassandra_session.execute(ids, (keyspace,))]

    assert len(found) == len(named)
    assert all(any(table_id in text for text in named) for table_id in found)


def assert_whole(url: str) -> tuple[schema.Change, ...]:
    """Check that the schema is complete, each version recorded once, and the lock free."""
    store = open_store(url)
    try:
        status = schema.status(store)
        assert schema.setup(store).statements == ()
    finally:
        store.close()
    versions = [str(step.version) for step in shipped().known]
    recorded = [change.after for change in sorted(status.history, key=lambda change: change.key)]
    assert (status.state, status.locked_by, recorded) == ("current", None, versions)
    return status.history
