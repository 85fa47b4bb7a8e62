"""What the doctor looks at on an embedded store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .checks import Check, Step, consistency_check, fail, ok, round_trip, schema_checks, warn
from .exits import Exit

if TYPE_CHECKING:
    from ..database import SqliteSettings, Store

ROOM_MB = 100


def steps(settings: SqliteSettings, store: Store) -> list[Step]:
    """Return the checks of an open embedded store."""
    path = Path(settings.path)
    return [
        ("file", lambda: _file(path)),
        ("journal", lambda: _journal(path)),
        ("schema", lambda: schema_checks(store)),
        ("consistency", lambda: consistency_check(store)),
        ("round trip", lambda: round_trip(store)),
    ]


def _file(path: Path) -> Iterator[Check]:
    free_mb = shutil.disk_usage(path.parent).free // 2**20
    message = f"{path}, {path.stat().st_size // 1024} KiB, {free_mb} MiB free on its disk"
    if free_mb >= ROOM_MB:
        yield ok("file", message)
    else:
        yield warn("file", message, "make room: on a full disk nothing can be acquired or released")


def _journal(path: Path) -> Iterator[Check]:
    """Look with a connection of its own. Each of ours syncs fully, which the file does not keep."""
    import sqlite3
    from contextlib import closing

    try:
        with closing(sqlite3.connect(path)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            (damage,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        mode, damage = "unreadable", str(error)
    yield ok("sqlite", f"SQLite {sqlite3.sqlite_version}")
    if mode == "wal":
        yield ok("journal", "WAL, and every commit is synced to the disk")
    else:
        yield warn("journal", f"{mode}, not WAL", "is the file on a network file system? Put it on a local disk")
    if damage != "ok":
        yield fail("damage", f"{path}: {damage}", "restore a copy of the file", Exit.UNEXPECTED)
