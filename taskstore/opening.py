"""From a name to a journal."""

from __future__ import annotations

from .disk import DiskJournal
from .errors import BadJournal
from .journal import Journal
from .memory import MemoryJournal


def journal_of(name: str) -> Journal:
    """Return the journal that a name means, not open yet: `memory`, `disk:DIR`. Raises BadJournal."""
    kind, _, rest = name.partition(":")
    if name == "memory":
        return MemoryJournal()
    if kind == "disk" and rest:
        return DiskJournal(rest)
    raise BadJournal(f"{name!r} names no journal: memory, disk:DIR.")
