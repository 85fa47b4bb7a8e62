"""`slotkeeper doctor`: each finding is one line with what to do, and the exit code of what failed first."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import Run
from cqlserver import Host, ScriptedServer

from slotkeeper import database, schema
from slotkeeper.cli import checks_cassandra
from slotkeeper.cli.checks import Check, examined, ok, round_trip
from slotkeeper.cli.exits import Exit
from slotkeeper.database import Batch, Outcome, Refused, Unavailable, Unknown
from slotkeeper.database.cassandra.store import Node
from slotkeeper.database.sqlite import SqliteStore


def node(release: str = "5.0.8", paxos: str | None = "v2", clock_ms: int = 0) -> Node:
    """Make a node."""
    return Node("10.0.0.1", "dc1", release, paxos, clock_ms)


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("3.11.19", "fail"),
        ("4.0.17", "warn"),
        ("4.1.8", "warn"),
        ("4.1.9", "ok"),
        ("4.1.10", "ok"),
        ("5.0.3", "warn"),
        ("5.0.4-SNAPSHOT", "ok"),
        ("5.1", "ok"),
        ("6.0-alpha1", "ok"),
        ("unknown", "fail"),
    ],
)
def test_old_releases_are_told_apart(release: str, status: str) -> None:
    found = checks_cassandra._release(node(release))

    assert found.status == status
    assert (found.fix != "") == (status != "ok")
    assert found.exit_code == (Exit.UNAVAILABLE if status == "fail" else Exit.DONE)


@pytest.mark.parametrize(("variant", "status"), [("v2", "ok"), ("v1", "warn"), (None, "warn")])
def test_the_paxos_variant_is_looked_at(variant: str | None, status: str) -> None:
    assert checks_cassandra._paxos(node(paxos=variant)).status == status


@pytest.mark.parametrize(("clock_ms", "status"), [(1_000, "ok"), (1_500, "ok"), (1_620, "warn"), (400, "warn")])
def test_a_clock_is_compared_with_ours_in_the_middle_of_the_answer(clock_ms: int, status: str) -> None:
    assert checks_cassandra._clock(node(clock_ms=clock_ms), 990.0, 1_010.0).status == status


def test_an_error_is_a_finding_and_the_rest_is_looked_at() -> None:
    def broken() -> Iterator[Check]:
        raise Unavailable("nobody answers")
        yield

    found = list(examined([("nodes", broken), ("schema", lambda: [ok("schema", "fine")])]))

    assert [(each.name, each.status, each.exit_code) for each in found] == [
        ("nodes", "fail", Exit.UNAVAILABLE),
        ("schema", "ok", Exit.DONE),
    ]


def test_an_embedded_store_is_looked_at(run: Run, embedded: str) -> None:
    ran = run("doctor", "--database", embedded, "--json")

    assert (ran.code, ran.err) == (0, "")
    assert set(ran.json) == {"database", "ok", "checks"}
    assert ran.json["ok"] is True
    assert [each["check"] for each in ran.json["checks"]] == ["file", "sqlite", "journal", "schema", "round trip"]
    assert all(set(each) == {"check", "status", "message", "fix"} for each in ran.json["checks"])
    lines = run("doctor", "--database", embedded).out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 5


def test_a_file_of_another_program_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "slots.db").write_text("not a database, but long enough to be looked at" * 50)

    ran = run("doctor", "--database", f"sqlite:///{tmp_path}/slots.db")

    assert ran.code == 1
    assert ran.out.startswith("fail  file")


def test_a_damaged_file_is_told(run: Run, embedded: str, tmp_path: Path) -> None:
    assert run("semaphore", "create", "gpu", "--size", "1", "--database", embedded).code == 0
    file = tmp_path / "slots.db"
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\x7f" * 4096 + content[8192:])

    ran = run("doctor", "--database", embedded)

    assert ran.code != 0
    assert "fail" in ran.out


class Contended(SqliteStore):
    """A store at which others are always quicker, or which does not say what became of a write."""

    answer: Outcome = Refused({})

    def commit(self, batch: Batch) -> Outcome:
        """Answer as the test says."""
        return self.answer


@pytest.mark.parametrize("answer", [Refused({}), Unknown(TimeoutError("silence"))])
def test_a_round_trip_that_does_not_come_about_is_unavailable(tmp_path: Path, answer: Outcome) -> None:
    store = Contended(tmp_path / "slots.db")
    schema.setup(database.open_store(f"sqlite:///{tmp_path}/slots.db"))
    store.answer = answer

    (found,) = examined([("round trip", lambda: round_trip(store))])

    assert (found.status, found.exit_code) == ("fail", Exit.UNAVAILABLE)
    store.close()


@pytest.fixture
def cluster() -> Iterator[ScriptedServer]:
    """Two nodes, and an empty keyspace."""
    with ScriptedServer(hosts=[Host("127.0.0.1"), Host("127.0.0.2")], keyspaces=["slots"]) as server:
        yield server


def url(server: ScriptedServer, keyspace: str = "slots") -> str:
    """Return the URL of a keyspace."""
    return f"cassandra://{server.host}:{server.port}/{keyspace}?local_dc=datacenter1"


def test_every_node_is_looked_at(run: Run, cluster: ScriptedServer) -> None:
    cluster.system.settings["paxos_variant"] = "v1"
    cluster.system.clock_ms = lambda host: time.time_ns() // 1_000_000 + 60_000 * (host.address == "127.0.0.2")

    ran = run("doctor", "--database", url(cluster), "--json")

    found = {(each["check"], each["message"].split()[0]): each["status"] for each in ran.json["checks"]}
    assert found["nodes", "2"] == "ok"
    assert {found["release", address] for address in ("127.0.0.1", "127.0.0.2")} == {"ok"}
    assert {found["paxos", address] for address in ("127.0.0.1", "127.0.0.2")} == {"warn"}
    assert (found["clock", "127.0.0.1"], found["clock", "127.0.0.2"]) == ("ok", "warn")
    assert found["keyspace", "slots"] == "warn"


def test_a_node_that_is_down_is_told(run: Run, cluster: ScriptedServer) -> None:
    cluster.stop("127.0.0.2")

    ran = run("doctor", "--database", url(cluster))

    assert "1 of 2 nodes of datacenter1 answer -> start the others" in ran.out


def test_tables_that_are_missing_are_told_with_the_command_to_run(run: Run, cluster: ScriptedServer) -> None:
    ran = run("doctor", "--database", url(cluster))

    assert ran.code == 5
    assert ran.out.splitlines()[-1].startswith("fail  schema")
    assert "slotkeeper schema setup" in ran.out.splitlines()[-1]


@pytest.mark.parametrize(
    ("keyspace", "code", "advice"), [("nowhere", 5, "create-keyspace"), ("", 2, "names no keyspace")]
)
def test_a_missing_keyspace_is_told_after_the_nodes(
    run: Run, cluster: ScriptedServer, keyspace: str, code: int, advice: str
) -> None:
    ran = run("doctor", "--database", url(cluster, keyspace))

    assert ran.code == code
    assert "ok    release" in ran.out
    assert ran.out.splitlines()[-1].startswith("fail  keyspace")
    assert advice in ran.out.splitlines()[-1]


def test_a_driver_without_libev_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cassandra.io.libevwrapper", raising=False)
    assert [each.status for each in checks_cassandra._driver()] == ["warn"]
    monkeypatch.setitem(sys.modules, "cassandra.io.libevwrapper", sys)
    assert [each.status for each in checks_cassandra._driver()] == ["ok"]


def test_nobody_there_is_one_line_and_exit_6(run: Run) -> None:
    ran = run("doctor", "--database", "cassandra://127.0.0.1:1/slots", "--json")

    assert ran.code == 6
    assert [(each["check"], each["status"]) for each in ran.json["checks"]] == [("reachable", "fail")]
    assert ran.json["ok"] is False
