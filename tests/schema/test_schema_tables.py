"""What the tables are in Cassandra: those of semaphores with columns, keys and options as the Go reference has them."""

from __future__ import annotations

import re
import uuid
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from slotkeeper import schema
from slotkeeper.database import open_store
from slotkeeper.schema import versions
from slotkeeper.semaphore import Client
from slotkeeper.taskstore.rows.tables import JOURNAL, SNAPSHOTS, STORES

LEVELED = "org.apache.cassandra.db.compaction.LeveledCompactionStrategy"
TABLES = (
    "slotkeeper_schema",
    *("semaphore_metadata", "semaphore_tokens"),
    *("task_stores", "task_journal", "task_snapshots"),
    *("lock_clusters", "lock_nodes"),
)
IDS = [
    "2cb83ff2-0e3e-5204-b94d-9bcdd3701ae3",
    "93466039-af6a-5fc9-9f85-0497583e6fef",
    "16135ff5-da9b-5564-bbe5-7604d2c117cc",
    "328a5dcd-a8ac-5fd4-8650-3d713c7bbc39",
    "2afd6a23-18ed-5700-9a62-630885ef465f",
    "877b33d4-7993-566f-b333-326b5d338b49",
    "32049de1-aed8-52ca-aaff-20e45f371bc3",
    "173f778b-ff3e-51c6-a05c-d1567bce975c",
]
METADATA = {
    "domain_id": ("uuid", "partition_key", 0),
    "semaphore_name": ("text", "clustering", 0),
    "size": ("int", "regular", -1),
    "bucket_size": ("int", "regular", -1),
    "created_time": ("timestamp", "regular", -1),
}
TOKENS = {
    "domain_id": ("uuid", "partition_key", 0),
    "semaphore_name": ("text", "partition_key", 1),
    "bucket": ("int", "partition_key", 2),
    "type": ("int", "clustering", 0),
    "token_id": ("int", "clustering", 1),
    "owner_id": ("text", "clustering", 2),
    "holder": ("text", "regular", -1),
    "held_token": ("int", "regular", -1),
    "updated_time": ("timestamp", "regular", -1),
}


@pytest.fixture(scope="module")
def installed(cassandra_url: str, keyspace: str) -> str:
    """A keyspace with the tables."""
    store = open_store(cassandra_url)
    schema.setup(store)
    store.close()
    return keyspace


@pytest.mark.parametrize(("table", "columns"), [("semaphore_metadata", METADATA), ("semaphore_tokens", TOKENS)])
def test_columns_and_keys_are_cadences(
    cassandra_session: Session, installed: str, table: str, columns: dict[str, tuple[str, str, int]]
) -> None:
    query = "SELECT * FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s"
    rows = list(cassandra_session.execute(query, (installed, table)))

    assert {row.column_name: (row.type, row.kind, row.position) for row in rows} == columns
    assert {row.clustering_order for row in rows} <= {"none", "asc"}


@pytest.mark.parametrize("table", ["semaphore_metadata", "semaphore_tokens"])
def test_options_are_cadences(cassandra_session: Session, installed: str, table: str) -> None:
    options = _options(cassandra_session, installed, table)

    assert options.compaction["class"] == LEVELED
    assert options.default_time_to_live == 0
    assert options.gc_grace_seconds == 864_000


def test_ids_follow_from_the_names_and_the_seed(cassandra_session: Session, installed: str) -> None:
    seed = cassandra_session.execute(
        f"SELECT value FROM {installed}.slotkeeper_schema"
        " WHERE scope = 'slotkeeper' AND kind = 'setting' AND name = 'table_ids'"
    ).one()

    named = [_id(text) for text in schema.statements("cql", installed, seed=uuid.UUID(seed.value))]

    assert named == [str(_options(cassandra_session, installed, table).id) for table in TABLES]


def test_what_ids_are_made_of_never_changes() -> None:
    assert [_id(text) for text in schema.statements("cql", "slots", seed=uuid.UUID(int=7))] == IDS


def test_without_a_seed_every_keyspace_gets_fresh_ids() -> None:
    first, second = ([_id(text) for text in schema.statements("cql", "slots")] for _ in range(2))

    assert first[0] == second[0]  # the control table's creation may race before there is any seed
    assert not set(first[1:]) & set(second[1:])


def test_the_code_of_task_stores_and_the_schema_name_the_same_tables() -> None:
    assert schema.shipped().known[1].tables == (STORES, JOURNAL, SNAPSHOTS)


@pytest.mark.usefixtures("first_only")
def test_a_program_of_the_first_version_goes_on_over_an_update(tmp_path: Path) -> None:
    both = schema.Terms(migrations=schema.load(files(versions)))
    store = open_store(f"sqlite:///{tmp_path}/slots.db")
    schema.setup(store)
    with Client(store, domain="d") as client:
        client.create("gpu", 1)
        assert client.try_acquire("gpu", "2:wf:run:1") is not None
        assert schema.update(store, terms=both).after == schema.Version(0, 3)
        assert client.try_acquire("gpu", "2:wf:run:2") is None
    with Client(store, domain="d") as client:
        assert client.release("gpu", "2:wf:run:1")
    store.close()


def _id(text: str) -> str:
    found = re.search(r"WITH id = (\S+)", text)
    assert found is not None
    return found[1]


def _options(session: Session, keyspace: str, table: str) -> Any:
    query = "SELECT * FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"
    return session.execute(query, (keyspace, table)).one()
