"""What can be wrong with the tables of a keyspace. For each: what happened, and the command to run."""

from __future__ import annotations

from ..errors import SlotkeeperError, default_message
from .version import Version


class SchemaError(SlotkeeperError):
    """The tables of this keyspace and this program do not fit."""


class VersionError(SchemaError):
    """The installed version of the schema is not one that this program works with."""

    def __init__(self, installed: Version | None, expected: Version) -> None:
        self.installed, self.expected = installed, expected
        super().__init__(f"{default_message(type(self))} Installed: {installed or 'none'}, expected: {expected}.")


class SchemaMissing(VersionError):
    """The tables are not there, or not all of them yet. Run `slotkeeper schema setup`."""


class SchemaTooOld(VersionError):
    """The tables are older than this program. Run `slotkeeper schema update`."""


class SchemaTooNew(VersionError):
    """The tables are newer than this program can work with, and never go back. Update this program."""


class UnknownVersion(SchemaError):
    """This program knows no such version of the schema. Name one that `slotkeeper schema status` shows as expected."""

    def __init__(self, version: Version, known: tuple[Version, ...]) -> None:
        self.version, self.known = version, known
        super().__init__(f"This program knows no schema version {version}. It knows: {', '.join(map(str, known))}.")


class ConsistencyMismatch(SchemaError):
    """The keyspace is kept at another pair of consistency levels. Use the stored pair: quorums of two pairs need not meet."""

    def __init__(self, stored: str, ours: str) -> None:
        self.stored, self.ours = stored, ours
        super().__init__(f"{default_message(type(self))} Stored: {stored}, ours: {ours} (option `consistency`).")


class SchemaConflict(SchemaError):
    """A table of this name exists and is a different one. Use another keyspace, or move that table away."""

    def __init__(self, table: str, differences: tuple[str, ...]) -> None:
        self.table, self.differences = table, differences
        super().__init__(f"Table {table}: {'; '.join(differences)}. {default_message(type(self))}")


class SchemaLocked(SchemaError):
    """Another process has been changing the schema for all the time allowed. Wait for it and run the command again.

    If it is dead, its lock ends by itself; `--force-unlock` ends it now.
    """

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(f"{default_message(type(self))} It is: {holder}.")


class SchemaLockLost(SchemaError):
    """The lock of the schema ended while it was being changed. Run the command again: it goes on where this one stopped."""

    def __init__(self, holder: str | None) -> None:
        self.holder = holder
        super().__init__(f"{default_message(type(self))} The lock is now held by: {holder or 'nobody'}.")


class SchemaUnsettled(SchemaError):
    """The database did not say whether a step took effect. Run the command again: it looks first, and goes on from there."""
