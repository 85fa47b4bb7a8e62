"""Connecting: which nodes, which data centre, who may log in; and every failure says what to correct."""

from __future__ import annotations

import socket
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from cqlserver import Host, ScriptedServer
from scriptedstore import HOSTS, SERVED, grant, opened, settings

from slotkeeper.database import (
    Applied,
    KeyspaceMissing,
    LoginRefused,
    SettingsError,
    Unavailable,
    open_store,
)
from slotkeeper.database.cassandra import CassandraStore

EAST, WEST = Host("127.0.0.1", "east"), Host("127.0.0.2", "west")
PASSWORD = "correct horse"
WRONG = "battery staple"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([SERVED], hosts=HOSTS) as server:
        yield server


@pytest.fixture(scope="module")
def two_centres() -> Iterator[ScriptedServer]:
    with ScriptedServer([SERVED], hosts=[EAST, WEST]) as server:
        yield server


@pytest.fixture(scope="module")
def guarded() -> Iterator[ScriptedServer]:
    with ScriptedServer([SERVED], credentials=("app", PASSWORD)) as server:
        yield server


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


# Nodes


def test_url_opens_a_store(server: ScriptedServer) -> None:
    store = open_store(f"cassandra://{server.host}:{server.port}/slots")
    try:
        assert store.commit(grant()) == Applied()
        assert store.keyspace == "slots"
    finally:
        store.close()


def test_one_node_that_answers_leads_to_all(server: ScriptedServer) -> None:
    hosts = (f"127.0.0.1:{free_port()}", server.host)
    with opened(server, hosts=hosts) as store:
        assert {node.address for node in store.nodes()} >= set(HOSTS)


def test_no_node_that_answers_is_unavailable_and_named(server: ScriptedServer) -> None:
    with pytest.raises(Unavailable, match=r"^No connection to 127\.0\.0\.1: .*refused.* Is it running"):
        CassandraStore(settings(server, port=free_port()))


@pytest.mark.parametrize("name", ["no-such-host.invalid", "a" * 64 + ".example", "two..dots"])
def test_name_that_leads_nowhere_is_unavailable_and_named(server: ScriptedServer, name: str) -> None:
    with pytest.raises(Unavailable, match=name):
        CassandraStore(settings(server, hosts=(name,)))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_node_that_takes_connections_and_stays_silent_is_unavailable_in_bounded_time(
    server: ScriptedServer, tls: bool
) -> None:
    started = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = settings(server, port=listener.getsockname()[1], tls=tls, connect_timeout_s=0.2)
        with pytest.raises(Unavailable):
            CassandraStore(there)
    assert time.monotonic() - started < 5


# Keyspaces


def test_missing_keyspace_is_named_with_the_way_to_create_it(server: ScriptedServer) -> None:
    with pytest.raises(KeyspaceMissing, match=r"'nowhere' does not exist\. Create it with `slotkeeper schema"):
        CassandraStore(settings(server, keyspace="nowhere"))


def test_no_keyspace_is_an_error_of_the_settings(server: ScriptedServer) -> None:
    with pytest.raises(SettingsError, match="names no keyspace"):
        CassandraStore(settings(server, keyspace=""))


def test_keyspace_may_be_created_over_a_store_without_one() -> None:
    with ScriptedServer() as server:
        store = CassandraStore(settings(server), keyspace=False)
        store.shape("CREATE KEYSPACE slots WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        store.close()
        with opened(server) as store:
            assert store.layout("tokens") is None


# Data centres


def test_several_data_centres_are_named_and_none_is_guessed(two_centres: ScriptedServer) -> None:
    with pytest.raises(SettingsError, match=r"^Several data centres answer: east, west\. Name yours: local_dc="):
        CassandraStore(settings(two_centres))


@pytest.mark.parametrize("own", [EAST, WEST], ids=lambda host: host.datacenter)
def test_transactions_go_to_the_named_data_centre_alone(two_centres: ScriptedServer, own: Host) -> None:
    before = len(two_centres.lwts)
    with opened(two_centres, hosts=(own.address,), local_dc=own.datacenter) as store:
        assert [store.commit(grant()) for _ in range(8)] == [Applied()] * 8
    assert {request.host for request in two_centres.lwts[before:]} == {own.address}


def test_contact_may_stand_in_another_data_centre(two_centres: ScriptedServer) -> None:
    with opened(two_centres, hosts=(EAST.address,), local_dc="west") as store:
        assert store.commit(grant()) == Applied()
    assert two_centres.lwts[-1].host == WEST.address


def test_unknown_data_centre_is_named_beside_those_there_are(two_centres: ScriptedServer) -> None:
    with pytest.raises(SettingsError, match=r"no data centre 'north' \(local_dc\)\. The cluster has: east, west"):
        CassandraStore(settings(two_centres, local_dc="north"))


def test_unknown_data_centre_is_an_error_where_there_is_only_one(server: ScriptedServer) -> None:
    with pytest.raises(SettingsError, match="The cluster has: datacenter1"):
        CassandraStore(settings(server, local_dc="north"))


# Logins


def test_right_password_logs_in_and_is_shown_nowhere(guarded: ScriptedServer) -> None:
    with opened(guarded, user="app", password=PASSWORD) as store:
        assert store.commit(grant()) == Applied()
        assert PASSWORD not in repr(store) + str(store.settings) + repr(store.settings)


def test_password_may_stand_in_a_file(guarded: ScriptedServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{PASSWORD}\n")
    with opened(guarded, user="app", password_file=str(secret)) as store:
        assert store.commit(grant()) == Applied()


def test_wrong_password_is_refused_and_shown_nowhere(guarded: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(LoginRefused, match=r"refused the login: .*incorrect") as raised:
        CassandraStore(settings(guarded, user="app", password=WRONG))

    told = "".join(traceback.format_exception(raised.value)) + repr(raised.value) + caplog.text
    assert WRONG not in told


def test_login_that_is_missing_is_refused(guarded: ScriptedServer) -> None:
    with pytest.raises(LoginRefused, match="Check the user and the password"):
        CassandraStore(settings(guarded))


@pytest.mark.parametrize("order", [1, -1], ids=["down first", "down last"])
def test_refused_login_is_told_also_where_another_node_is_down(guarded: ScriptedServer, order: int) -> None:
    hosts = (f"127.0.0.1:{free_port()}", guarded.host)[::order]
    with pytest.raises(LoginRefused):
        CassandraStore(settings(guarded, hosts=hosts, user="app", password=WRONG))


def test_password_file_that_cannot_be_read_is_an_error_of_the_settings(guarded: ScriptedServer, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="password file"):
        CassandraStore(settings(guarded, user="app", password_file=str(tmp_path / "absent")))


# After failures


def test_server_that_came_up_late_is_found_by_the_next_try() -> None:
    with ScriptedServer([SERVED]) as server:
        server.stop(server.host)
        with pytest.raises(Unavailable):
            CassandraStore(settings(server))
        server.start(server.host)
        with opened(server) as store:
            assert store.commit(grant()) == Applied()
