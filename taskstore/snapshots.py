"""When to take snapshots, and one at a time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ..database import Event
from .port import Background, Port

FEWEST_RECORDS = 30_000


class Snapshots:
    """Counts what was appended, and starts a snapshot when reading it all again would take longer than it should."""

    def __init__(self, port: Port, *, wanted: bool) -> None:
        self.failure: Exception | None = None  # of the last one
        self._port, self._wanted = port, wanted
        self._since, self._most = 0, FEWEST_RECORDS
        self._busy = port.mutex()
        self._over: Event | None = None
        self._background: Background | None = None

    def count(self, records: int) -> bool:
        """Count records. Tell whether it is time for a snapshot."""
        self._since += records
        return self._wanted and self._since >= self._most

    def begin(self) -> bool:
        """Begin, and tell so; or tell that one is being taken."""
        if not self._busy.take():
            return False
        self._over, self._since = self._port.event(), 0
        return True

    def finish(self, tasks: int) -> None:
        """Let the next one begin, once as many records have come again as this one saved reading."""
        self._most = max(FEWEST_RECORDS, 2 * tasks)
        over, self._over = self._over, None
        self._busy.give()
        if over is not None:
            over.set()

    async def over(self, timeout_s: float) -> None:
        """Wait for the one that is being taken."""
        if self._over is not None:
            await self._over.wait(timeout_s)

    def start(self, take: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Take one beside the callers. What goes wrong is for `stats` to tell; the journal has everything all the same."""
        self._since = 0
        self._background = self._port.begin(self._taken(take))

    async def ended(self) -> None:
        """Wait until nothing of it runs any more."""
        if self._background is not None:
            await self._background.ended()

    async def _taken(self, take: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await take()
            self.failure = None
        except Exception as error:
            self.failure = error
