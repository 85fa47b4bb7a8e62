"""Creating a keyspace: replication as asked, its cost said, and one that exists left alone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from cassandra.cluster import Session
from cluster.server import Server

from slotkeeper import schema
from slotkeeper.database import CassandraSettings, SettingsError, open_store, parse
from slotkeeper.schema import keyspace_statement


@pytest.fixture
def settings(cassandra_server: Server, cassandra_session: Session) -> Iterator[CassandraSettings]:
    """Settings that name a keyspace which does not exist, in letters that need quotes."""
    name = f"Slots_{uuid.uuid4().hex[:12]}"
    found = parse(cassandra_server.url(name))
    assert isinstance(found, CassandraSettings)
    yield found
    cassandra_session.execute(f'DROP KEYSPACE IF EXISTS "{name}"')


def test_a_new_keyspace_is_where_the_tables_can_come(settings: CassandraSettings) -> None:
    report = schema.create_keyspace(settings)

    assert (report.created, report.asked, report.replication) == (True, {"datacenter1": "1"}, {"datacenter1": "1"})
    store = open_store(settings)
    assert schema.setup(store).after == schema.shipped().newest
    store.close()


def test_the_local_data_centre_is_found_where_there_is_one(settings: CassandraSettings) -> None:
    report = schema.create_keyspace(replace(settings, local_dc=None))

    assert report.replication == {"datacenter1": "1"}


def test_a_keyspace_that_exists_is_left_as_it_is_and_shown(settings: CassandraSettings) -> None:
    schema.create_keyspace(settings)

    report = schema.create_keyspace(settings, replication={"datacenter1": 3})

    assert (report.created, report.asked, report.replication) == (False, {"datacenter1": "3"}, {"datacenter1": "1"})
    assert any("left as it is" in warning for warning in report.warnings)
    again = schema.create_keyspace(settings)
    assert (again.created, any("left as it is" in warning for warning in again.warnings)) == (False, False)


def test_a_dry_run_creates_no_keyspace(settings: CassandraSettings) -> None:
    report = schema.create_keyspace(settings, dry_run=True)

    assert (report.created, report.replication) == (False, None)
    assert report.statement == keyspace_statement(settings.keyspace, {"datacenter1": 1})
    assert schema.create_keyspace(settings).created


def test_what_a_replication_costs_is_said(settings: CassandraSettings, cassandra_session: Session) -> None:
    def warned(replicas: int) -> str:
        return " ".join(schema.create_keyspace(settings, replication_factor=replicas, dry_run=True).warnings)

    assert "with its disk goes" in warned(1)
    assert "a majority of two is two" in warned(2)
    assert warned(3) == ""

    cassandra_session.execute(
        f'CREATE KEYSPACE "{settings.keyspace}" WITH durable_writes = false'
        " AND replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    report = schema.create_keyspace(settings, replication_factor=3)
    assert report.replication == {"class": "SimpleStrategy", "replication_factor": "1"}
    assert any("durable_writes" in warning for warning in report.warnings)


def test_a_data_centre_that_nobody_knows_is_refused(settings: CassandraSettings) -> None:
    with pytest.raises(SettingsError, match="There is no data centre 'mars'"):
        schema.create_keyspace(replace(settings, local_dc="mars"))


def test_a_statement_names_every_data_centre_and_quotes() -> None:
    assert keyspace_statement("Slots", {"class": "NetworkTopologyStrategy", "dc1": 3, "o'hare": "2"}) == (
        'CREATE KEYSPACE IF NOT EXISTS "Slots" WITH replication = '
        "{'class': 'NetworkTopologyStrategy', 'dc1': '3', 'o''hare': '2'} AND durable_writes = true"
    )


@pytest.mark.parametrize(
    ("replication", "why"),
    [
        ({"class": "SimpleStrategy", "replication_factor": 1}, "The replication class is NetworkTopologyStrategy"),
        ({}, "names no data centre"),
        ({"dc1": 0}, "at least 1, not 0"),
        ({"dc1": "many"}, "at least 1, not many"),
        ({"dc1": True}, "at least 1, not True"),
    ],
)
def test_a_replication_that_cannot_be_is_refused(replication: dict[str, object], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        keyspace_statement("slots", replication)


@pytest.mark.parametrize("keyspace", ["", "a" * 49, "a b", 'a"b', "schlüssel"])
def test_a_name_that_cassandra_does_not_take_is_refused(keyspace: str) -> None:
    with pytest.raises(SettingsError):
        keyspace_statement(keyspace, {"dc1": 3})
