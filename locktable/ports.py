"""The two ports: one that blocks and never suspends, and one for an asyncio loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from ..database import AsyncioPort, BlockingPort, Store

NO_STORE = cast("Store", None)  # of a database port only the clocks and the waiting are used here


class ThreadsPort(BlockingPort):
    """For threads, which may share it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(NO_STORE)
        self._now = now

    def now(self) -> float:
        """See Port.now."""
        return self._now()


class LoopPort(AsyncioPort):
    """For the tasks of one loop."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(NO_STORE)
        self._now = now

    def now(self) -> float:
        """See Port.now."""
        return self._now()
