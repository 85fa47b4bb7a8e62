"""The verb that everything rests on, and the stores that keep it.

**Commit a batch of guarded writes to one partition, or learn why not.** A `Batch` names one partition of one `Table` and
holds `Write`s; a write may say what must hold of its row. `commit` answers with an outcome that has three names:

- `Applied`: every write took effect;
- `Refused`: none did, and the guarded rows are shown as they are;
- `Unknown`: the database did not say. Committing the identical batch again settles it when its guards name versions.

A DatabaseError means that nothing happened. What breaks the promise: any unconditional write to a table that these batches
write, and a mix of consistency pairs on one keyspace.

>>> from slotkeeper.database import Batch, Kind, Slice, Table, insert, open_store
>>> lamps = Table("lamps", {"room": Kind.TEXT}, {"lamp": Kind.INT}, {"state": Kind.TEXT})
>>> store = open_store("sqlite:///:memory:")
>>> store.shape("CREATE TABLE lamps (room, lamp, state, marker_until, expiry, PRIMARY KEY (room, lamp))")
>>> store.commit(Batch(lamps, ("hall",), (insert((1,), {"state": "on"}, absent=True),)))
Applied()
>>> store.read(lamps, ("hall",), (Slice(),), serial=True)
[{'room': 'hall', 'lamp': 1, 'state': 'on'}]
>>> store.close()
"""

from __future__ import annotations

from .batch import (
    Absent,
    Applied,
    Batch,
    Condition,
    Expect,
    Outcome,
    Refused,
    Slice,
    Unknown,
    Verb,
    Write,
    delete,
    insert,
    update,
)
from .errors import (
    ClosedError,
    DatabaseError,
    ForkedError,
    KeyspaceMissing,
    LoginRefused,
    SchemaNotAgreed,
    SettingsError,
    StatementRejected,
    StoreDamaged,
    StoreFull,
    TableMissing,
    Unavailable,
)
from .opening import open_store
from .port import Event, Port
from .ports import AsyncioPort, BlockingPort, drive
from .settings import CassandraSettings, Consistency, Settings, SqliteSettings, load, parse
from .store import Store
from .table import Key, Kind, Layout, Row, Table, Value

__all__ = [
    "Absent",
    "Applied",
    "AsyncioPort",
    "Batch",
    "BlockingPort",
    "CassandraSettings",
    "ClosedError",
    "Condition",
    "Consistency",
    "DatabaseError",
    "Event",
    "Expect",
    "ForkedError",
    "Key",
    "KeyspaceMissing",
    "Kind",
    "Layout",
    "LoginRefused",
    "Outcome",
    "Port",
    "Refused",
    "Row",
    "SchemaNotAgreed",
    "Settings",
    "SettingsError",
    "Slice",
    "SqliteSettings",
    "StatementRejected",
    "Store",
    "StoreDamaged",
    "StoreFull",
    "Table",
    "TableMissing",
    "Unavailable",
    "Unknown",
    "Value",
    "Verb",
    "Write",
    "delete",
    "drive",
    "insert",
    "load",
    "open_store",
    "parse",
    "update",
]
