"""The two stores as tests see them: a store, and a way to let time pass until a TTL ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slotkeeper.database import Store, open_store
from slotkeeper.database.sqlite import SqliteStore, wall_ms

from .lamps import shape

POLLS = 250


class Clock:
    """A wall clock that a test moves. It starts at the real time and stands still."""

    def __init__(self) -> None:
        self.ms = wall_ms()

    def __call__(self) -> int:
        """Return milliseconds since the epoch."""
        return self.ms

    def move(self, *, ms: int) -> None:
        """Go forward."""
        self.ms += ms


@dataclass(frozen=True, slots=True)
class World:
    """A store with its tables, and the time it lives in."""

    url: str
    store: Store
    let_pass: Callable[[], None]

    def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until `holds` does: about ten seconds at most, of the real or of the moved clock."""
        for _ in range(POLLS):
            if holds():
                return
            self.let_pass()
        raise AssertionError(f"{holds} did not come about within {POLLS} looks")


@contextmanager
def sqlite_world(path: Path, clock: Clock | None = None) -> Iterator[World]:
    """Open a fresh file whose clock the world moves."""
    clock = clock or Clock()
    store = SqliteStore(path, clock=clock)
    try:
        shape(store)
        yield World(f"sqlite:///{path}", store, lambda: clock.move(ms=40))
    finally:
        store.close()


@contextmanager
def cassandra_world(url: str) -> Iterator[World]:
    """Connect to a keyspace, whose TTLs end in real time."""
    store = open_store(url)
    try:
        shape(store)
        yield World(url, store, lambda: time.sleep(0.04))
    finally:
        store.close()
