"""A real Cassandra for the tests that ask for one: `cassandra_url`, `keyspace`, `cassandra_server` (see `cluster`)."""

from cluster.fixtures import (
    cassandra_server,
    cassandra_session,
    cassandra_url,
    keyspace,
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_report_collectionfinish,
)

__all__ = [
    "cassandra_server",
    "cassandra_session",
    "cassandra_url",
    "keyspace",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_collectionfinish",
]
