"""A store in memory. It decides at once, and never loses an answer: what becomes of a request on its way is a network's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from ..batch import Applied, Batch, Outcome, Refused, Slice, Write
from ..settings import Consistency
from ..table import Key, Layout, Row, Table
from .rows import Rows, holds, shown, sliced, written

T = TypeVar("T")
Place = tuple[str, Key]  # a table's name and a partition of it


class SimulatedStore:
    """Partitions in memory. `clock` tells the server's seconds: TTLs end by it."""

    dialect = "sql"
    keyspace = ""
    consistency: Consistency | None = None

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.partitions: dict[Place, Rows] = {}

    def lets_through(self, rows: Rows, write: Write, now: float) -> bool:
        """Tell whether a write's condition holds. Here a test plants its faults."""
        return holds(rows, write, now)

    def commit(self, batch: Batch) -> Outcome:
        """Apply a batch or refuse it."""
        place, now = (batch.table.name, batch.partition), self.clock()
        rows = self.partitions.get(place) or {}
        for write in batch.writes:
            if write.condition is not None and not self.lets_through(rows, write, now):
                return Refused(shown(rows, batch, now))
        self.partitions[place] = written(rows, batch.writes, now)
        return Applied()

    def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """Return the rows of some slices, as they are now. Raises ValueError for slices that the table cannot have."""
        for part in slices:
            part.check(table, partition)
        return self.read_from(self.partitions.get((table.name, partition), {}), table, partition, slices)

    def read_from(self, rows: Rows, table: Table, partition: Key, slices: tuple[Slice, ...]) -> list[Row]:
        """Return the rows of some slices of a partition as it was once."""
        now = self.clock()
        return [row for part in slices for row in sliced(rows, table, partition, part, now)]

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        """Commit, and return the answer."""
        return _done(self.commit(batch))

    def commit_soon(self, batch: Batch) -> Future[Outcome]:
        """Commit, and return the answer."""
        return _done(self.commit(batch))

    def read_begun(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Read, and return the answer."""
        return _done(self.read(table, partition, slices, serial=serial))

    def read_soon(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> Future[list[Row]]:
        """Read, and return the answer."""
        return _done(self.read(table, partition, slices, serial=serial))

    def layout(self, table: str) -> Layout | None:
        """Return nothing: this store keeps no account of tables."""
        return None

    def shape(self, statement: str) -> None:
        """Do nothing: here a table comes into being with its first row."""

    def close(self) -> None:
        """Do nothing."""


def _done(value: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(value)
    return future
