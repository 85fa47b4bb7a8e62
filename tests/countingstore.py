"""A store that counts what is asked of it."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from slotkeeper.database import Batch, Outcome, Row, Store


@dataclass
class Count:
    """How many transactions and reads were begun."""

    commits: int = 0
    reads: int = 0

    def reset(self) -> None:
        """Count from nothing."""
        self.commits = self.reads = 0


@dataclass
class CountingStore:
    """Passes everything on to `store`, and counts."""

    store: Store
    count: Count = field(default_factory=Count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, batch: Batch) -> Outcome:
        """Count a transaction."""
        self.count.commits += 1
        return self.store.commit(batch)

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        """Count a transaction."""
        self.count.commits += 1
        return self.store.commit_begun(batch)

    def commit_soon(self, batch: Batch) -> Future[Outcome]:
        """Count a transaction."""
        self.count.commits += 1
        return self.store.commit_soon(batch)

    def read(self, *values: Any, **named: Any) -> list[Row]:
        """Count a read."""
        self.count.reads += 1
        return self.store.read(*values, **named)

    def read_begun(self, *values: Any, **named: Any) -> Future[list[Row]]:
        """Count a read."""
        self.count.reads += 1
        return self.store.read_begun(*values, **named)

    def read_soon(self, *values: Any, **named: Any) -> Future[list[Row]]:
        """Count a read."""
        self.count.reads += 1
        return self.store.read_soon(*values, **named)
