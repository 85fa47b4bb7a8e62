"""Requests that wait on between two questions, so that a slice's end or a lost connection costs nobody a place in line.

Who asks again under the request's id takes over its place. Who does not within KEEP_S is taken out of the line; what it was
granted in that moment ends with its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..lock import Grant, Request

KEEP_S = 5.0
Acquire = Callable[[Request], Awaitable[Grant]]


class Waits:
    """The requests of a service that are under way."""

    def __init__(self, acquire: Acquire) -> None:
        self._acquire = acquire
        self._left: set[asyncio.Task[Grant]] = set()

    def __len__(self) -> int:
        """How many wait on although nobody asks for them now."""
        return len(self._left)

    async def granted(self, request: Request, slice_s: float | None) -> Grant | None:
        """Return the grant, or None where the slice has ended and the request waits on. Raises what the table does."""
        if slice_s is not None and request.wait_s > slice_s:
            request = replace(request, wait_s=min(request.wait_s, slice_s + KEEP_S))
        task = asyncio.ensure_future(self._granted(request))
        try:
            done, _ = await asyncio.wait((task,), timeout=slice_s)
        except asyncio.CancelledError:
            await self._leave(task, keep=bool(request.request))
            raise
        if done:
            return task.result()
        self._keep(task)
        return None

    async def end(self) -> None:
        """End all that wait on."""
        for task in self._left:
            task.cancel()
        await asyncio.gather(*self._left, return_exceptions=True)

    async def _granted(self, request: Request) -> Grant:
        return await self._acquire(request)

    async def _leave(self, task: asyncio.Task[Grant], *, keep: bool) -> None:
        if keep:
            self._keep(task)
            return
        task.cancel()
        await asyncio.wait((task,))
        _looked_at(task)

    def _keep(self, task: asyncio.Task[Grant]) -> None:
        self._left.add(task)
        timer = asyncio.get_running_loop().call_later(KEEP_S, task.cancel)

        def over(done: asyncio.Task[Grant]) -> None:
            timer.cancel()
            self._left.discard(done)
            _looked_at(done)

        task.add_done_callback(over)


def _looked_at(task: asyncio.Task[Grant]) -> None:
    """Look at how a task ended: nobody else does."""
    if task.done() and not task.cancelled():
        task.exception()
