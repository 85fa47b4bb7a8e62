"""The databases that are measured, with their tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster import LocalNode

from slotkeeper import schema
from slotkeeper.database import CassandraSettings, open_store, parse

KEYSPACE = "bench"
TASKS = "tasks:"


@contextmanager
def node_of_our_own() -> Iterator[str]:
    """Start a Cassandra for this run; its data go with it."""
    with LocalNode(heap_mb=1024) as node:
        yield ready(node.server.url(KEYSPACE))


@contextmanager
def file_of_our_own() -> Iterator[str]:
    """Make a SQLite file for this run."""
    with tempfile.TemporaryDirectory(prefix="slotkeeper-bench-") as folder:
        yield ready(f"sqlite:///{Path(folder) / 'bench.db'}")


@contextmanager
def folder_of_our_own() -> Iterator[str]:
    """Make a folder for the journals of task stores, on the file system of temporary files."""
    with tempfile.TemporaryDirectory(prefix="slotkeeper-bench-") as folder:
        yield f"{TASKS}{folder}"


def ready(url: str) -> str:
    """Make sure that a database has the tables, and the keyspace that its URL names. Both stay."""
    if is_folder(url):
        return url
    settings = parse(url)
    if isinstance(settings, CassandraSettings):
        schema.create_keyspace(settings)
    store = open_store(settings)
    try:
        schema.setup(store)
    finally:
        store.close()
    return url


def is_folder(url: str) -> bool:
    """Tell a folder for task stores, `tasks:FOLDER`, from a database."""
    return url.startswith(TASKS)


def is_cassandra(url: str) -> bool:
    """Tell which suite a database gets."""
    return not is_folder(url) and isinstance(parse(url), CassandraSettings)


def described(url: str) -> str:
    """Say what a database is."""
    if is_folder(url):
        return "task stores"
    settings = parse(url)
    if not isinstance(settings, CassandraSettings):
        return "SQLite"
    from slotkeeper.database.cassandra import CassandraStore

    store = CassandraStore(settings)
    try:
        return ", ".join(sorted(f"Cassandra {node.release} paxos {node.paxos_variant}" for node in store.nodes()))
    finally:
        store.close()
