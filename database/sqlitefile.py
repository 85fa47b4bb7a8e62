"""The file under the embedded store: opened, claimed as ours, and SQLite's errors turned into ours."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import DatabaseError, StatementRejected, StoreDamaged, StoreFull, TableMissing, Unavailable

APPLICATION_ID = 0x534B4550  # "SKEP": tells our files from other people's
LOOK_AGAIN_S = 0.005


def opened(path: Path, busy_s: float) -> sqlite3.Connection:
    """Open a file that is ours, or make it ours. Raises StoreDamaged or Unavailable."""
    with sorted_errors(path):
        connection = sqlite3.connect(
            path, timeout=busy_s, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            if _kept_by(connection) != APPLICATION_ID:
                _claim(connection, path)
            _log_ahead(connection, busy_s)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


def roll_back(connection: sqlite3.Connection) -> None:
    """Give up the transaction, if there is one."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def result_code(error: sqlite3.Error) -> int:
    """Return the primary result code of an error."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


@contextmanager
def sorted_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, by their primary result code."""
    try:
        yield
    except sqlite3.Error as error:
        raise _ours(path, error) from error


def _claim(connection: sqlite3.Connection, path: Path) -> None:
    """Mark an empty file as ours, in one transaction: others may be opening it for the first time too."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        kept_by = _kept_by(connection)
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if kept_by != APPLICATION_ID and (objects or kept_by):
            raise StoreDamaged(
                f"{path} is a SQLite file of some other program. Name another file; nothing was written to it."
            )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    finally:
        roll_back(connection)


def _kept_by(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _log_ahead(connection: sqlite3.Connection, busy_s: float) -> None:
    """Switch to write-ahead logging. Here SQLite does not wait by itself for others who open the new file too."""
    deadline = time.monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if result_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(LOOK_AGAIN_S)


def _ours(path: Path, error: sqlite3.Error) -> DatabaseError:
    match result_code(error):
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
