"""What a journal promises to the engine, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .port import Port
from .record import Record

Take = Callable[[Record], None]


class Unsettled(Exception):  # between engine and journal: it reaches no caller
    """Nobody knows whether what was appended is in. Call `settle` before anything else."""


class Journal(Protocol):
    """An ordered list of records, each in it whole or not at all; what was acknowledged stays in it.

    One engine has it open, and appends one list of records at a time; a snapshot may be written meanwhile.
    """

    @property
    def keeps(self) -> bool:
        """Tell whether it keeps anything. Otherwise an append is over at once and never fails, and a snapshot saves nothing."""
        ...

    async def open(self, port: Port, take: Take) -> Sequence[str]:
        """Take the journal over and give `take` every record in it, in order. Return what a person should be told.

        Raises JournalLocked, JournalDamaged, JournalFailed, or a DatabaseError.
        """
        ...

    async def append(self, records: Sequence[Record], deadline: float) -> None:
        """Add records, and return once they are durable.

        Raises JournalFailed or a DatabaseError when they are not in it and never will be, Fenced when another engine has
        taken over, Unsettled at the deadline. Whatever else it raises, an interruption included, means the same as Unsettled.
        """
        ...

    async def settle(self, deadline: float) -> bool:
        """Tell whether the list of records that was left open is in after all. Raises Unsettled or Fenced."""
        ...

    async def cut(self) -> int:
        """Draw a line below all that was appended. Return its number, for `snapshot`."""
        ...

    async def snapshot(self, cut: int, records: Sequence[Record]) -> None:
        """Keep records that stand for all above a line, and forget what is above it. Raises JournalFailed, Fenced."""
        ...

    async def close(self) -> None:
        """Let the journal go. Safe to call twice."""
        ...
