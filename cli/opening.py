"""From options to a store or a client. Where no database is named, it is a file in the user's data folder."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .options import Choices
from .output import tell

if TYPE_CHECKING:
    from ..database import CassandraSettings, Settings, SqliteSettings, Store
    from ..semaphore import Client

FILE = "slotkeeper.db"


def settings(choices: Choices) -> Settings:
    """Return the settings that options and environment name, or else those of the embedded file. Raises SettingsError."""
    from ..database import SqliteSettings

    return named(choices) or SqliteSettings(path=str(default_file()))


def named(choices: Choices) -> Settings | None:
    """Return the settings that options and environment name. Raises SettingsError."""
    from ..database import load

    return load(choices.given.get("database"), choices.parts, os.environ)


def cassandra_settings(choices: Choices) -> CassandraSettings:
    """Return the settings of a Cassandra. Raises SettingsError where another database is named, or none."""
    from ..database import CassandraSettings, SettingsError

    found = settings(choices)
    if isinstance(found, CassandraSettings):
        return found
    raise SettingsError(
        f"The embedded store {found} has no keyspaces, and needs none. For a Cassandra: --database cassandra://HOST/KEYSPACE."
    )


def default_file() -> Path:
    """Return the path of the embedded file, where this system keeps the data of a user's programs."""
    return _data_folder() / "slotkeeper" / FILE


def _data_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    named = os.environ.get("XDG_DATA_HOME", "")
    return Path(named) if Path(named).is_absolute() else Path.home() / ".local" / "share"  # the XDG rule


@contextmanager
def opened_store(choices: Choices, *, prepared: bool = True) -> Iterator[Store]:
    """Open the store. An embedded one that is new gets its tables, if it is to be `prepared`; a keyspace never does."""
    from ..database import SqliteSettings, open_store

    found = settings(choices)
    set_up_logging(choices)
    if isinstance(found, SqliteSettings):
        _make_folder(found)
    store = open_store(found)
    try:
        if prepared and isinstance(found, SqliteSettings):
            _prepare(choices, store, found)
        yield store
    finally:
        store.close()


@contextmanager
def opened_client(choices: Choices) -> Iterator[Client]:
    """Open a client of the chosen domain."""
    from ..semaphore import Client

    with opened_store(choices) as store, Client(store, domain=domain(choices), timeout_s=choices.timeout_s) as client:
        yield client


@contextmanager
def embedded_client(path: str) -> Iterator[Client]:
    """Open a client of an embedded file that is new."""
    from .. import schema
    from ..database import SqliteSettings, open_store
    from ..semaphore import Client

    store = open_store(SqliteSettings(path=path))
    try:
        schema.setup(store)
        with Client(store) as client:
            yield client
    finally:
        store.close()


def domain(choices: Choices) -> str:
    """Return the domain as it was named."""
    return choices.given.get("domain") or os.environ.get("SLOTKEEPER_DOMAIN") or "default"


def set_up_logging(choices: Choices) -> None:
    """Keep the driver's log from stderr, unless it is asked for: what matters of it comes as an error."""
    if choices.verbose:
        logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    driver = logging.getLogger("cassandra")
    if not driver.handlers:
        driver.addHandler(logging.NullHandler())


def _make_folder(found: SqliteSettings) -> None:
    """Make the folder of the embedded file: ours only, a folder that somebody named is theirs to make."""
    from ..database import Unavailable

    folder = default_file().parent
    if Path(found.path) != folder / FILE:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Unavailable(
            f"{folder} cannot be made ({error.strerror}). Name another place: --database sqlite:///PATH."
        ) from error


def _prepare(choices: Choices, store: Store, found: SqliteSettings) -> None:
    from .. import schema

    if schema.status(store).installed is None:
        schema.setup(store)
        tell(choices, f"made the embedded store {found.path}")
