"""The system tables: who the hosts are, and what the schema is. Drivers read them when they connect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time_ns
from typing import Any, Final
from uuid import NAMESPACE_DNS, UUID, uuid5

from .requests import Condition, Statement
from .tables import Catalog, Table

RELEASE: Final = "5.0.8"
SCHEMA_VERSION: Final = uuid5(NAMESPACE_DNS, "schema.example")
_PARTITIONER: Final = "org.apache.cassandra.dht.Murmur3Partitioner"
_STRATEGY: Final = "org.apache.cassandra.locator.SimpleStrategy"

_NODE: Final = {
    "data_center": "text",
    "host_id": "uuid",
    "rack": "text",
    "release_version": "text",
    "schema_version": "uuid",
    "tokens": "set<text>",
}
_LOCAL: Final = {
    "key": "text",
    "bootstrapped": "text",
    "broadcast_address": "inet",
    "broadcast_port": "int",
    "cluster_name": "text",
    "cql_version": "text",
    "listen_address": "inet",
    "listen_port": "int",
    "native_protocol_version": "text",
    "partitioner": "text",
    "rpc_address": "inet",
    "rpc_port": "int",
} | _NODE
_PEERS: Final = {"peer": "inet", "rpc_address": "inet"} | _NODE
_PEERS_V2: Final = {
    "peer": "inet",
    "peer_port": "int",
    "native_address": "inet",
    "native_port": "int",
} | _NODE
_KEYSPACES: Final = {"keyspace_name": "text", "durable_writes": "boolean", "replication": "map<text,text>"}
_TABLES: Final = {
    "keyspace_name": "text",
    "table_name": "text",
    "comment": "text",
    "default_time_to_live": "int",
    "flags": "set<text>",
    "gc_grace_seconds": "int",
    "id": "uuid",
}
_COLUMNS: Final = {
    "keyspace_name": "text",
    "table_name": "text",
    "column_name": "text",
    "clustering_order": "text",
    "kind": "text",
    "position": "int",
    "type": "text",
}
_EMPTY: Final = {"keyspace_name": "text", "table_name": "text", "view_name": "text"}


def system_tables() -> list[Table]:
    """All system tables that exist; those of the schema which nobody fills are declared and empty."""
    schema = {"keyspaces": _KEYSPACES, "tables": _TABLES, "columns": _COLUMNS}
    names = ("indexes", "triggers", "types", "functions", "aggregates", "views")
    return [
        Table("system", "local", _LOCAL, ("key",)),
        Table("system", "peers", _PEERS, ("peer",)),
        Table("system", "peers_v2", _PEERS_V2, ("peer",), ("peer_port",)),
        Table("system_views", "settings", {"name": "text", "value": "text"}, ("name",)),
        *(Table("system_schema", name, columns, ("keyspace_name",)) for name, columns in schema.items()),
        *(Table("system_schema", name, _EMPTY, ("keyspace_name",)) for name in names),
        *(Table("system_virtual_schema", name, columns, ("keyspace_name",)) for name, columns in schema.items()),
    ]


@dataclass(frozen=True, slots=True)
class Host:
    """One node of the cluster, by the loopback address that it listens on."""

    address: str
    datacenter: str = "datacenter1"
    rack: str = "rack1"

    @property
    def host_id(self) -> UUID:
        return uuid5(NAMESPACE_DNS, self.address)


@dataclass(slots=True)
class SystemTables:
    """Answers reads of the system tables as one of the hosts."""

    catalog: Catalog
    hosts: Sequence[Host]
    cluster_name: str
    port: int = 0
    settings: dict[str, str] = field(default_factory=lambda: {"paxos_variant": "v2"})
    clock_ms: Callable[[Host], int] = lambda host: time_ns() // 1_000_000

    def read(self, statement: Statement, host: Host) -> list[Mapping[str, Any]]:
        table = statement.parsed.table
        clocks = [column.name for column in statement.parsed.selection if column.function == "tounixtimestamp"]
        content = self._content(table.keyspace, table.name, host)
        found = [row for row in content if _matches(row, statement.where)]
        return [{**row, **dict.fromkeys(clocks, self.clock_ms(host))} for row in found]

    def _content(self, keyspace: str, name: str, host: Host) -> Iterable[Mapping[str, Any]]:
        match keyspace, name:
            case "system", "local":
                return [self._local(host)]
            case "system", "peers":
                return [self._peer(peer) for peer in self.hosts if peer != host]
            case "system", "peers_v2":
                return [self._peer_v2(peer) for peer in self.hosts if peer != host]
            case "system_views", "settings":
                return [{"name": key, "value": value} for key, value in self.settings.items()]
            case "system_schema", "keyspaces":
                return [self._keyspace(own) for own in self.catalog.keyspaces if not own.startswith("system")]
            case "system_schema", "tables":
                return [_table(table) for table in self._own_tables()]
            case "system_schema", "columns":
                return [_column(table, column) for table in self._own_tables() for column in table.columns]
        return []

    def _own_tables(self) -> list[Table]:
        return [table for table in self.catalog.tables if not table.keyspace.startswith("system")]

    def _node(self, host: Host) -> dict[str, Any]:
        share = 2**64 // len(self.hosts)
        return {
            "data_center": host.datacenter,
            "host_id": host.host_id,
            "rack": host.rack,
            "release_version": RELEASE,
            "schema_version": SCHEMA_VERSION,
            "tokens": {str(-(2**63) + share * self.hosts.index(host))},
        }

    def _local(self, host: Host) -> dict[str, Any]:
        address = host.address
        own = {"broadcast_address": address, "listen_address": address, "rpc_address": address, "rpc_port": self.port}
        about = {"cluster_name": self.cluster_name, "partitioner": _PARTITIONER, "native_protocol_version": "5"}
        ports = {"broadcast_port": 7000, "listen_port": 7000}
        return (
            {"key": "local", "bootstrapped": "COMPLETED", "cql_version": "3.4.7"}
            | own
            | about
            | ports
            | self._node(host)
        )

    def _peer(self, host: Host) -> dict[str, Any]:
        return {"peer": host.address, "rpc_address": host.address} | self._node(host)

    def _peer_v2(self, host: Host) -> dict[str, Any]:
        native = {"native_address": host.address, "native_port": self.port}
        return {"peer": host.address, "peer_port": 7000} | native | self._node(host)

    def _keyspace(self, name: str) -> dict[str, Any]:
        replication = {"class": _STRATEGY, "replication_factor": str(len(self.hosts))}
        return {"keyspace_name": name, "durable_writes": True, "replication": replication}


def _matches(row: Mapping[str, Any], where: Iterable[Condition]) -> bool:
    return all(condition.holds(dict(row)) for condition in where)


def _table(table: Table) -> dict[str, Any]:
    identity = table.id or uuid5(NAMESPACE_DNS, f"{table.keyspace}.{table.name}")
    named = {"keyspace_name": table.keyspace, "table_name": table.name, "id": identity}
    # Without the flag a driver takes the table for one of compact storage and leaves its clustering key out.
    return named | {"comment": "", "default_time_to_live": 0, "flags": {"compound"}, "gc_grace_seconds": 864000}


def _column(table: Table, name: str) -> dict[str, Any]:
    kind, position = table.kind(name)
    named = {"keyspace_name": table.keyspace, "table_name": table.name, "column_name": name}
    order = "asc" if kind == "clustering" else "none"
    return named | {"clustering_order": order, "kind": kind, "position": position, "type": table.column(name).type.text}
