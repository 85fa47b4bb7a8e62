"""What a client asks at its start: on both stores, through both ports."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

from slotkeeper import schema
from slotkeeper.database import (
    Applied,
    AsyncioPort,
    Batch,
    BlockingPort,
    Consistency,
    Slice,
    Store,
    TableMissing,
    drive,
    open_store,
    update,
)
from slotkeeper.schema import Migrations, Terms, Version

pytestmark = pytest.mark.usefixtures("first_only")

Future = Callable[[int], Migrations]


def check_blocking(store: Store, consistency: Consistency | None, **more: Any) -> None:
    drive(schema.check(BlockingPort(store), consistency, **more))


def check_in_a_loop(store: Store, consistency: Consistency | None, **more: Any) -> None:
    async def run() -> None:
        await schema.check(AsyncioPort(store), consistency, **more)

    asyncio.run(run())


def check(store: Store, consistency: Consistency | None, **more: Any) -> None:
    """Check through both ports, which must agree."""
    try:
        check_blocking(store, consistency, **more)
    except schema.SchemaError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            check_in_a_loop(store, consistency, **more)
        raise
    check_in_a_loop(store, consistency, **more)


def test_a_client_starts_where_the_schema_is_its_own(store: Store) -> None:
    schema.setup(store)

    check(store, store.consistency)


def test_a_client_refuses_an_empty_keyspace(store: Store) -> None:
    with pytest.raises(schema.SchemaMissing, match="Run `slotkeeper schema setup`") as raised:
        check(store, store.consistency)

    assert (raised.value.installed, raised.value.expected) == (None, Version(0, 1))
    assert store.layout("slotkeeper_schema") is None


def test_a_client_refuses_an_older_schema(store: Store, future: Future) -> None:
    schema.setup(store)

    with pytest.raises(schema.SchemaTooOld, match="Run `slotkeeper schema update`"):
        check(store, store.consistency, migrations=future(2))


def test_a_client_works_with_a_newer_schema_that_serves_it(store: Store, future: Future) -> None:
    schema.setup(store, terms=Terms(migrations=future(2)))

    check(store, store.consistency)


def test_a_client_refuses_a_newer_schema_that_does_not_serve_it(store: Store, future: Future) -> None:
    schema.setup(store, terms=Terms(migrations=future(3)))

    with pytest.raises(schema.SchemaTooNew, match="Update this program") as raised:
        check(store, store.consistency)

    assert (raised.value.installed, raised.value.expected) == (Version(0, 3), Version(0, 1))


def test_a_keyspace_keeps_the_pair_of_levels_that_it_was_set_up_with(cassandra: str) -> None:
    ours, theirs = open_store(cassandra), open_store(f"{cassandra}&consistency=QUORUM")
    try:
        schema.setup(ours)

        for attempt in (lambda: check(theirs, theirs.consistency), lambda: schema.setup(theirs)):
            with pytest.raises(schema.ConsistencyMismatch, match="LOCAL_QUORUM/LOCAL_SERIAL, ours: QUORUM/SERIAL"):
                attempt()
        assert schema.status(theirs).consistency == "LOCAL_QUORUM/LOCAL_SERIAL"
    finally:
        ours.close()
        theirs.close()


def test_an_embedded_store_has_no_pair_of_levels(moved: Store) -> None:
    schema.setup(moved)

    assert schema.status(moved).consistency is None
    check(moved, None)


def test_a_missing_table_is_an_error_of_its_own(store: Store) -> None:
    write = update(schema.DOCTOR, {"value": "x"}, expect={"value": (None,)})

    with pytest.raises(TableMissing, match="slotkeeper_schema"):
        store.read(schema.CONTROL, schema.PARTITION, (Slice(),), serial=False)
    with pytest.raises(TableMissing, match="slotkeeper_schema"):
        store.commit(Batch(schema.CONTROL, schema.PARTITION, (write,)))


def test_the_scratch_row_of_the_doctor_disturbs_nobody(store: Store) -> None:
    schema.setup(store)
    write = update(schema.DOCTOR, {"value": "x"}, expect={"value": (None,)})

    assert store.commit(Batch(schema.CONTROL, schema.PARTITION, (write,))) == Applied()

    check(store, store.consistency)
    assert len(schema.status(store).history) == 1


@pytest.mark.parametrize(
    "error",
    [
        schema.SchemaMissing(None, Version(0, 1)),
        schema.UnknownVersion(Version(7, 0), (Version(0, 1),)),
        schema.ConsistencyMismatch("QUORUM/SERIAL", "LOCAL_QUORUM/LOCAL_SERIAL"),
        schema.SchemaConflict("limits", ("most is text, not int",)),
        schema.SchemaLocked("bob #1"),
        schema.SchemaLockLost(None),
        schema.SchemaUnsettled(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_pickle_with_what_they_carry(error: schema.SchemaError) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
