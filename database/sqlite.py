"""The embedded store: one SQLite file, for a laptop, a unit test or an engine of one node.

Several processes of one host may share the file. A batch is one `BEGIN IMMEDIATE` transaction in WAL mode with
`synchronous=FULL`: it is on the disk before it is answered.

Cassandra forgets single cells by their TTL, so each table has two columns of ours: `expiry`, a JSON object that maps a
column to the millisecond of its end, and `marker_until`, until when the row exists even with all its values null.
Both are read against the wall clock of the one host.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import msgspec

from .batch import Absent, Applied, Batch, Expect, Outcome, Refused, Slice, Unknown, Verb, Write
from .errors import (
    ClosedError,
    DatabaseError,
    ForkedError,
    StatementRejected,
    StoreDamaged,
    StoreFull,
    TableMissing,
    Unavailable,
)
from .table import Key, Kind, Layout, Row, Table, Value

T = TypeVar("T")

APPLICATION_ID = 0x534B4550  # "SKEP": tells our files from other people's
FOREVER = 1 << 62
BUSY_S = 10.0  # how long a writer waits for another one before it answers Unavailable


def wall_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class _Stored:
    """A row as it lies in the file, ended cells included."""

    values: Mapping[str, Value]
    marker_until: int | None = None
    expiry: Mapping[str, int] = field(default_factory=dict)

    def at(self, now_ms: int) -> dict[str, Value] | None:
        """Return the values that live at `now_ms`, or None where the row does not exist then."""
        alive = {c: v if self.expiry.get(c, FOREVER) > now_ms else None for c, v in self.values.items()}
        if (self.marker_until or 0) > now_ms or any(v is not None for v in alive.values()):
            return alive
        return None

    def lives(self, column: str | None, now_ms: int) -> dict[str, Value]:
        """Return `ttl(column)`: the whole seconds that the cell still lives, None for ever, as Cassandra counts them."""
        if column is None:
            return {}
        end = self.expiry.get(column) if self.values.get(column) is not None else None
        return {f"ttl({column})": None if end is None or end <= now_ms else -((now_ms - end) // 1000)}

    def written(self, write: Write, now_ms: int) -> _Stored:
        """Return the row after an insert or update."""
        until = FOREVER if write.ttl_s is None else now_ms + write.ttl_s * 1000
        expiry = {c: ms for c, ms in self.expiry.items() if c not in write.values and ms > now_ms}
        if write.ttl_s is not None:
            expiry.update(dict.fromkeys(write.values, until))
        values = {**(self.at(now_ms) or dict.fromkeys(self.values)), **write.values}
        marker = until if write.verb is Verb.INSERT else self.marker_until
        return replace(self, values=values, marker_until=marker, expiry=expiry)


class SqliteStore:
    """A SQLite file as a store. Raises StoreDamaged or Unavailable when the file cannot be used."""

    dialect = "sql"
    keyspace = ""
    consistency = None

    def __init__(self, path: str | Path, *, busy_s: float = BUSY_S, clock: Callable[[], int] = wall_ms) -> None:
        self.path = Path(path)
        self._clock = clock
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="slotkeeper-sqlite")
        self._closed = False
        self._connection = _connected(self.path, busy_s)

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path}{' closed' if self._closed else ''}>"

    def commit(self, batch: Batch) -> Outcome:
        """Apply a batch or refuse it. Raises Unavailable, StoreFull or StoreDamaged when nothing was changed."""
        with self._connected() as connection, _sorted_errors(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                outcome = self._decide(connection, batch)
            except BaseException:
                _roll_back(connection)
                raise
            if isinstance(outcome, Refused):
                _roll_back(connection)
                return outcome
            return _finished(connection)

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        """Commit a batch in this thread; what it raises comes out of the future."""
        return _done(lambda: self.commit(batch))

    def commit_soon(self, batch: Batch) -> Future[Outcome]:
        """Commit a batch in the store's own thread."""
        self._check_usable()
        return self._executor.submit(self.commit, batch)

    def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """Return the rows of some slices. What one host has committed is visible at once, so `serial` changes nothing."""
        with self._connected() as connection, _sorted_errors(self.path):
            return [row for part in slices for row in self._sliced(connection, table, partition, part)]

    def read_begun(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Read in this thread; what it raises comes out of the future."""
        return _done(lambda: self.read(table, partition, slices, serial=serial))

    def read_soon(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Read in the store's own thread."""
        self._check_usable()
        return self._executor.submit(self.read, table, partition, slices, serial=serial)

    def columns(self, table: str) -> Mapping[str, str]:
        """Return the columns of a table and their SQL types; empty when there is no such table."""
        with self._connected() as connection, _sorted_errors(self.path):
            found = connection.execute("SELECT name, lower(type) FROM pragma_table_info(?)", (table,)).fetchall()
        return dict(found)

    def layout(self, table: str) -> Layout | None:
        """Return the table as the file has it, its whole key as the partition; None when there is no such table."""
        with self._connected() as connection, _sorted_errors(self.path):
            query = "SELECT name, lower(type), pk FROM pragma_table_info(?)"
            found = connection.execute(query, (table,)).fetchall()
        key = tuple(name for name, _, place in sorted(found, key=lambda column: column[2]) if place)
        return Layout(key, (), {name: kind for name, kind, _ in found}) if found else None

    def shape(self, statement: str) -> None:
        """Run one statement that creates or alters a table."""
        with self._connected() as connection, _sorted_errors(self.path):
            connection.execute(statement)

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if os.getpid() == self._pid:  # the parent's connection is not the child's to close
                self._connection.close()
        self._executor.shutdown(wait=True)

    def _check_usable(self) -> None:
        if self._closed:
            raise ClosedError
        if os.getpid() != self._pid:
            raise ForkedError

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._pid:
            raise ForkedError  # before the lock: another thread of the parent may have held it at the fork
        with self._lock:
            self._check_usable()
            yield self._connection

    def _decide(self, connection: sqlite3.Connection, batch: Batch) -> Applied | Refused:
        now_ms = self._clock()
        keys = dict.fromkeys(write.key for write in batch.writes)
        before = {key: _stored(connection, batch.table, batch.partition + key) for key in keys}
        seen = {key: stored.at(now_ms) for key, stored in before.items()}
        if not all(_met(write, seen[write.key]) for write in batch.writes):
            shown = {w.key: row for w in batch.writes if w.condition and (row := seen[w.key]) is not None}
            return Refused({key: {**_named(batch, key), **row} for key, row in shown.items()})
        after = _after(batch, before, now_ms)
        _replace(connection, batch, after)
        return Applied()

    def _sliced(
        self, connection: sqlite3.Connection, table: Table, partition: Key, part: Slice
    ) -> Iterator[dict[str, Value]]:
        part.check(table, partition)
        names = (*table.partition, *list(table.clustering)[: len(part.prefix)])
        where, bound = [f"{name} = ?" for name in names], [*partition, *part.prefix]
        if part.among:
            where.append(f"{list(table.clustering)[len(part.prefix)]} IN ({', '.join('?' * len(part.among))})")
            bound.extend(part.among)
        if part.after is not None:
            where.append(f"{list(table.clustering)[len(part.prefix)]} > ?")
            bound.append(part.after)
        order = ", ".join(table.clustering) or "1"
        query = f"SELECT {_all_columns(table)} FROM {table.name} WHERE {' AND '.join(where)} ORDER BY {order}"
        now_ms, left = self._clock(), part.limit
        for cells in connection.execute(query, [_to_sql(value) for value in bound]):
            if left == 0:
                return
            stored = _opened(table, cells)
            if (row := stored.at(now_ms)) is not None:
                left = None if left is None else left - 1
                yield {**_key_of(table, cells), **row, **stored.lives(part.ttl_of, now_ms)}


def _done(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future


def _connected(path: Path, busy_s: float) -> sqlite3.Connection:
    with _sorted_errors(path):
        connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (kept_by,) = connection.execute("PRAGMA application_id").fetchone()
    if kept_by != APPLICATION_ID:
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if objects or kept_by:
            raise StoreDamaged(
                f"{path} is a SQLite file of some other program. Name another file; nothing was written to it."
            )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _named(batch: Batch, key: Key) -> dict[str, Value]:
    return dict(zip(batch.table.key, batch.partition + key, strict=True))


def _met(write: Write, row: Row | None) -> bool:
    match write.condition:
        case None:
            return True
        case Absent():
            return row is None
        case Expect() as expect:
            return expect.met_by(row)


def _after(batch: Batch, before: Mapping[Key, _Stored], now_ms: int) -> dict[Key, _Stored | None]:
    """Return each written row as the batch leaves it."""
    after: dict[Key, _Stored | None] = dict(before)
    for write in batch.writes:
        stored = after[write.key]
        after[write.key] = None if stored is None or write.verb is Verb.DELETE else stored.written(write, now_ms)
    return after


def _replace(connection: sqlite3.Connection, batch: Batch, after: Mapping[Key, _Stored | None]) -> None:
    table = batch.table
    marks = ", ".join("?" * (len(table.columns) + 2))
    where = " AND ".join(f"{column} = ?" for column in table.key)
    for key, stored in after.items():
        whole_key = [_to_sql(value) for value in batch.partition + key]
        if stored is None:
            connection.execute(f"DELETE FROM {table.name} WHERE {where}", whole_key)
            continue
        values = [_to_sql(stored.values.get(column)) for column in table.values]
        expiry = msgspec.json.encode(stored.expiry).decode() if stored.expiry else None
        connection.execute(
            f"REPLACE INTO {table.name} ({_all_columns(table)}) VALUES ({marks})",
            [*whole_key, *values, stored.marker_until, expiry],
        )


def _stored(connection: sqlite3.Connection, table: Table, whole_key: Key) -> _Stored:
    where = " AND ".join(f"{column} = ?" for column in table.key)
    query = f"SELECT {_all_columns(table)} FROM {table.name} WHERE {where}"
    cells = connection.execute(query, [_to_sql(value) for value in whole_key]).fetchone()
    return _Stored(dict.fromkeys(table.values)) if cells is None else _opened(table, cells)


def _opened(table: Table, cells: tuple[object, ...]) -> _Stored:
    first = len(table.key)
    values = {c: _from_sql(k, cell) for (c, k), cell in zip(table.values.items(), cells[first:], strict=False)}
    marker_until, expiry = cells[-2], cells[-1]
    return _Stored(
        values,
        marker_until if isinstance(marker_until, int) else None,
        msgspec.json.decode(expiry, type=dict[str, int]) if isinstance(expiry, str) else {},
    )


def _key_of(table: Table, cells: tuple[object, ...]) -> dict[str, Value]:
    return {column: _from_sql(table.kind(column), cell) for column, cell in zip(table.key, cells, strict=False)}


def _all_columns(table: Table) -> str:
    return ", ".join((*table.columns, "marker_until", "expiry"))


def _to_sql(value: Value) -> str | int | bytes | None:
    return str(value) if isinstance(value, UUID) else value


def _from_sql(kind: Kind, cell: object) -> Value:
    if cell is None or isinstance(cell, int | bytes):
        return cell
    return UUID(str(cell)) if kind is Kind.UUID else str(cell)


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _finished(connection: sqlite3.Connection) -> Outcome:
    try:
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        _roll_back(connection)
        if _code(error) == sqlite3.SQLITE_IOERR:
            # The frames may have reached the log before its sync failed: a recovery could still find them whole.
            return Unknown(error)
        raise
    return Applied()


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


@contextmanager
def _sorted_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, by its primary result code."""
    try:
        yield
    except sqlite3.Error as error:
        raise _ours(path, error) from error


def _ours(path: Path, error: sqlite3.Error) -> DatabaseError:
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Unavailable(f"{path} was kept busy by another process. Nothing was changed; try again.")
        case sqlite3.SQLITE_FULL:
            return StoreFull(f"The disk under {path} is full. Nothing was changed; make room and try again.")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreDamaged(
                f"{path} is damaged, or no SQLite file ({error}). Nothing was changed; restore a copy of it."
            )
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_IOERR:
            return Unavailable(
                f"{path} cannot be opened or written ({error}). Does its folder exist, and may you write there?"
            )
        case _:
            rejected = TableMissing if "no such table" in str(error) else StatementRejected
            return rejected(f"{path}: {error}. Nothing was changed; does the file have the schema of this version?")
