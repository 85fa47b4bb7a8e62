"""What the database can answer besides an outcome. All of these mean: nothing happened."""

from __future__ import annotations

from ..errors import SlotkeeperError


class DatabaseError(SlotkeeperError):
    """The database could not do what was asked. Nothing was changed."""


class SettingsError(DatabaseError, ValueError):
    """The database is named or configured wrongly. Correct the URL, flag or environment variable and try again."""


class Unavailable(DatabaseError):
    """The database could not be reached or could not serve the request. Nothing was changed; try again."""


class LoginRefused(DatabaseError):
    """The database refused the user or the password. Check both (the password file too) and try again."""


class KeyspaceMissing(DatabaseError):
    """The keyspace does not exist. Create it with `slotkeeper schema create-keyspace`, then run `slotkeeper schema setup`."""


class StatementRejected(DatabaseError):
    """The database rejected a statement (invalid, not permitted, or a table is missing). Nothing was changed."""


class TableMissing(StatementRejected):
    """A table does not exist. Nothing was changed; run `slotkeeper schema setup`, which brings the tables in."""


class SchemaNotAgreed(DatabaseError):
    """The nodes have not agreed on the schema in time. Let all of them come up, then run the command again: it goes on."""


class StoreFull(DatabaseError):
    """The disk under the embedded store is full. Nothing was changed; make room and try again."""


class StoreDamaged(DatabaseError):
    """The file of the embedded store is damaged or is no slotkeeper store. Nothing was written to it; restore a copy."""


class ClosedError(DatabaseError):
    """This connection is closed. Open a new one."""


class ForkedError(DatabaseError):
    """This connection was opened before a fork and does not work in the child. Open a new one in the child process."""
