"""From a name to a journal."""

from __future__ import annotations

from .errors import BadJournal
from .journal import Journal
from .memory import MemoryJournal


def journal_of(name: str) -> Journal:
    """Return the journal that a name means, not open yet: `memory`. Raises BadJournal."""
    if name == "memory":
        return MemoryJournal()
    raise BadJournal(f"{name!r} names no journal: memory.")
