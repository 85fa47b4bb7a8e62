"""The Cassandra store on a real server: what it is told at opening, what it tells of itself, and what is missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from contract.lamps import LAMPS, shape
from contract.rooms import lamp

from slotkeeper.database import (
    Applied,
    AsyncioPort,
    Batch,
    CassandraSettings,
    Consistency,
    Key,
    KeyspaceMissing,
    Refused,
    SettingsError,
    Slice,
    StatementRejected,
    TableMissing,
    Unavailable,
    delete,
    insert,
    open_store,
    parse,
    update,
)
from slotkeeper.database.cassandra import CassandraStore


@pytest.fixture(scope="module")
def settings(cassandra_url: str) -> CassandraSettings:
    found = parse(cassandra_url)
    assert isinstance(found, CassandraSettings)
    return found


@pytest.fixture(scope="module")
def store(settings: CassandraSettings) -> Iterator[CassandraStore]:
    store = CassandraStore(settings)
    shape(store)
    yield store
    store.close()


@pytest.fixture
def hall() -> Key:
    return (uuid4(), "hall")


# Opening


def test_keyspace_that_is_not_there_is_named_with_the_way_to_it(settings: CassandraSettings) -> None:
    with pytest.raises(KeyspaceMissing, match=r"nowhere.*slotkeeper schema create-keyspace"):
        open_store(replace(settings, keyspace="nowhere"))


def test_store_without_a_keyspace_creates_one(settings: CassandraSettings) -> None:
    name = f"made_{uuid4().hex[:12]}"
    bare = CassandraStore(replace(settings, keyspace=""), keyspace=False)
    replication = f"{{'class': 'NetworkTopologyStrategy', '{settings.local_dc}': 1}}"

    bare.shape(f"CREATE KEYSPACE {name} WITH replication = {replication}")

    within = open_store(replace(settings, keyspace=name))
    assert within.layout("lamps") is None
    within.close()
    bare.shape(f"DROP KEYSPACE {name}")
    bare.close()


def test_url_without_a_keyspace_is_told_so(settings: CassandraSettings) -> None:
    with pytest.raises(SettingsError, match="names no keyspace"):
        open_store(replace(settings, keyspace=""))


def test_port_where_nobody_listens_is_unavailable_and_named(settings: CassandraSettings) -> None:
    with pytest.raises(Unavailable, match=rf"No connection to {settings.hosts[0].partition(':')[0]}.*Is it running"):
        open_store(replace(settings, hosts=(settings.contact_points()[0][0],), port=1))


def test_data_centre_that_is_not_there_is_named_beside_those_that_are(settings: CassandraSettings) -> None:
    with pytest.raises(SettingsError, match=rf"no data centre 'mars'.*The cluster has: {settings.local_dc}"):
        open_store(replace(settings, local_dc="mars"))


def test_only_data_centre_need_not_be_named(settings: CassandraSettings, store: CassandraStore, hall: Key) -> None:
    unnamed = open_store(replace(settings, local_dc=None))

    assert unnamed.commit(Batch(LAMPS, hall, (insert(lamp(1), {}, absent=True),))) == Applied()
    unnamed.close()


@pytest.mark.parametrize("pair", Consistency)
def test_either_pair_of_levels_works(
    settings: CassandraSettings, store: CassandraStore, hall: Key, pair: Consistency
) -> None:
    other = open_store(replace(settings, consistency=pair))

    assert other.commit(Batch(LAMPS, hall, (insert(lamp(1), {}, absent=True),))) == Applied()
    assert [row["shelf"] for row in other.read(LAMPS, hall, (Slice(),), serial=True)] == [1]
    assert other.consistency is pair
    other.close()


# What it tells


def test_store_shows_where_it_is_connected(store: CassandraStore, settings: CassandraSettings) -> None:
    assert repr(store) == f"<CassandraStore {settings}>"
    assert (store.dialect, store.keyspace) == ("cql", settings.keyspace)


def test_nodes_tell_their_release_their_paxos_and_their_clock(
    store: CassandraStore, settings: CassandraSettings
) -> None:
    before_ms = time.time_ns() // 1_000_000
    (node, *_) = store.nodes()

    assert node.data_center == settings.local_dc
    assert int(node.release.partition(".")[0]) >= 4
    assert node.paxos_variant in (None, "v1", "v2")
    assert abs(node.clock_ms - before_ms) < 60_000


def test_columns_are_told_as_the_server_spells_them(store: CassandraStore) -> None:
    layout = store.layout("lamps")
    assert layout is not None
    assert layout.columns == {column: LAMPS.kind(column).value for column in LAMPS.columns}


def test_query_answers_rows_and_takes_values(store: CassandraStore, settings: CassandraSettings) -> None:
    query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"

    assert {"table_name": "lamps"} in store.query(query, settings.keyspace)
    with pytest.raises(StatementRejected, match=r"rejected the statement: .*SELEKT"):
        store.query("SELEKT 1")


def test_statement_that_shapes_may_be_repeated_and_one_that_is_wrong_is_rejected(store: CassandraStore) -> None:
    shape(store)
    with pytest.raises(StatementRejected, match="already exists"):
        store.shape("CREATE TABLE lamps (x int PRIMARY KEY)")
    with pytest.raises(StatementRejected):
        store.shape("CREATE TABEL more (x int PRIMARY KEY)")


def test_new_column_is_there_for_the_next_write(store: CassandraStore, hall: Key) -> None:
    wider = replace(LAMPS, values={**LAMPS.values, "extra": LAMPS.kind("slot")})
    with pytest.raises(StatementRejected, match="extra"):
        store.commit(Batch(wider, hall, (insert(lamp(1), {"extra": 1}, absent=True),)))

    store.shape("ALTER TABLE lamps ADD extra int")

    assert store.commit(Batch(wider, hall, (insert(lamp(1), {"extra": 1}, absent=True),))) == Applied()
    assert store.read(wider, hall, (Slice(),), serial=True)[0]["extra"] == 1
    assert len(store.read(LAMPS, hall, (Slice(),), serial=True)) == 1
    store.shape("ALTER TABLE lamps DROP extra")


def test_table_that_is_not_there_is_named_with_the_way_to_it(store: CassandraStore, hall: Key) -> None:
    other = replace(LAMPS, name="lanterns")

    with pytest.raises(TableMissing, match=r"lanterns.*slotkeeper schema setup"):
        store.commit(Batch(other, hall, (insert(lamp(1), {}, absent=True),)))
    with pytest.raises(TableMissing, match="lanterns"):
        store.read(other, hall, (Slice(),), serial=False)


def test_table_that_was_made_anew_serves_the_statements_of_the_old_one(store: CassandraStore, hall: Key) -> None:
    other = replace(LAMPS, name="torches")
    made = "CREATE TABLE torches (house uuid, room text, shelf int, name text, holder text, slot int, total bigint, "
    made += "version timestamp, seal uuid, body blob, PRIMARY KEY ((house, room), shelf, name))"
    take = Batch(other, hall, (insert(lamp(1), {"holder": "ada"}, absent=True),))
    store.shape(made)
    assert store.commit(take) == Applied()
    store.shape("DROP TABLE torches")
    with pytest.raises(TableMissing):
        store.commit(take)
    store.shape(made)

    assert store.commit(take) == Applied()
    assert [row["holder"] for row in store.read(other, hall, (Slice(),), serial=True)] == ["ada"]


# The loop


def test_first_commit_of_a_form_does_not_block_the_loop(
    settings: CassandraSettings, store: CassandraStore, hall: Key
) -> None:
    """A form that was never prepared goes to a thread: the coroutine comes back at once, and the loop turns meanwhile."""

    async def core() -> int:
        fresh = await asyncio.to_thread(open_store, settings)
        port, turns = AsyncioPort(fresh), 0
        commit = asyncio.create_task(port.commit(Batch(LAMPS, hall, (insert(lamp(1), {"slot": 1}, absent=True),))))
        async with asyncio.timeout(30):
            while not commit.done():
                turns += 1
                await asyncio.sleep(0)
        assert await commit == Applied()
        assert len(await port.read(LAMPS, hall, (Slice(), Slice((1,))), serial=True)) == 2
        await asyncio.to_thread(fresh.close)
        return turns

    assert asyncio.run(core()) > 1


def test_large_batch_waits_for_no_delayed_acknowledgement(store: CassandraStore, hall: Key) -> None:
    """Past 4 KiB, every request would take 40 ms more without TCP_NODELAY: the fastest of ten would show it."""
    names = [lamp(number, "x" * 40) for number in range(100)]

    def took_s(turn: int) -> float:
        batch = Batch(
            LAMPS, hall, tuple(update(name, {"slot": turn}, expect={"slot": (turn - 1, None)}) for name in names)
        )
        begun = time.perf_counter()
        assert store.commit(batch) == Applied()
        return time.perf_counter() - begun

    assert min(took_s(turn) for turn in range(1, 11)) < 0.04


def test_read_at_the_serial_level_sees_what_was_just_applied(store: CassandraStore, hall: Key) -> None:
    for turn in range(20):
        move = update(lamp(1), {"slot": turn + 1}, expect={"slot": (turn, None) if turn == 0 else (turn,)})
        assert store.commit(Batch(LAMPS, hall, (move,))) == Applied()
        for serial in (True, False):
            assert store.read(LAMPS, hall, (Slice((1,)),), serial=serial)[0]["slot"] == turn + 1


def test_two_stores_share_what_is_in_the_database(
    settings: CassandraSettings, store: CassandraStore, hall: Key
) -> None:
    other = open_store(settings)
    take = Batch(LAMPS, hall, (insert(lamp(1), {"seal": UUID(int=1)}, absent=True),))

    assert store.commit(take) == Applied()
    refused = other.commit(take)
    assert isinstance(refused, Refused)
    assert refused.rows[lamp(1)]["seal"] == UUID(int=1)
    assert other.commit(Batch(LAMPS, hall, (delete(lamp(1), expect={"seal": (UUID(int=1),)}),))) == Applied()
    assert store.commit(take) == Applied()
    other.close()
