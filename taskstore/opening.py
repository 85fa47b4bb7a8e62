"""From a name to a journal."""

from __future__ import annotations

from .disk import DiskJournal
from .errors import BadJournal
from .journal import Journal
from .memory import MemoryJournal
from .rows import DatabaseJournal


def journal_of(name: str) -> Journal:
    """Return the journal that a name means, not open yet.

    It is `memory`, `disk:DIR`, or a database's URL; several stores of one keyspace are told apart by `URL#NAME`.
    Raises BadJournal.
    """
    kind, _, rest = name.partition(":")
    if name == "memory":
        return MemoryJournal()
    if kind == "disk" and rest:
        return DiskJournal(rest)
    if kind in ("cassandra", "sqlite"):
        url, _, store = name.partition("#")
        return DatabaseJournal(url, store or "tasks")
    shown = kind if rest else name  # of a URL, only what can be no secret
    raise BadJournal(f"{shown!r} names no journal: memory, disk:DIR, cassandra://HOST/KEYSPACE or sqlite:///FILE.")
