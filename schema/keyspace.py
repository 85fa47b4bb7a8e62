"""Creating a keyspace of a Cassandra cluster. Only ever on demand: how often data is kept is for its owner to decide."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..database import CassandraSettings, SettingsError

if TYPE_CHECKING:
    from ..database.cassandra import CassandraStore

STRATEGY = "NetworkTopologyStrategy"
ONE_REPLICA = (
    "One replica: each bucket lives on one node. While that node is down its slots can be neither acquired nor released, "
    "and with its disk goes the knowledge of who holds them. Take 3 where it matters."
)
TWO_REPLICAS = "Two replicas: a majority of two is two, so any node down stops its buckets. Take 3."
NOT_DURABLE = (
    "The keyspace has durable_writes = false: a restart forgets who holds what. ALTER KEYSPACE can set it to true."
)
KEPT = (
    "The keyspace was there already and is left as it is. ALTER KEYSPACE changes its replication; repair it afterwards."
)


@dataclass(frozen=True, slots=True)
class KeyspaceReport:
    """What became of a keyspace. `asked` and `replication` are as asked, and as it is (None in a dry run without one)."""

    keyspace: str
    created: bool
    statement: str
    asked: Mapping[str, str]
    replication: Mapping[str, str] | None
    warnings: tuple[str, ...]
    dry_run: bool = False


def create_keyspace(
    settings: CassandraSettings,
    *,
    replication_factor: int = 1,
    replication: Mapping[str, object] | None = None,
    dry_run: bool = False,
) -> KeyspaceReport:
    """Create the keyspace of the settings. One that exists is left as it is, and shown.

    `replication` maps data centres to replicas; without it, the local one gets `replication_factor`. Raises SettingsError
    for what cannot be, and a DatabaseError.
    """
    from ..database.cassandra import (
        CassandraStore,
    )  # the driver takes a third of a second to import: only who needs it pays

    _check_name(settings.keyspace)
    asked = _replicas(replication) if replication is not None else {}  # before connecting: it may be wrong as it stands
    store = CassandraStore(settings, keyspace=False)
    try:
        return _created(store, asked or _replicas({_local_dc(store): replication_factor}), dry_run)
    finally:
        store.close()


def keyspace_statement(keyspace: str, replication: Mapping[str, object]) -> str:
    """Return the statement that creates a keyspace, with its replicas for each data centre. Raises SettingsError."""
    _check_name(keyspace)
    options = {"class": STRATEGY, **_replicas(replication)}
    spelled = ", ".join(f"{_quoted(name)}: {_quoted(value)}" for name, value in options.items())
    return f'CREATE KEYSPACE IF NOT EXISTS "{keyspace}" WITH replication = {{{spelled}}} AND durable_writes = true'


def _created(store: CassandraStore, asked: Mapping[str, str], dry_run: bool) -> KeyspaceReport:
    statement = keyspace_statement(store.keyspace, asked)
    found = _found(store)
    created = found is None and not dry_run
    if created:
        store.shape(statement)
        found = _found(store)
    replication, durable = found or (None, True)
    warnings = _warnings(asked, replication, durable)
    return KeyspaceReport(store.keyspace, created, statement, asked, replication, warnings, dry_run)


def _found(store: CassandraStore) -> tuple[Mapping[str, str], bool] | None:
    """Return replication and durability of the keyspace as it is."""
    query = "SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = %s"
    for row in store.query(query, store.keyspace):
        strategy = row["replication"]["class"].rpartition(".")[2]
        others = {name: value for name, value in row["replication"].items() if name != "class"}
        return (others if strategy == STRATEGY else {"class": strategy, **others}), row["durable_writes"]
    return None


def _warnings(asked: Mapping[str, str], found: Mapping[str, str] | None, durable: bool) -> tuple[str, ...]:
    counts = {value for name, value in (found or asked).items() if name != "class"}
    cases = {
        KEPT: found is not None and found != asked,
        ONE_REPLICA: "1" in counts,
        TWO_REPLICAS: "2" in counts,
        NOT_DURABLE: not durable,
    }
    return tuple(warning for warning, applies in cases.items() if applies)


def _local_dc(store: CassandraStore) -> str:
    """Return the data centre to create in. Where several answer and none is named, connecting has failed already."""
    named = store.settings.local_dc
    return named or str(store.query("SELECT data_center FROM system.local")[0]["data_center"])


def _replicas(replication: Mapping[str, object]) -> dict[str, str]:
    strategy = replication.get("class", STRATEGY)
    if str(strategy).rpartition(".")[2] != STRATEGY:
        raise SettingsError(
            f"The replication class is {STRATEGY}, not {strategy}: it alone counts replicas a data centre."
        )
    asked = {name: str(count) for name, count in replication.items() if name != "class"}
    if not asked:
        raise SettingsError('The replication names no data centre: {"DATACENTRE": 3}.')
    for name, count in asked.items():
        if not re.fullmatch("[1-9][0-9]*", count, re.ASCII):
            raise SettingsError(f"Data centre {name} gets a whole number of replicas, at least 1, not {count}.")
    return asked


def _check_name(keyspace: str) -> None:
    if not keyspace:
        raise SettingsError("The database URL names no keyspace: cassandra://HOST[:PORT]/KEYSPACE.")
    if not re.fullmatch(r"\w{1,48}", keyspace, re.ASCII):
        raise SettingsError(f"A keyspace has at most 48 letters, digits and _, which {keyspace!r} has not.")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
