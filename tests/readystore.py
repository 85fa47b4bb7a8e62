"""A store that has the tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from slotkeeper import schema
from slotkeeper.database import Store, open_store


@contextmanager
def ready_store(url: str = "sqlite:///:memory:") -> Iterator[Store]:
    """Open a store, give it the tables, and close it at the end."""
    with closing(open_store(url)) as store:
        schema.setup(store)
        yield store
