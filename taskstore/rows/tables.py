"""The tables, as the verb sees them; schema version 0.2 has them for the database."""

from __future__ import annotations

from collections.abc import Mapping

from ...database import Key, Kind, Row, Table

STORES = Table(
    "task_stores",
    {"store": Kind.TEXT},
    {"kind": Kind.INT},
    {
        "epoch": Kind.BIGINT,
        "writer": Kind.TEXT,
        "version": Kind.BIGINT,
        "first_segment": Kind.BIGINT,
        "kept_segment": Kind.BIGINT,
        "snapshot_epoch": Kind.BIGINT,
        "snapshot_segment": Kind.BIGINT,
        "writing_epoch": Kind.BIGINT,
        "writing_segment": Kind.BIGINT,
    },
)
JOURNAL = Table(
    "task_journal",
    {"store": Kind.TEXT, "segment": Kind.BIGINT},
    {"sequence": Kind.BIGINT, "part": Kind.INT},
    {
        "epoch": Kind.BIGINT,
        "version": Kind.BIGINT,
        "last": Kind.BIGINT,
        "since": Kind.BIGINT,
        "following": Kind.BIGINT,
        "parts": Kind.INT,
        "data": Kind.BLOB,
    },
)
SNAPSHOTS = Table(
    "task_snapshots",
    {"store": Kind.TEXT, "epoch": Kind.BIGINT, "segment": Kind.BIGINT},
    {"part": Kind.INT},
    {"parts": Kind.BIGINT, "checksum": Kind.BIGINT, "data": Kind.BLOB},
)

STORE_ROW: Key = (0,)
SEGMENT_HEAD: Key = (0, 0)
SNAPSHOT_HEAD: Key = (-1,)


def number(row: Mapping[str, object], column: str) -> int | None:
    """Return a number of a row, or None."""
    value = row.get(column)
    return value if isinstance(value, int) else None


def blob(row: Row) -> bytes:
    """Return the data of a row."""
    value = row.get("data")
    return value if isinstance(value, bytes) else b""
