"""A Cassandra keyspace as a store: a batch is one conditional CQL batch, sent once."""

from __future__ import annotations

import calendar
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from cassandra.cluster import ResponseFuture, Session
from cassandra.query import BatchStatement, BoundStatement, PreparedStatement, SimpleStatement

from ..batch import Applied, Batch, Outcome, Refused, Slice, Unknown
from ..errors import ClosedError, DatabaseError, ForkedError, SchemaNotAgreed, Unavailable
from ..settings import CassandraSettings, Consistency
from ..table import Key, Layout, Row, Table, Value
from .binding import Ready, encoded_partition, ready
from .connect import READ, SERIAL_READ, SHAPING_S, WRITE, connect
from .cql import Statement, batch_statements, slice_statement
from .verdict import commit_failed, nothing_happened

T = TypeVar("T")
ServerRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the cluster, as it describes itself."""

    address: str
    data_center: str
    release: str
    paxos_variant: str | None
    clock_ms: int


class CassandraStore:
    """A session on one keyspace. Threads and tasks may share it; a forked child may not.

    Raises Unavailable, LoginRefused, KeyspaceMissing or SettingsError when no connection comes about. With
    `keyspace=False` it only serves to create one.
    """

    dialect = "cql"

    def __init__(self, settings: CassandraSettings, *, keyspace: bool = True) -> None:
        self.settings = settings
        self._pid = os.getpid()
        self._closed = False
        self._cluster, self._session = connect(settings, keyspace=keyspace)
        # The driver keeps prepared statements weakly and loses a batch whose members it has dropped.
        self._prepared: dict[str, Ready] = {}
        self._preparing = threading.Lock()
        self._executor = ThreadPoolExecutor(2, thread_name_prefix="slotkeeper-cassandra")

    def __repr__(self) -> str:
        return f"<CassandraStore {self.settings}{' closed' if self._closed else ''}>"

    @property
    def keyspace(self) -> str:
        """See Store.keyspace."""
        return self.settings.keyspace

    @property
    def consistency(self) -> Consistency:
        """See Store.consistency."""
        return self.settings.consistency

    def commit(self, batch: Batch) -> Outcome:
        """Commit a batch and wait for its outcome. Raises a DatabaseError when it certainly did not and will not apply."""
        return self.commit_begun(batch).result()

    def commit_soon(self, batch: Batch) -> Future[Outcome]:
        """Commit a batch without blocking: preparing a statement waits for the server, so a new form goes to a thread."""
        self._check_usable()
        statements = batch_statements(self.keyspace, batch)
        if all(statement.text in self._prepared for statement in statements):
            return self._send_batch(batch, statements)
        return self._begun_elsewhere(lambda: self._send_batch(batch, statements))

    def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """Read some slices of a partition, all of them at once, and wait. Raises Unavailable."""
        return self.read_begun(table, partition, slices, serial=serial).result()

    def read_soon(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Read without blocking."""
        self._check_usable()
        if {slice_statement(self.keyspace, table, partition, part).text for part in slices} <= self._prepared.keys():
            return self.read_begun(table, partition, slices, serial=serial)
        return self._begun_elsewhere(lambda: self.read_begun(table, partition, slices, serial=serial))

    def layout(self, table: str) -> Layout | None:
        """Return a table as the node that answers has it; None when there is no such table."""
        where, names = "WHERE keyspace_name = %s AND table_name = %s", (self.keyspace, table)
        tables = self.query(f"SELECT id FROM system_schema.tables {where}", *names)
        columns = self.query(f"SELECT column_name, type, kind, position FROM system_schema.columns {where}", *names)
        return _layout(tables[0]["id"], columns) if tables and columns else None

    def query(self, text: str, *values: Value, host: Any = None) -> list[ServerRow]:
        """Run a query of system tables. Raises a DatabaseError."""
        self._check_usable()
        try:
            return list(self._session.execute(text, values or None, execution_profile=READ, host=host))
        except Exception as error:
            raise nothing_happened(error) from error

    def shape(self, statement: str) -> None:
        """Run one statement that creates or alters, and wait until all nodes agree on the schema.

        Raises StatementRejected, Unavailable, and SchemaNotAgreed when nobody knows: the statement must bear repetition.
        """
        self._check_usable()
        future = self._session.execute_async(SimpleStatement(statement), execution_profile=WRITE, timeout=SHAPING_S)
        try:
            future.result()
        except Exception as error:
            ours = nothing_happened(error)
            if isinstance(ours, Unavailable) and future.attempted_hosts:
                raise SchemaNotAgreed from error
            raise ours from error
        if not future.is_schema_agreed:
            raise SchemaNotAgreed
        self._agree()

    def nodes(self) -> list[Node]:
        """Ask every node that is up for its release, its paxos variant and its clock."""
        self._check_usable()
        return [self._node(host) for host in self._cluster.metadata.all_hosts() if host.is_up]

    def close(self) -> None:
        """Close the session. Safe to call twice. What is still in flight is an unknown outcome."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._pid:
            return  # the parent's session is not the child's to close
        self._executor.shutdown(wait=False)  # its threads only prepare, and find the store closed
        self._cluster.shutdown()

    def _agree(self) -> None:
        """Wait until the nodes agree: a statement that changed nothing here may still be on its way to other nodes."""
        try:
            self._cluster.refresh_schema_metadata()
        except Exception as error:
            raise SchemaNotAgreed from error

    def _check_usable(self) -> None:
        if self._closed:
            raise ClosedError
        if os.getpid() != self._pid:
            raise ForkedError  # the driver would wait for ever: its thread did not survive the fork

    def _node(self, host: Any) -> Node:
        local = "SELECT data_center, release_version, toUnixTimestamp(now()) AS clock_ms FROM system.local"
        (row,) = self.query(local, host=host)
        try:
            variants = self.query("SELECT value FROM system_views.settings WHERE name = 'paxos_variant'", host=host)
        except DatabaseError:
            variants = []  # there before 4.0 were virtual tables
        variant = variants[0]["value"] if variants else None
        return Node(str(host.address), row["data_center"], row["release_version"], variant, row["clock_ms"])

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        """Send a batch, and return before its outcome. The first batch of a form waits for its statements' preparation."""
        self._check_usable()
        return self._send_batch(batch, batch_statements(self.keyspace, batch))

    def _send_batch(self, batch: Batch, statements: list[Statement]) -> Future[Outcome]:
        partition, whole = encoded_partition(batch.table, batch.partition), BatchStatement()
        forms: dict[str, BoundStatement] = {}  # the batch takes over what is bound, and so one serves all of its form
        for statement in statements:
            ready = self._ready(statement, len(partition))
            bound = forms.get(statement.text) or forms.setdefault(statement.text, BoundStatement(ready.statement))
            bound.values = ready.values(statement, partition)
            whole.add(bound)
        response = self._session.execute_async(whole, execution_profile=WRITE)
        return _bridged(
            response,
            lambda rows: _outcome(batch, rows),
            lambda error: commit_failed(error, sent=bool(response.attempted_hosts)),
        )

    def read_begun(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Send the reads of some slices, all at once, and return before their answers."""
        self._check_usable()
        profile = SERIAL_READ if serial else READ
        statements = [slice_statement(self.keyspace, table, partition, part) for part in slices]
        encoded = encoded_partition(table, partition)
        parts = [self._send_read(statement, encoded, table, profile) for statement in statements]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _begun_elsewhere(self, begin: Callable[[], Future[T]]) -> Future[T]:
        """Begin a request in another thread, which is free again once the request is on its way."""
        whole = _running()

        def run() -> None:
            try:
                begin().add_done_callback(partial(_pass_on, whole))
            except BaseException as error:
                whole.set_exception(error)

        try:
            self._executor.submit(run)
        except RuntimeError as error:  # closed by another thread in this moment
            raise ClosedError from error
        return whole

    def _send_read(self, statement: Statement, partition: list[bytes], table: Table, profile: str) -> Future[list[Row]]:
        ready = self._ready(statement, len(partition))
        bound = BoundStatement(ready.statement)
        bound.values = ready.values(statement, partition)
        bound.fetch_size = None  # a slice has its limit; pages would arrive one by one
        response = self._session.execute_async(bound, execution_profile=profile)
        return _bridged(response, lambda rows: [_sliced(table, row) for row in rows], _read_failed)

    def _ready(self, statement: Statement, width: int) -> Ready:
        found = self._prepared.get(statement.text)
        if found is None:
            with self._preparing:
                self._check_usable()  # closed, perhaps, while this thread waited for its turn
                found = self._prepared.get(statement.text)
                if found is None:
                    found = ready(_prepared(self._session, statement.text), statement, width)
                    self._prepared[statement.text] = found
        return found


def _layout(table_id: UUID, columns: list[ServerRow]) -> Layout:
    def part(kind: str) -> tuple[str, ...]:
        found = sorted((row["position"], row["column_name"]) for row in columns if row["kind"] == kind)
        return tuple(name for _, name in found)

    types = {row["column_name"]: row["type"] for row in columns}
    return Layout(part("partition_key"), part("clustering"), types, table_id)


def _prepared(session: Session, text: str) -> PreparedStatement:
    try:
        return session.prepare(text)
    except Exception as error:
        raise nothing_happened(error) from error


def _read_failed(error: Exception) -> list[Row]:
    raise nothing_happened(error) from error


def _running() -> Future[Any]:
    """Return a future that counts as running: cancelling a waiter cannot take a request back."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def _pass_on(whole: Future[T], part: Future[T]) -> None:
    error = part.exception()
    if error is not None:
        whole.set_exception(error)
    else:
        whole.set_result(part.result())


def _bridged(
    response: ResponseFuture, finish: Callable[[list[ServerRow]], T], fail: Callable[[Exception], T]
) -> Future[T]:
    """Turn the driver's callbacks into a future."""
    future = _running()

    def settle(turn: Callable[[Any], T], answer: Any) -> None:
        try:  # the driver swallows what a callback raises, and the caller would wait for ever
            result = turn(answer)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    response.add_callbacks(lambda rows: settle(finish, rows or []), lambda error: settle(fail, error))
    return future


def _joined(parts: list[Future[list[Row]]]) -> Future[list[Row]]:
    """Join the rows of several reads, in order. The last answer to arrive completes the whole."""
    whole = _running()
    left, guard = [len(parts)], threading.Lock()
    if not parts:
        whole.set_result([])

    def arrived(_: Future[list[Row]]) -> None:
        with guard:
            left[0] -= 1
            if left[0]:
                return
        failure = next((error for part in parts if (error := part.exception()) is not None), None)
        if failure is not None:
            whole.set_exception(failure)
        else:
            whole.set_result([row for part in parts for row in part.result()])

    for part in parts:
        part.add_done_callback(arrived)
    return whole


def _outcome(batch: Batch, rows: list[ServerRow]) -> Outcome:
    """Read the answer to a conditional batch: the first row's verdict, then whatever rows have a whole key.

    Cassandra shows each existing row once; ScyllaDB one row a statement, all null where there is none.
    """
    if not rows or "[applied]" not in rows[0]:
        return Unknown(LookupError("the answer to a conditional batch does not say whether it applied"))
    if rows[0]["[applied]"]:
        return Applied()
    table, guarded = batch.table, {write.key for write in batch.writes if write.condition is not None}
    whole = (_row(table, row) for row in rows if all(row.get(column) is not None for column in table.key))
    shown = {tuple(row[column] for column in table.clustering): row for row in whole}
    return Refused({key: row for key, row in shown.items() if key in guarded})


def _row(table: Table, row: ServerRow) -> dict[str, Value]:
    return {column: _value(row[column]) for column in table.columns if column in row}


def _sliced(table: Table, row: ServerRow) -> dict[str, Value]:
    lives = {column: value for column, value in row.items() if column.startswith("ttl(")}
    return {**_row(table, row), **lives}


def _value(cell: Any) -> Value:
    if isinstance(cell, datetime):  # naive and in UTC, in whole milliseconds
        return calendar.timegm(cell.utctimetuple()) * 1000 + round(cell.microsecond / 1000)
    return cell  # type: ignore[no-any-return]
