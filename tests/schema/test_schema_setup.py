"""`setup` on both stores: what it brings in, what it leaves alone, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from slotkeeper import schema
from slotkeeper.database import SchemaNotAgreed, Store
from slotkeeper.schema import Migrations, Version

pytestmark = pytest.mark.usefixtures("first_only")

TABLES = ("slotkeeper_schema", "semaphore_metadata", "semaphore_tokens")
V1 = Version(0, 1)

OTHER_COLUMNS = {
    "cql": "CREATE TABLE semaphore_tokens (id int PRIMARY KEY, note text)",
    "sql": "CREATE TABLE semaphore_tokens (id INTEGER PRIMARY KEY, note TEXT)",
}
OTHER_TYPE = {
    "cql": "CREATE TABLE semaphore_metadata (domain_id uuid, semaphore_name text, size bigint, bucket_size int,"
    " created_time timestamp, PRIMARY KEY ((domain_id), semaphore_name))",
    "sql": "CREATE TABLE semaphore_metadata (domain_id TEXT, semaphore_name TEXT, size TEXT, bucket_size INTEGER,"
    " created_time INTEGER, marker_until INTEGER, expiry TEXT, PRIMARY KEY (domain_id, semaphore_name))",
}
OTHER_KEY = {
    "cql": "CREATE TABLE semaphore_metadata (domain_id uuid, semaphore_name text, size int, bucket_size int,"
    " created_time timestamp, PRIMARY KEY ((domain_id, semaphore_name)))",
    "sql": "CREATE TABLE semaphore_metadata (domain_id TEXT, semaphore_name TEXT, size INTEGER, bucket_size INTEGER,"
    " created_time INTEGER, marker_until INTEGER, expiry TEXT, PRIMARY KEY (semaphore_name, domain_id))",
}
OTHER_CONTROL = {
    "cql": "CREATE TABLE slotkeeper_schema (name text PRIMARY KEY, version text)",
    "sql": "CREATE TABLE slotkeeper_schema (name TEXT PRIMARY KEY, version TEXT)",
}


def test_an_empty_store_gets_the_tables_and_says_so(store: Store) -> None:
    told: list[str] = []

    report = schema.setup(store, terms=schema.Terms(who="alice", progress=told.append))

    assert (report.before, report.after, len(report.statements)) == (None, V1, 3)
    assert told == [*(f"created table {table}" for table in TABLES), "version 0.1 is installed"]
    assert all(store.layout(table) for table in TABLES)
    status = schema.status(store)
    assert (status.state, status.installed, status.min_compatible, status.locked_by) == ("current", V1, V1, None)
    (change,) = status.history
    assert (change.action, change.before, change.after) == ("update", None, "0.1")
    assert change.md5 == schema.shipped().known[0].md5
    assert change.who.startswith("alice #")


def test_a_second_setup_changes_nothing(store: Store) -> None:
    schema.setup(store)
    before = schema.status(store)

    report = schema.setup(store)

    assert (report.before, report.after, report.statements) == (V1, V1, ())
    assert schema.status(store) == before
    assert schema.update(store) == report


def test_a_dry_run_shows_the_statements_and_runs_none(store: Store) -> None:
    report = schema.setup(store, dry_run=True)

    assert (report.before, report.after, len(report.statements)) == (None, V1, 3)
    assert not any(store.layout(table) for table in TABLES)
    assert [_but_id(text) for text in schema.setup(store).statements] == [_but_id(text) for text in report.statements]


def test_a_dry_run_of_a_current_schema_has_nothing_to_show(store: Store) -> None:
    schema.setup(store)

    assert schema.setup(store, dry_run=True).statements == ()


@pytest.mark.parametrize(
    ("taken", "table", "difference"),
    [
        (OTHER_COLUMNS, "semaphore_tokens", "domain_id is missing"),
        (OTHER_TYPE, "semaphore_metadata", "size is "),
        (OTHER_KEY, "semaphore_metadata", "its key is "),
        (OTHER_CONTROL, "slotkeeper_schema", "scope is missing"),
    ],
)
def test_somebody_elses_table_of_that_name_is_a_conflict_that_names_the_difference(
    store: Store, taken: dict[str, str], table: str, difference: str
) -> None:
    store.shape(taken[store.dialect])
    layout = store.layout(table)

    with pytest.raises(schema.SchemaConflict, match=difference) as raised:
        schema.setup(store)

    assert raised.value.table == table
    assert store.layout(table) == layout
    if table != "slotkeeper_schema":
        status = schema.status(store)
        assert (status.state, status.locked_by, status.history) == ("missing", None, ())


def test_a_conflict_that_was_moved_away_lets_setup_go_on(store: Store) -> None:
    store.shape(OTHER_COLUMNS[store.dialect])
    with pytest.raises(schema.SchemaConflict):
        schema.setup(store)
    store.shape("DROP TABLE semaphore_tokens")

    report = schema.setup(store)

    assert report.after == V1
    assert len(report.statements) == 1  # the other tables are there already


def test_a_table_with_one_more_column_serves(store: Store) -> None:
    for statement in schema.statements(store.dialect, store.keyspace):
        store.shape(statement)
    store.shape("ALTER TABLE semaphore_metadata ADD colour text")

    report = schema.setup(store)

    assert (report.after, report.statements) == (V1, ())


def test_an_older_schema_is_for_update_to_change(store: Store, future: Callable[[int], Migrations]) -> None:
    schema.setup(store)

    with pytest.raises(schema.SchemaTooOld, match="slotkeeper schema update") as raised:
        schema.setup(store, terms=schema.Terms(migrations=future(2)))

    assert (raised.value.installed, raised.value.expected) == (V1, Version(0, 2))


def test_a_newer_schema_that_serves_us_is_left_alone(store: Store, future: Callable[[int], Migrations]) -> None:
    schema.setup(store, terms=schema.Terms(migrations=future(2)))

    assert schema.setup(store).statements == ()
    assert schema.status(store).state == "newer"


def test_a_newer_schema_that_does_not_serve_us_is_refused(store: Store, future: Callable[[int], Migrations]) -> None:
    schema.setup(store, terms=schema.Terms(migrations=future(3)))

    for change in (schema.setup, schema.update):
        with pytest.raises(schema.SchemaTooNew, match="Update this program"):
            change(store)
    assert schema.status(store).state == "too new"


def test_the_tables_that_cadence_made_serve_whatever_their_ids(cassandra_store: Store) -> None:
    for statement in schema.statements("cql", cassandra_store.keyspace)[1:]:
        cassandra_store.shape(_without_id(statement))
    layouts = [cassandra_store.layout(table) for table in TABLES[1:]]

    report = schema.setup(cassandra_store)

    assert len(report.statements) == 1  # the control table alone
    assert [cassandra_store.layout(table) for table in TABLES[1:]] == layouts


def test_a_table_that_got_another_id_while_it_was_created_is_a_conflict(cassandra_store: Store) -> None:
    with pytest.raises(schema.SchemaConflict, match="its id is"):
        schema.setup(_Forgetful(cassandra_store))


def test_a_statement_that_the_nodes_do_not_agree_on_ends_the_setup_and_bears_repetition(cassandra_store: Store) -> None:
    with pytest.raises(SchemaNotAgreed):
        schema.setup(_Disagreeing(cassandra_store, "semaphore_tokens"))

    assert schema.status(cassandra_store).locked_by is None
    assert schema.setup(cassandra_store).after == V1


class _Wrapped:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Forgetful(_Wrapped):
    """A store that ignores the id of a table, as a managed service does."""

    def shape(self, statement: str) -> None:
        self._store.shape(_without_id(statement))


class _Disagreeing(_Wrapped):
    """A store whose nodes do not agree on one table in time."""

    def __init__(self, store: Store, table: str) -> None:
        super().__init__(store)
        self._table = table

    def shape(self, statement: str) -> None:
        self._store.shape(statement)
        if f" {self._table} " in statement:
            raise SchemaNotAgreed


def _but_id(statement: str) -> str:
    return re.sub(r"WITH id = \S+", "WITH id", statement)


def _without_id(statement: str) -> str:
    return re.sub(r"WITH id = \S+\s+AND|WITH id = \S+$", lambda found: "WITH" if "AND" in found[0] else "", statement)
