"""A database of its own for each test, versions of the future, and a clock that moves when somebody sleeps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cassandra.cluster import Session
from cluster.server import Server, fresh_keyspace

from slotkeeper import schema
from slotkeeper.database import BlockingPort, Store, open_store
from slotkeeper.database.sqlite import SqliteStore, wall_ms
from slotkeeper.schema import Migrations, manifest, versions

Future = Callable[[int], Migrations]


@pytest.fixture
def cassandra(cassandra_server: Server, cassandra_session: Session) -> Iterator[str]:
    """The URL of an empty keyspace."""
    with fresh_keyspace(cassandra_session, cassandra_server.local_dc, "schema") as keyspace:
        yield cassandra_server.url(keyspace)


@pytest.fixture(params=["sqlite", "cassandra"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/slots.db"
    return str(request.getfixturevalue("cassandra"))


@pytest.fixture
def store(any_url: str) -> Iterator[Store]:
    """An empty store of either kind."""
    with opened(any_url) as store:
        yield store


@pytest.fixture
def cassandra_store(cassandra: str) -> Iterator[Store]:
    """An empty keyspace."""
    with opened(cassandra) as store:
        yield store


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


class MovedPort(BlockingPort):
    """A port on which sleeping moves the clock, the store's with it, and takes no time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    async def sleep(self, seconds: float) -> None:
        """Move the clock."""
        self._clock.ms += max(1, round(seconds * 1000))

    def now(self) -> float:
        """Return the moved time."""
        return self._clock.ms / 1000

    def wall_ms(self) -> int:
        """Return the moved time."""
        return self._clock.ms


class Clock:
    """A wall clock that stands still until somebody moves it."""

    def __init__(self) -> None:
        self.ms = wall_ms()

    def __call__(self) -> int:
        """Return milliseconds since the epoch."""
        return self.ms


@pytest.fixture
def clock() -> Clock:
    """The clock that `moved` lives by."""
    return Clock()


@pytest.fixture
def moved(clock: Clock) -> Iterator[SqliteStore]:
    """A store in memory whose TTLs go by the test's clock."""
    store = SqliteStore(":memory:", clock=clock)
    yield store
    store.close()


@pytest.fixture
def moved_port(clock: Clock) -> Callable[[Store], MovedPort]:
    """A way to make a port on which the test's clock moves."""
    return lambda store: MovedPort(store, clock)


@pytest.fixture
def port(moved: SqliteStore, clock: Clock) -> MovedPort:
    """The port of `moved`."""
    return MovedPort(moved, clock)


@pytest.fixture
def first_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program that ships version 0.1 alone: how versions come in does not depend on how many there are by now."""
    known = schema.shipped().known[:1]
    monkeypatch.setattr(manifest, "load", lambda root: Migrations(known))
    schema.shipped.cache_clear()
    yield
    monkeypatch.undo()
    schema.shipped.cache_clear()


@pytest.fixture
def future(tmp_path: Path) -> Future:
    """The versions up to 0.n: the 0.1 of the program; 0.2 adds a column; 0.3 a table, and no longer serves a program of 0.1."""

    def until(minor: int) -> Migrations:
        root = tmp_path / f"versions_{minor}"
        if root.exists():
            return schema.load(root)
        shutil.copytree(Path(str(versions.__file__)).parent / "v0_1", root / "v0_1")
        for later in range(2, minor + 1):
            write_version(root / f"v0_{later}", *LATER[later])
        return schema.load(root)

    return until


LIMITS = {"partition": {"name": "text"}, "clustering": {}, "values": {"most": "int"}}
LATER: dict[int, tuple[str, dict[str, str], dict[str, object]]] = {
    2: (
        "0.1",
        {
            "cql": "ALTER TABLE semaphore_metadata ADD weight int;",
            "sql": "ALTER TABLE semaphore_metadata ADD COLUMN weight INTEGER;",
        },
        {
            "semaphore_metadata": {
                "partition": {"domain_id": "uuid"},
                "clustering": {"semaphore_name": "text"},
                "values": {"size": "int", "bucket_size": "int", "created_time": "timestamp", "weight": "int"},
            }
        },
    ),
    3: (
        "0.2",
        {
            "cql": "CREATE TABLE IF NOT EXISTS limits (name text PRIMARY KEY, most int) WITH id = {id};",
            "sql": "CREATE TABLE IF NOT EXISTS limits"
            " (name TEXT PRIMARY KEY, most INTEGER, marker_until INTEGER, expiry TEXT);",
        },
        {"limits": LIMITS},
    ),
}


def write_version(folder: Path, oldest: str, statements: dict[str, str], tables: dict[str, object]) -> None:
    """Write the folder of a version."""
    folder.mkdir()
    manifest = {
        "CurrVersion": folder.name.removeprefix("v").replace("_", "."),
        "MinCompatibleVersion": oldest,
        "Description": "For a test",
        "Files": {dialect: [f"change.{dialect}"] for dialect in statements},
        "Tables": tables,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for dialect, text in statements.items():
        (folder / f"change.{dialect}").write_text(text, encoding="utf-8")
