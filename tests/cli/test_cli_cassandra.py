"""The way that a user goes on a real Cassandra; and what a Cassandra says that cannot be used."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from cassandra.cluster import Session
from cluster.server import Server
from commandline import Ran, Run
from cqlserver import ScriptedServer


@pytest.fixture
def empty(cassandra_server: Server, cassandra_session: Session) -> Iterator[str]:
    """The URL of a keyspace that does not exist; it is dropped at the end."""
    keyspace = f"cli_{uuid.uuid4().hex[:12]}"
    yield cassandra_server.url(keyspace)
    cassandra_session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")


def test_from_an_empty_cluster_to_the_third_owner(run: Run, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTKEEPER_DATABASE", empty)

    refused = run("semaphore", "list")
    assert (refused.code, refused.out) == (5, "")
    assert "slotkeeper schema create-keyspace" in refused.err

    assert "CREATE KEYSPACE" in run("schema", "create-keyspace", "--dry-run").out
    made = run("schema", "create-keyspace", "--json").json
    assert (made["created"], made["replication"]) == (True, {"datacenter1": "1"})
    assert "One replica" in made["warnings"][0]
    again = run("schema", "create-keyspace", "--replication-factor", "1")
    assert again.out.startswith("found keyspace")

    assert run("semaphore", "list").code == 5
    assert run("schema", "setup", "--dry-run").out.count("CREATE TABLE") == 8
    assert run("schema", "setup", "--json").json["after"] == "0.3"
    assert run("schema", "setup").out == "the schema is at version 0.3 already\n"
    assert run("schema", "status", "--json").json["consistency"] == "LOCAL_QUORUM/LOCAL_SERIAL"

    assert run("semaphore", "create", "gpu", "--size", "2").code == 0
    owners = [f"3:wf{n}:run:{n}" for n in (1, 2, 3)]
    acquired = [run("semaphore", "acquire", "gpu", "--owner", owner, "--json") for owner in owners]
    assert [ran.code for ran in acquired] == [0, 0, 3]
    assert acquired[2].error["message"] == "no slot is free: 2 of 2 held"

    held = run("semaphore", "holders", "gpu", "--json").json
    assert (held["size"], held["held"]) == (2, 2)
    assert {each["owner"] for each in held["holders"]} == set(owners[:2])
    assert run("semaphore", "holders", "gpu").out.splitlines()[0] == "2 of 2 held"

    assert run("semaphore", "release", "gpu", "--owner", owners[0]).code == 0
    assert run("semaphore", "acquire", "gpu", "--owner", owners[2]).code == 0
    assert run("semaphore", "release", "gpu", "--owner", owners[0]).code == 4
    assert run("semaphore", "delete", "gpu", "--yes", "--force").code == 0
    assert run("semaphore", "list", "--json").json["semaphores"] == []


def test_the_doctor_and_the_demo_work_there(run: Run, empty: str) -> None:
    run("schema", "create-keyspace", "--database", empty)
    run("schema", "setup", "--database", empty)

    doctor = run("doctor", "--database", empty, "--json")
    assert doctor.code == 0
    found = {each["check"]: each["status"] for each in doctor.json["checks"]}
    assert found == {**found, "reachable": "ok", "keyspace": "warn", "schema": "ok", "round trip": "ok", "driver": "ok"}
    assert set(found) == {
        *("reachable", "driver", "nodes", "release", "paxos", "clock", "keyspace", "schema", "consistency"),
        "round trip",
    }

    demo = run("demo", "--jobs", "12", "--workers", "4", "--slots", "2", "--database", empty, "--json")
    assert (demo.code, demo.json["ok"], demo.json["jobs"]) == (0, True, 12)


def test_another_pair_of_levels_is_refused(run: Run, empty: str) -> None:
    run("schema", "create-keyspace", "--database", empty)
    run("schema", "setup", "--database", empty)

    other = run("semaphore", "list", "--database", empty, "--consistency", "quorum", "--json")
    assert (other.code, other.error["type"]) == (5, "ConsistencyMismatch")
    doctor = run("doctor", "--database", empty, "--consistency", "quorum")
    assert doctor.code == 5
    assert "fail  consistency" in doctor.out


def test_it_works_as_a_process_too(run_process: Run, empty: str) -> None:
    ran = run_process("semaphore", "list", "--database", empty)

    assert (ran.code, ran.out) == (5, ""), ran.err
    assert ran.err.count("\n") == 1


def one_line(ran: Ran) -> str:
    """Return the one line that a failed command prints."""
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    return ran.err


def test_an_unreachable_host_is_one_line(run: Run) -> None:
    ran = run("semaphore", "list", "--database", "cassandra://127.0.0.1:1/slots")

    assert ran.code == 6
    assert "Is it running, and are host and port right?" in one_line(ran)


@pytest.fixture
def guarded() -> Iterator[ScriptedServer]:
    """A server that lets one user in."""
    with ScriptedServer(keyspaces=["slots"], credentials=("me", "right-password")) as server:
        yield server


def test_a_refused_login_is_one_line_without_the_password(run: Run, guarded: ScriptedServer) -> None:
    host = f"{guarded.host}:{guarded.port}/slots"
    ran = run("semaphore", "list", "--database", f"cassandra://me:wrong-password@{host}")

    assert ran.code == 6
    assert "refused the login" in one_line(ran)
    assert "wrong-password" not in ran.err
    assert run("semaphore", "list", "--database", f"cassandra://{host}").code == 6


def test_the_right_password_comes_from_its_file(
    run: Run, guarded: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("secret") / "password"
    file.write_text("right-password\n")
    login = ("--user", "me", "--password-file", str(file))

    ran = run("schema", "status", "--database", f"cassandra://{guarded.host}:{guarded.port}/slots", *login, "--json")

    assert (ran.code, ran.json["state"]) == (5, "missing")


def test_a_silent_commit_is_an_unknown_outcome(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way from the client's error to the process's exit code; the server's side is tested with the client."""
    from slotkeeper.semaphore import Client, HoldUnknown

    def silent(self: Client, name: str, owner: object, **options: object) -> None:
        raise HoldUnknown(name, str(owner), wanted="acquire")

    monkeypatch.setattr(Client, "acquire", silent)

    ran = run("semaphore", "acquire", "gpu", "--owner", "1:w:r:1", "-q")

    assert ran.code == 7
    assert "Look before you go on" in one_line(ran)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--database", "cassandra://"),
        ("--database", "cassandra://h:port/ks"),
        ("--database", "sqlite://x"),
        ("--port", "0"),
    ],
    ids=" ".join,
)
def test_a_wrong_url_or_setting_is_a_usage_error(run: Callable[..., Ran], arguments: tuple[str, ...]) -> None:
    assert run("semaphore", "list", *arguments).code == 2
