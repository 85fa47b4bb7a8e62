"""The embedded store: one SQLite file, for a laptop, a unit test or an engine of one node.

Several processes of one host may share the file. A batch is one `BEGIN IMMEDIATE` transaction in WAL mode with
`synchronous=FULL`: it is on the disk before it is answered.

Cassandra forgets single cells by their TTL, so each table has two columns of ours: `expiry`, a JSON object that maps a
column to the millisecond of its end, and `marker_until`, until when the row exists even with all its values null.
Both are read against the wall clock of the one host. Rows whose end has come stay until they are written again, or until a
batch that writes with a TTL comes by: it takes those out that lie just before its own, a few a write.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar
from uuid import UUID
from weakref import WeakSet

import msgspec

from .batch import Absent, Applied, Batch, Expect, Outcome, Refused, Slice, Unknown, Verb, Write
from .errors import ClosedError, ForkedError, StoreDamaged
from .sqlitefile import opened, result_code, roll_back, sorted_errors
from .table import Key, Kind, Layout, Row, Table, Value

T = TypeVar("T")

SqlKey = tuple[str | int | bytes | None, ...]

FOREVER = 1 << 62
OURS = ("marker_until", "expiry")  # the last two columns of every table
SWEPT = 4  # how many rows before one that is written with a TTL are looked at
BUSY_S = 10.0  # how long a writer waits for another one before it answers Unavailable


# The stores of this process, and those of them that wait for a fork to be done; the lock lets one fork happen at a time.
_stores: WeakSet[SqliteStore] = WeakSet()
_forking: list[SqliteStore] = []
_no_fork = threading.Lock()


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
        alive = dict(self.values)
        for column, end in self.expiry.items():
            if end <= now_ms:
                alive[column] = None
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
        return _Stored(values, until if write.verb is Verb.INSERT else self.marker_until, expiry)


class SqliteStore:
    """A SQLite file as a store. Raises StoreDamaged or Unavailable when the file cannot be used."""

    dialect = "sql"
    keyspace = ""
    consistency = None

    def __init__(self, path: str | Path, *, busy_s: float = BUSY_S, clock: Callable[[], int] = wall_ms) -> None:
        self.path = Path(path)
        self._clock, self._busy_s = clock, busy_s
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="slotkeeper-sqlite")
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        with _no_fork:
            _stores.add(self)
        with self._connected() as connection:  # now, so that whoever names a wrong file hears of it here
            connection.execute("SELECT 1")

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path}{' closed' if self._closed else ''}>"

    def commit(self, batch: Batch) -> Outcome:
        """Apply a batch or refuse it. Raises Unavailable, StoreFull or StoreDamaged when nothing was changed."""
        with self._connected() as connection, sorted_errors(self.path):
            try:
                connection.execute("BEGIN IMMEDIATE")
                outcome = self._decide(connection, batch)
                return outcome if isinstance(outcome, Refused) else _finished(connection)
            finally:
                roll_back(connection)  # what is not committed, also when a Ctrl-C cuts in: it would lock everybody out

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        """Commit a batch in this thread; what it raises comes out of the future."""
        return _done(lambda: self.commit(batch))

    def commit_soon(self, batch: Batch) -> Future[Outcome]:
        """Commit a batch in the store's own thread."""
        self._check_usable()
        return self._executor.submit(self.commit, batch)

    def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """Return the rows of some slices. What one host has committed is visible at once, so `serial` changes nothing."""
        with self._connected() as connection, sorted_errors(self.path):
            return [row for part in slices for row in self._sliced(connection, table, partition, part)]

    def read_begun(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Read in this thread; what it raises comes out of the future."""
        return _done(lambda: self.read(table, partition, slices, serial=serial))

    def read_soon(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Read in the store's own thread."""
        self._check_usable()
        return self._executor.submit(self.read, table, partition, slices, serial=serial)

    def layout(self, table: str) -> Layout | None:
        """Return the table as the file has it, its whole key as the partition; None when there is no such table."""
        with self._connected() as connection, sorted_errors(self.path):
            query = "SELECT name, lower(type), pk FROM pragma_table_info(?)"
            found = connection.execute(query, (table,)).fetchall()
        key = tuple(name for name, _, place in sorted(found, key=lambda column: column[2]) if place)
        return Layout(key, (), {name: kind for name, kind, _ in found}) if found else None

    def shape(self, statement: str) -> None:
        """Run one statement that creates or alters a table."""
        with self._connected() as connection, sorted_errors(self.path):
            connection.execute(statement)

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._let_go()
        if os.getpid() == self._pid:
            self._executor.shutdown(wait=True)

    def _check_usable(self) -> None:
        if self._closed:
            raise ClosedError
        if os.getpid() != self._pid:
            raise ForkedError

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._check_usable()
            if self._connection is None:
                self._connection = opened(self.path, self._busy_s)
            yield self._connection

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def let_go_for_fork(self) -> None:
        """Wait for what is under way, close the file, and keep others out until the fork is done."""
        self._lock.acquire()
        if str(self.path) != ":memory:":
            self._let_go()

    def take_up_after_fork(self) -> None:
        """Let others in again. The parent opens the file at its next use; the child is refused."""
        self._lock.release()

    def _decide(self, connection: sqlite3.Connection, batch: Batch) -> Applied | Refused:
        now_ms = self._clock()
        partition = _all_to_sql(batch.partition)
        places = {write.key: _all_to_sql(write.key) for write in batch.writes}
        before = _before(connection, batch.table, partition, places)
        seen = {key: stored.at(now_ms) for key, stored in before.items()}
        if not all(_met(write, seen[write.key]) for write in batch.writes):
            shown = {w.key: row for w in batch.writes if w.condition and (row := seen[w.key]) is not None}
            return Refused({key: {**_named(batch, key), **row} for key, row in shown.items()})
        after = _after(batch, before, now_ms)
        _write(connection, batch.table, {(*partition, *places[key]): stored for key, stored in after.items()}, now_ms)
        for write in batch.writes:
            if write.ttl_s is not None and places[write.key]:
                _sweep(connection, batch.table, partition, places[write.key], now_ms)
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
        for cells in connection.execute(query, _all_to_sql(bound)):
            if left == 0:
                return
            stored = _opened(table, cells[len(table.key) :])
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


def _before(
    connection: sqlite3.Connection, table: Table, partition: SqlKey, places: Mapping[Key, SqlKey]
) -> dict[Key, _Stored]:
    """Read the rows that a batch touches, in one statement: each by its key, whatever else the partition holds."""
    asked = [cell for place in places.values() for cell in place]
    found = connection.execute(_select(table, len(places)), (*asked, *partition)).fetchall()
    width = len(table.clustering)
    rows = {cells[:width]: cells[width:] for cells in found}
    empty = _Stored(dict.fromkeys(table.values))
    return {key: _opened(table, rows[place]) if place in rows else empty for key, place in places.items()}


@lru_cache(maxsize=512)
def _select(table: Table, rows: int) -> str:
    names = [f"k{number}" for number, _ in enumerate(table.clustering)]
    asked = ", ".join([f"({', '.join('?' * len(names))})"] * rows)
    # A cross join goes through the asked keys and finds each row by its whole key; IN would scan the partition.
    where = [*(f"{column} = ?" for column in table.partition)]
    where += [f"{column} = asked.{name}" for column, name in zip(table.clustering, names, strict=True)]
    columns = ", ".join((*table.clustering, *table.values, *OURS))
    return (
        f"WITH asked({', '.join(names)}) AS (VALUES {asked})"
        f" SELECT {columns} FROM asked CROSS JOIN {table.name} ON {' AND '.join(where)}"
    )


def _write(connection: sqlite3.Connection, table: Table, rows: Mapping[SqlKey, _Stored | None], now_ms: int) -> None:
    alive = {place: stored for place, stored in rows.items() if stored is not None and stored.at(now_ms) is not None}
    where = " AND ".join(f"{column} = ?" for column in table.key)
    connection.executemany(f"DELETE FROM {table.name} WHERE {where}", [place for place in rows if place not in alive])
    marks = ", ".join("?" * (len(table.columns) + len(OURS)))
    cells = [(*place, *_all_to_sql(stored.values.values()), *_ours(stored)) for place, stored in alive.items()]
    connection.executemany(f"REPLACE INTO {table.name} ({_all_columns(table)}) VALUES ({marks})", cells)


def _sweep(connection: sqlite3.Connection, table: Table, partition: SqlKey, place: SqlKey, now_ms: int) -> None:
    """Take out what has ended of the few rows before one: what processes that died have left, for nobody writes it again."""
    found = connection.execute(_select_before(table), (*partition, *place, SWEPT)).fetchall()
    width = len(table.key)
    ended = [cells[:width] for cells in found if _opened(table, cells[width:]).at(now_ms) is None]
    if ended:
        _write(connection, table, dict.fromkeys(ended), now_ms)


@lru_cache(maxsize=64)
def _select_before(table: Table) -> str:
    names = ", ".join(table.clustering)
    where = [*(f"{column} = ?" for column in table.partition)]
    where.append(f"({names}) < ({', '.join('?' * len(table.clustering))})")
    order = ", ".join(f"{column} DESC" for column in table.clustering)
    return f"SELECT {_all_columns(table)} FROM {table.name} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"


def _ours(stored: _Stored) -> tuple[int | None, str | None]:
    return stored.marker_until, msgspec.json.encode(stored.expiry).decode() if stored.expiry else None


def _opened(table: Table, cells: tuple[object, ...]) -> _Stored:
    """Read a row from its value cells and our two."""
    marker_until, expiry = cells[-2], cells[-1]
    try:
        return _Stored(
            {c: _from_sql(k, cell) for (c, k), cell in zip(table.values.items(), cells, strict=False)},
            marker_until if isinstance(marker_until, int) else None,
            msgspec.json.decode(expiry, type=dict[str, int]) if isinstance(expiry, str) else {},
        )
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreDamaged(f"A row of {table.name} is damaged ({error}). Restore a copy of the file.") from error


def _key_of(table: Table, cells: tuple[object, ...]) -> dict[str, Value]:
    return {column: _from_sql(table.kind(column), cell) for column, cell in zip(table.key, cells, strict=False)}


def _all_columns(table: Table) -> str:
    return ", ".join((*table.columns, *OURS))


def _all_to_sql(values: Iterable[Value]) -> SqlKey:
    return tuple([str(value) if isinstance(value, UUID) else value for value in values])


def _from_sql(kind: Kind, cell: object) -> Value:
    if cell is None or isinstance(cell, int | bytes):
        return cell
    return UUID(str(cell)) if kind is Kind.UUID else str(cell)


def _finished(connection: sqlite3.Connection) -> Outcome:
    try:
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if result_code(error) == sqlite3.SQLITE_IOERR:
            # The frames may have reached the log before its sync failed: a recovery could still find them whole.
            return Unknown(error)
        raise
    return Applied()


def _before_fork() -> None:
    """Close the files: a child would inherit what SQLite believes to have locked, but not the locks.

    With a file open at the fork, a store that the child opens anew works beside everybody else's, not with them.
    """
    _no_fork.acquire()
    for store in list(_stores):
        store.let_go_for_fork()
        _forking.append(store)


def _after_fork() -> None:
    while _forking:
        _forking.pop().take_up_after_fork()
    _no_fork.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
