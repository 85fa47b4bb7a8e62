"""`update` on both stores: forward, step by step, and on from where a dead process stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from slotkeeper import schema
from slotkeeper.database import BlockingPort, Store, drive
from slotkeeper.schema import Migrations, Terms, Version

pytestmark = pytest.mark.usefixtures("first_only")

Future = Callable[[int], Migrations]


def columns_of(store: Store, table: str) -> Collection[str]:
    """Return the columns of a table."""
    layout = store.layout(table)
    assert layout is not None
    return layout.columns


def test_an_older_schema_comes_to_the_newest_version_one_by_one(store: Store, future: Future) -> None:
    schema.setup(store)

    report = schema.update(store, terms=Terms(migrations=future(3)))

    assert (report.before, report.after, len(report.statements)) == (Version(0, 1), Version(0, 3), 2)
    assert "weight" in columns_of(store, "semaphore_metadata")
    assert "most" in columns_of(store, "limits")
    status = schema.status(store)
    assert [(change.before, change.after) for change in status.history] == [
        (None, "0.1"),
        ("0.1", "0.2"),
        ("0.2", "0.3"),
    ]
    assert status.min_compatible == Version(0, 2)


def test_an_update_may_stop_at_a_version(store: Store, future: Future) -> None:
    schema.setup(store)
    terms = Terms(migrations=future(3))

    assert schema.update(store, Version(0, 2), terms=terms).after == Version(0, 2)
    assert schema.update(store, Version(0, 2), terms=terms).statements == ()
    assert schema.update(store, Version(0, 1), terms=terms).after == Version(0, 2)  # never back
    assert store.layout("limits") is None
    assert schema.update(store, terms=terms).after == Version(0, 3)


def test_a_dry_run_of_an_update_shows_only_what_is_missing(store: Store, future: Future) -> None:
    schema.setup(store)

    report = schema.update(store, dry_run=True, terms=Terms(migrations=future(2)))

    assert len(report.statements) == 1
    assert report.statements[0].startswith("ALTER TABLE semaphore_metadata ADD")
    assert "weight" not in columns_of(store, "semaphore_metadata")


def test_setup_of_an_empty_store_brings_every_version(store: Store, future: Future) -> None:
    report = schema.setup(store, terms=Terms(migrations=future(3)))

    assert (report.before, report.after, len(report.statements)) == (None, Version(0, 3), 5)


def test_nothing_to_update_where_nothing_is(store: Store) -> None:
    with pytest.raises(schema.SchemaMissing, match="slotkeeper schema setup"):
        schema.update(store)


def test_a_version_that_the_program_does_not_know_is_refused(store: Store) -> None:
    with pytest.raises(schema.UnknownVersion, match=r"no schema version 7\.0.*knows: 0\.1"):
        schema.update(store, Version(7, 0))


def test_an_update_goes_on_where_a_dead_process_stopped(store: Store, future: Future) -> None:
    schema.setup(store)
    done = schema.statements(store.dialect, store.keyspace, installed=Version(0, 1), migrations=future(3))
    for statement in done:  # both ran, and the process died before it recorded anything
        store.shape(statement)

    report = schema.update(store, terms=Terms(migrations=future(3)))

    assert (report.after, report.statements) == (Version(0, 3), ())


def test_a_client_waits_for_the_update_and_never_makes_it(store: Store, future: Future) -> None:
    schema.setup(store)
    check = schema.check(BlockingPort(store), store.consistency, migrations=future(2))

    with pytest.raises(schema.SchemaTooOld, match="slotkeeper schema update"):
        drive(check)

    assert "weight" not in columns_of(store, "semaphore_metadata")
