"""The journal that is none, and the one in memory that tests open again."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import JournalLocked
from .journal import Take
from .port import Port
from .record import Record, decode, encode


class MemoryJournal:
    """Keeps nothing; with `keep`, whoever opens the same object again finds every record."""

    def __init__(self, *, keep: bool = False) -> None:
        self.keep = keep
        self.written: list[bytes] = []
        self._snapshot: list[bytes] = []
        self._open = False

    def __repr__(self) -> str:
        return f"<MemoryJournal {len(self.written)} records>"

    @property
    def keeps(self) -> bool:
        """See Journal."""
        return self.keep

    async def open(self, port: Port, take: Take) -> Sequence[str]:
        """See Journal. Raises JournalLocked."""
        if self._open:
            raise JournalLocked(repr(self))
        self._open = True
        for written in (*self._snapshot, *self.written):
            take(decode(written))
        return ()

    async def append(self, records: Sequence[Record], deadline: float) -> None:
        """See Journal."""
        if self.keep:
            self.written += [encode(record) for record in records]

    async def settle(self, deadline: float) -> bool:
        """See Journal. Nothing can come between."""
        return True

    async def cut(self) -> int:
        """See Journal."""
        return len(self.written)

    async def snapshot(self, cut: int, records: Sequence[Record]) -> None:
        """See Journal."""
        self._snapshot = [encode(record) for record in records]
        del self.written[:cut]

    async def close(self) -> None:
        """See Journal."""
        self._open = False
