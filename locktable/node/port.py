"""The port: all that a lock node may wait for."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from ...database import Port as DatabasePort
from .messages import Answer, Message


class Background(Protocol):
    """Something that runs beside its callers."""

    async def ended(self) -> None:
        """Wait until it has ended."""
        ...


class Port(DatabasePort, Protocol):
    """A database and a clock (see `slotkeeper.database.Port`), the other nodes, and work beside the callers."""

    async def ask(self, address: str, message: Message, timeout_s: float) -> Answer:
        """Send a message to the node at an address, and return its answer.

        Raises Unreachable when none came in time: the message may have arrived all the same, now or later.
        """
        ...

    def begin(self, core: Coroutine[Any, Any, None]) -> Background:
        """Run something beside the callers."""
        ...
