"""Whether a journal can be opened, and what opening it would tell. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..state import State
from .files import LOCK, DirectoryLock, sorted_errors
from .recovery import look


@dataclass(frozen=True, slots=True)
class Verified:
    """A journal as it was found. It opens, unless there is `damage`; what it is `told` loses nothing."""

    directory: str
    segments: int
    records: int
    sequence: int
    tasks: int
    told: tuple[str, ...]
    damage: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing that was acknowledged is lost."""
        return not self.damage


def verify(directory: str | Path) -> Verified:
    """Read a journal from end to end. Raises JournalLocked while somebody has it open, JournalFailed."""
    where, state = Path(directory), State()
    with sorted_errors(f"{where} cannot be read"):
        lock = DirectoryLock(where) if (where / LOCK).exists() else None
        try:
            found = look(where, lambda record: (state.apply(record), None)[1], born=lock is not None and lock.born)
        finally:
            if lock is not None:
                lock.release()
    told, damage = tuple(found.told), tuple(found.damage)
    return Verified(str(where), found.segments, found.records, found.sequence, len(state.tasks), told, damage)
