"""What the lock table needs of the world: two clocks, and something to wait on. Every port of the database has that."""

from __future__ import annotations

from typing import Protocol

from ..database import Event


class Port(Protocol):
    """Clocks, and events."""

    def now(self) -> float:
        """Return seconds on a clock that only goes forward. Leases are counted on it."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch on this host's clock. It is shown, and decides nothing."""
        ...

    def event(self) -> Event: ...
