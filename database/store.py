"""What a store offers to the ports: the verb, waiting for it or not, and statements that shape tables."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from .batch import Batch, Outcome, Slice
from .settings import Consistency
from .table import Key, Layout, Row, Table


class Store(Protocol):
    """A database connection that threads may share.

    `commit` and `read` wait for the answer; the `_begun` forms return once the request is on its way, and may do all the
    work in the caller's thread; the `_soon` forms never block it.
    """

    @property
    def dialect(self) -> str:
        """`cql` or `sql`: which files of a schema version this store takes."""
        ...

    @property
    def keyspace(self) -> str:
        """The keyspace that the tables are in; empty where a file is all there is."""
        ...

    @property
    def consistency(self) -> Consistency | None:
        """The pair of levels that commits and decides; None where one host does both."""
        ...

    def commit(self, batch: Batch) -> Outcome: ...

    def commit_begun(self, batch: Batch) -> Future[Outcome]: ...

    def commit_soon(self, batch: Batch) -> Future[Outcome]: ...

    def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]: ...

    def read_begun(
        self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool
    ) -> Future[list[Row]]: ...

    def read_soon(
        self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool
    ) -> Future[list[Row]]: ...

    def layout(self, table: str) -> Layout | None:
        """Return a table's key and columns as the database has them, or None when there is no such table."""
        ...

    def shape(self, statement: str) -> None:
        """Run one statement that creates or alters a table, and wait until every node agrees on it."""
        ...

    def close(self) -> None:
        """Let go of the database. Safe to call twice."""
        ...
