"""What goes over the wire: levels, values, the way to a replica, and how the driver is set up to send it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.policies import FallthroughRetryPolicy, NoSpeculativeExecutionPolicy
from contract.faces import Face
from cqlserver import Request, ScriptedServer
from scriptedstore import DOMAIN, HOSTS, SERVED, TOKENS, Bench, checked, grant, opened

from slotkeeper.database import Applied, Batch, Consistency, delete, insert, update
from slotkeeper.database.cassandra.connect import READ, SERIAL_READ, WRITE


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([SERVED], hosts=HOSTS) as server:
        yield server


@pytest.fixture(params=Consistency)
def pair(server: ScriptedServer, face: Face, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A store with one of the two pairs of levels."""
    with opened(server, consistency=request.param) as store:
        yield from checked(Bench(server, store, face))


def test_transaction_commits_and_decides_at_the_pair_of_its_keyspace(pair: Bench) -> None:
    assert pair.commit() == Applied()

    (request,) = pair.sent
    assert (request.consistency, request.serial_consistency) == {
        Consistency.LOCAL_QUORUM: ("LOCAL_QUORUM", "LOCAL_SERIAL"),
        Consistency.QUORUM: ("QUORUM", "SERIAL"),
    }[pair.store.consistency]


@pytest.mark.parametrize("serial", [True, False], ids=["serial", "plain"])
def test_read_is_at_the_level_that_decides_or_the_one_that_commits(pair: Bench, serial: bool) -> None:
    pair.rows(serial=serial)

    levels = pair.store.consistency
    assert pair.server.reads[-1].consistency == (levels.serial if serial else levels.value)


def test_level_is_local_quorum_unless_told_otherwise(bench: Bench) -> None:
    assert bench.store.consistency is Consistency.LOCAL_QUORUM


def test_protocol_is_version_4_from_the_first_request(bench: Bench) -> None:
    assert bench.store._cluster.protocol_version == 4  # the server takes no other


def test_batch_is_one_request_with_its_values_by_position(bench: Bench) -> None:
    expect = {"holder": ("FREE", None), "version": (7,), "seen_at": (None,)}
    writes = (
        update((1, 5), {"holder": None, "version": 8}, expect=expect, ttl_s=30),
        insert((2, 6), {"holder": "me"}, absent=True, ttl_s=60),
        delete((1, 7), expect={"version": (1, 2)}),
        delete((1, 8)),
    )
    assert bench.commit(batch=Batch(TOKENS, (DOMAIN, "wire"), writes)) == Applied()

    (request,) = bench.sent
    assert request.kind == "batch"
    assert [(statement.cql, statement.values) for statement in request.statements] == [
        (
            "UPDATE slots.tokens USING TTL ? SET holder = ?, version = ? WHERE domain = ? AND name = ? AND kind = ? AND id = ?"
            " IF holder IN (?, null) AND version = ? AND seen_at = null",
            (30, None, 8, DOMAIN, "wire", 1, 5, "FREE", 7),
        ),
        (
            "INSERT INTO slots.tokens (domain, name, kind, id, holder) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?",
            (DOMAIN, "wire", 2, 6, "me", 60),
        ),
        (
            "DELETE FROM slots.tokens WHERE domain = ? AND name = ? AND kind = ? AND id = ? IF version IN (?, ?)",
            (DOMAIN, "wire", 1, 7, 1, 2),
        ),
        ("DELETE FROM slots.tokens WHERE domain = ? AND name = ? AND kind = ? AND id = ?", (DOMAIN, "wire", 1, 8)),
    ]
    guard = request.statement.conditions[0]
    assert (guard.column, guard.operator, guard.value) == ("holder", "in", ("FREE", None))


def test_form_is_prepared_once_on_each_host_and_kept(fresh: Bench) -> None:
    for _ in range(3):
        fresh.commit()

    assert sorted(request.host for request in fresh.server.seen("prepare")) == list(HOSTS)


def test_transactions_of_a_partition_go_to_one_host_from_all_clients(server: ScriptedServer, face: Face) -> None:
    names = [str(each) for each in range(8)]

    def hosts(seen: list[Request]) -> dict[object, set[str]]:
        routes: dict[object, set[str]] = {name: set() for name in names}
        for request in seen:
            routes[request.statement.key["name"]].add(request.host)
        return routes

    with opened(server) as one, opened(server) as two:
        benches = [Bench(server, store, face) for store in (one, two)]
        for turn in range(3):
            for bench in benches:
                outcomes = [bench.commit(batch=grant(turn, name=name)) for name in names]
                assert outcomes == [Applied()] * len(names)
        routes = hosts(benches[0].sent)

    assert [len(route) for route in routes.values()] == [1] * len(names)
    assert {host for route in routes.values() for host in route} == set(HOSTS)


def test_driver_neither_retries_nor_speculates_in_any_profile(bench: Bench) -> None:
    profiles = bench.store._cluster.profile_manager.profiles
    for profile in (profiles[name] for name in (EXEC_PROFILE_DEFAULT, WRITE, READ, SERIAL_READ)):
        assert type(profile.retry_policy) is FallthroughRetryPolicy
        assert type(profile.speculative_execution_policy) is NoSpeculativeExecutionPolicy
        assert profile.load_balancing_policy.shuffle_replicas is False


def test_no_connection_waits_for_a_delayed_acknowledgement(bench: Bench) -> None:
    pools = bench.store._session.get_pools()
    sockets = [connection._socket for pool in pools for connection in pool.get_connections()]

    assert len(sockets) == len(HOSTS)
    assert all(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in sockets)
