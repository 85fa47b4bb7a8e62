"""A real partition behind the scripted server: what the driver asks is done in a SQLite store, and answered as Cassandra would.

    with served() as behind:                        # behind.server, behind.url, behind.store
        behind.server.script(behind.fault(write_timeout("CAS"), Landing.LATE))

So a test decides what becomes of an attempt and what its sender is told, and whoever asks next meets the rows that follow.
"""

from __future__ import annotations

import calendar
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from importlib.resources import files
from typing import Any
from uuid import UUID

import cqlserver
from cqlserver import CutAfter, CutBefore, ErrorFrame, Request, ScriptedServer, Silence, Statement

from slotkeeper import schema
from slotkeeper.database import (
    Absent,
    Batch,
    CassandraSettings,
    Expect,
    Outcome,
    Refused,
    Slice,
    Store,
    Table,
    Value,
    Verb,
    Write,
    open_store,
)
from slotkeeper.database.cassandra import CassandraStore
from slotkeeper.schema.control import CONTROL
from slotkeeper.semaphore.rows import METADATA, TOKENS

KEYSPACE = "slots"
OURS = {table.name: table for table in (CONTROL, METADATA, TOKENS)}


class Landing(Enum):
    """When an attempt takes effect whose sender is not told."""

    APPLIED = "applied"  # before its sender is told anything
    NEVER = "never"
    BEFORE_NEXT = "late"  # just before the next attempt
    AFTER_NEXT = "later"  # just after the next attempt


Told = ErrorFrame | Silence | CutAfter


@dataclass
class Behind:
    """A scripted server with a store behind it.

    `landed` has the outcomes in the order in which attempts took effect, `faulted` the attempts whose sender was not told.
    """

    server: ScriptedServer
    store: Store
    landed: list[Outcome] = field(default_factory=list)
    faulted: list[Request] = field(default_factory=list)
    _before: deque[Request] = field(default_factory=deque)
    _after: deque[Request] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.server.on_lwt, self.server.on_read = self.commit, self.read

    def settings(self, **changes: Any) -> CassandraSettings:
        """Return the settings that lead to the server."""
        return CassandraSettings(hosts=(self.server.host,), port=self.server.port, keyspace=KEYSPACE, **changes)

    def commit(self, request: Request) -> cqlserver.Answer:
        """Do what a transaction asks, and what late ones asked before it or left for after it."""
        self._land_all(self._before)
        outcome = self._land(request)
        self._land_all(self._after)
        if isinstance(outcome, Refused):
            return cqlserver.Refused(list(outcome.rows.values()))
        return cqlserver.Applied()

    def read(self, request: Request) -> cqlserver.Rows:
        """Read as the statement says."""
        statement = request.statement
        table, part = OURS[statement.table], _slice(statement)
        key = {c.column: c.value for c in statement.where if c.operator == "="}
        partition = tuple(_value(key[column]) for column in table.partition)
        return cqlserver.Rows(self.store.read(table, partition, (part,), serial=request.is_serial))

    def fault(self, told: Told, landing: Landing) -> Callable[[Request], cqlserver.Answer]:
        """Return an answer for the script: what the next attempt's sender is told, and when the attempt takes effect."""

        def answer(request: Request) -> cqlserver.Answer:
            self.faulted.append(request)
            match landing:
                case Landing.APPLIED:
                    self.commit(request)
                case Landing.BEFORE_NEXT:
                    self._before.append(request)
                case Landing.AFTER_NEXT:
                    self._after.append(request)
                case Landing.NEVER:
                    pass
            return CutBefore() if isinstance(told, CutAfter) else told

        return answer

    def land_late(self) -> None:
        """Let what is still on its way take effect now."""
        self._land_all(self._before)
        self._land_all(self._after)

    def _land_all(self, late: deque[Request]) -> None:
        while late:
            self._land(late.popleft())

    def _land(self, request: Request) -> Outcome:
        self.landed.append(outcome := self.store.commit(batch_of(request)))
        return outcome


@contextmanager
def served(hosts: tuple[str, ...] = ("127.0.0.1", "127.0.0.2")) -> Iterator[Behind]:
    """Start a scripted server with the product's tables in memory behind it."""
    store = open_store("sqlite:///:memory:")
    schema.setup(store)
    with ScriptedServer(list(_tables()), hosts=hosts) as server:
        try:
            yield Behind(server, store)
        finally:
            store.close()


@contextmanager
def driven(behind: Behind, **changes: Any) -> Iterator[CassandraStore]:
    """Open the real Cassandra store on the server."""
    store = CassandraStore(behind.settings(**changes))
    try:
        yield store
    finally:
        store.close()


def batch_of(request: Request) -> Batch:
    """Read a conditional batch back into the verb."""
    table = OURS[request.statement.table]
    key = request.statement.key
    partition = tuple(_value(key[column]) for column in table.partition)
    return Batch(table, partition, tuple(_write(table, statement) for statement in request.statements))


def _write(table: Table, statement: Statement) -> Write:
    key = tuple(_value(statement.key[column]) for column in table.clustering)
    values = {column: _value(value) for column, value in statement.sets.items()}
    ttl = statement.ttl if isinstance(statement.ttl, int) else None
    return Write(Verb(statement.verb), key, values, _condition(statement), ttl)


def _condition(statement: Statement) -> Absent | Expect | None:
    if statement.exists is False:
        return Absent()
    expected = {
        each.column: _several(each.value) if each.operator == "in" else (_value(each.value),)
        for each in statement.conditions
    }
    return Expect(expected) if expected else None


def _slice(statement: Statement) -> Slice:
    table = OURS[statement.table]
    fixed = {each.column: _value(each.value) for each in statement.where if each.operator == "="}
    among = next((_several(each.value) for each in statement.where if each.operator == "in"), ())
    after = next((_value(each.value) for each in statement.where if each.operator == ">"), None)
    prefix = tuple(fixed[column] for column in table.clustering if column in fixed)
    limit = statement.limit if isinstance(statement.limit, int) else None
    return Slice(prefix, among, after, limit, ttl_of="holder" if "TTL(" in statement.cql else None)


def _several(values: object) -> tuple[Value, ...]:
    assert isinstance(values, (tuple, list))
    return tuple(map(_value, values))


def _value(value: object) -> Value:
    if isinstance(value, datetime):
        return calendar.timegm(value.utctimetuple()) * 1000 + round(value.microsecond / 1000)
    assert value is None or isinstance(value, (str, int, bytes, UUID))
    return value


def _tables() -> Iterator[cqlserver.Table]:
    schema_files = files("slotkeeper.schema")
    for name in ("control.cql", "versions/v0_1/semaphore_metadata.cql", "versions/v0_1/semaphore_tokens.cql"):
        yield cqlserver.Table.from_cql((schema_files / name).read_text(), KEYSPACE)
