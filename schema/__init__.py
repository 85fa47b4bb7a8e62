"""The tables of a store: how they come in, how they change, and whether a program fits them.

`setup` brings the tables into an empty keyspace, `update` brings older ones to the newest version, and `check` lets a client
start only where it fits: a program never changes tables by itself. Any number of processes may set up at once: one does
it under a lock with a lease, the others wait and find it done; a dead one is taken over when its lease ends.

What breaks the promise: tables created by hand while a setup runs, and a keyspace name used again after DROP KEYSPACE
on a cluster that has not forgotten its transactions (docs/decisions/0002-schema-lock-and-table-ids.md).

>>> from slotkeeper import schema
>>> from slotkeeper.database import BlockingPort, drive, open_store
>>> store = open_store("sqlite:///:memory:")
>>> str(schema.setup(store).after), schema.setup(store).statements
('0.3', ())
>>> drive(schema.check(BlockingPort(store), store.consistency))
>>> schema.status(store).state
'current'
>>> store.close()
"""

from __future__ import annotations

from .bootstrap import Report, Terms, setup, statements, update
from .control import CONTROL, DOCTOR, PARTITION, Change
from .errors import (
    ConsistencyMismatch,
    SchemaConflict,
    SchemaError,
    SchemaLocked,
    SchemaLockLost,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    SchemaUnsettled,
    UnknownVersion,
    VersionError,
)
from .fit import Status, check, status
from .keyspace import KeyspaceReport, create_keyspace, keyspace_statement
from .lock import force_unlock
from .manifest import Migration, Migrations, load, shipped
from .version import Version

__all__ = [
    "CONTROL",
    "DOCTOR",
    "PARTITION",
    "Change",
    "ConsistencyMismatch",
    "KeyspaceReport",
    "Migration",
    "Migrations",
    "Report",
    "SchemaConflict",
    "SchemaError",
    "SchemaLockLost",
    "SchemaLocked",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaTooOld",
    "SchemaUnsettled",
    "Status",
    "Terms",
    "UnknownVersion",
    "Version",
    "VersionError",
    "check",
    "create_keyspace",
    "force_unlock",
    "keyspace_statement",
    "load",
    "setup",
    "shipped",
    "statements",
    "status",
    "update",
]
