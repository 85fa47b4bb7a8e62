"""The end of a service, as those see it who wait in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from .reading import Gone

T = TypeVar("T")


class Stopping:
    """Becomes set once, when the service is told to stop: from then on nobody waits for anything."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        """Let the waits end."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for it."""
        await self._event.wait()


async def while_wanted(request: Request, stopping: Stopping, work: Coroutine[Any, Any, T]) -> T | None:
    """Do something that may take long, as long as the client is there and the service goes on.

    Return None where the service stops; raises Gone where the client has left. Either way the work is cancelled, and over.
    The request's body must have been read.
    """
    working = asyncio.ensure_future(work)
    leaving, ending = asyncio.ensure_future(_left(request)), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, leaving, ending), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if leaving.done():
            raise Gone
        return None
    finally:
        for task in (working, leaving, ending):
            task.cancel()
        await asyncio.wait((working, leaving, ending))
        if not working.cancelled():
            working.exception()  # looked at: nobody is left to be told


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
