"""From settings to a store."""

from __future__ import annotations

from .settings import CassandraSettings, Settings, parse
from .sqlite import SqliteStore
from .store import Store


def open_store(settings: Settings | str) -> Store:
    """Open the store that settings, or a URL, name. Blocks until it is connected.

    Raises SettingsError, Unavailable, LoginRefused, KeyspaceMissing or StoreDamaged.
    """
    if isinstance(settings, str):
        settings = parse(settings)
    if isinstance(settings, CassandraSettings):
        from .cassandra import CassandraStore  # the driver takes a third of a second to import: only who needs it pays

        return CassandraStore(settings)
    return SqliteStore(settings.path, busy_s=settings.busy_timeout_s)
