"""`slotkeeper schema` on an embedded store, and what it says of a Cassandra without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Run

from slotkeeper import database, schema
from slotkeeper.database import Applied, Batch, update
from slotkeeper.schema.control import LOCK

NOBODY_THERE = "cassandra://127.0.0.1:1/slots"


def test_setup_brings_the_tables_in_once(run: Run, embedded: str) -> None:
    first, second = (run("schema", "setup", "--database", embedded, "--json").json for _ in range(2))

    assert set(first) == {"before", "after", "statements", "dry_run", "unlocked"}
    assert (first["before"], first["after"], len(first["statements"])) == (None, "0.3", 8)
    assert (second["before"], second["after"], second["statements"]) == ("0.3", "0.3", [])


def test_setup_tells_people_its_steps_beside_the_data(run: Run, embedded: str) -> None:
    ran = run("schema", "setup", "--database", embedded)

    assert ran.out == "the schema is at version 0.3, before: none\n"
    assert "created table semaphore_tokens" in ran.err
    assert run("schema", "setup", "--database", embedded).out == "the schema is at version 0.3 already\n"
    quiet = run("schema", "setup", "--database", f"{embedded}2", "-q")
    assert (quiet.code, quiet.err) == (0, "")


def test_a_dry_run_prints_what_would_run_and_makes_nothing(run: Run, embedded: str, tmp_path: Path) -> None:
    ran = run("schema", "setup", "--dry-run", "--database", embedded)

    assert ran.code == 0
    assert ran.out.count("CREATE TABLE IF NOT EXISTS") == 8
    assert ran.out.endswith(";\n")
    assert not (tmp_path / "slots.db").exists()


def test_a_dry_run_where_all_is_done_prints_nothing(run: Run, embedded: str) -> None:
    run("schema", "setup", "--database", embedded)

    ran = run("schema", "setup", "--dry-run", "--database", embedded)

    assert (ran.code, ran.out) == (0, "")
    assert "nothing to do" in ran.err


def test_a_dry_run_needs_no_cassandra(run: Run) -> None:
    ran = run("schema", "setup", "--dry-run", "--database", NOBODY_THERE, "--json")

    assert ran.code == 0
    assert all("CREATE TABLE" in statement for statement in ran.json["statements"])
    keyspace = run("schema", "create-keyspace", "--dry-run", "--database", f"{NOBODY_THERE}?local_dc=dc1", "--json")
    assert keyspace.json["statement"].startswith('CREATE KEYSPACE IF NOT EXISTS "slots"')
    assert set(keyspace.json) == {"keyspace", "created", "replication", "statement", "warnings", "dry_run"}


def test_one_replica_is_warned_of_without_a_cassandra_too(run: Run) -> None:
    url = ("--database", f"{NOBODY_THERE}?local_dc=dc1")
    ran = run("schema", "create-keyspace", "--dry-run", *url)

    assert "'dc1': '1'" in ran.out
    assert "warning: One replica" in ran.err
    three = run("schema", "create-keyspace", "--dry-run", "--replication", '{"dc1": 3, "dc2": 2}', *url)
    assert "'dc1': '3', 'dc2': '2'" in three.out
    assert "warning: Two replicas" in three.err


@pytest.mark.parametrize(
    "args",
    [
        ("--replication-factor", "0"),
        ("--replication-factor", "3", "--replication", '{"dc1": 3}'),
        ("--replication", "three"),
        ("--replication", "[3]"),
        ("--replication", "{}"),
        ("--replication", '{"dc1": 0}'),
        ("--replication", '{"class": "SimpleStrategy", "replication_factor": 3}'),
    ],
    ids=" ".join,
)
def test_a_replication_that_cannot_be_is_a_usage_error(run: Run, args: tuple[str, ...]) -> None:
    ran = run("schema", "create-keyspace", *args, "--dry-run", "--database", f"{NOBODY_THERE}?local_dc=dc1")

    assert (ran.code, ran.out) == (2, "")


def test_an_embedded_store_has_no_keyspace(run: Run, embedded: str) -> None:
    assert run("schema", "create-keyspace", "--database", embedded).code == 2
    assert run("schema", "create-keyspace").code == 2


def test_status_says_what_is_there(run: Run, embedded: str) -> None:
    missing = run("schema", "status", "--database", embedded, "--json")
    assert (missing.code, missing.json["state"], missing.json["installed"]) == (5, "missing", None)
    assert "run `slotkeeper schema setup`" in run("schema", "status", "--database", embedded).out

    run("schema", "setup", "--database", embedded)
    found = run("schema", "status", "--database", embedded, "--json")
    assert found.code == 0
    first, *changes = found.json.pop("history")
    assert set(changes[-1]) == {"action", "who", "at_ms", "before", "after", "md5", "broken"}
    assert [(each["before"], each["after"]) for each in (first, *changes)] == [
        (None, "0.1"),
        ("0.1", "0.2"),
        ("0.2", "0.3"),
    ]
    assert found.json == {**found.json, "state": "current", "installed": "0.3", "expected": "0.3", "locked_by": None}
    assert {*found.json, "history"} == {
        *("state", "installed", "min_compatible", "expected", "consistency"),
        *("locked_by", "lock_renewed_ms", "history"),
    }
    assert "current" in run("schema", "status", "--database", embedded).out


def test_update_has_nothing_to_do_or_nothing_to_start_from(run: Run, embedded: str) -> None:
    empty = run("schema", "update", "--database", embedded, "--json")
    assert (empty.code, empty.error["type"]) == (5, "SchemaMissing")

    run("schema", "setup", "--database", embedded)
    assert run("schema", "update", "--database", embedded).out == "the schema is at version 0.3 already\n"
    assert run("schema", "update", "--database", embedded, "--to", "7.0").code == 5
    assert run("schema", "update", "--database", embedded, "--to", "seven").code == 2


def lock_of_the_dead(url: str) -> None:
    """Leave the lock of a process that died."""
    store = database.open_store(url)
    schema.setup(store)
    held = update(LOCK, {"holder": "somebody pid 1 #0", "updated_time": 1}, expect={"holder": ("", None)}, ttl_s=90)
    assert store.commit(Batch(schema.CONTROL, schema.PARTITION, (held,))) == Applied()
    store.close()


def test_force_unlock_says_whose_lock_it_broke(run: Run, embedded: str) -> None:
    lock_of_the_dead(embedded)
    assert "somebody pid 1 #0" in run("schema", "status", "--database", embedded).out

    ran = run("schema", "setup", "--force-unlock", "--database", embedded)

    assert ran.code == 0
    assert "broke the lock of somebody pid 1 #0" in ran.err
    told = run("schema", "update", "--force-unlock", "--database", embedded, "--json").json
    assert told["unlocked"] is None
    assert "unlock" in run("schema", "status", "--database", embedded).out


def test_force_unlock_tells_programs_too(run: Run, embedded: str) -> None:
    lock_of_the_dead(embedded)

    assert run("schema", "setup", "--force-unlock", "--database", embedded, "--json").json["unlocked"] == (
        "somebody pid 1 #0"
    )


def test_a_dry_run_breaks_no_lock(run: Run, embedded: str) -> None:
    lock_of_the_dead(embedded)

    assert run("schema", "setup", "--force-unlock", "--dry-run", "--database", embedded).code == 2
    assert run("schema", "status", "--database", embedded, "--json").json["locked_by"] == "somebody pid 1 #0"
