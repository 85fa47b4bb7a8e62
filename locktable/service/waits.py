"""Requests that wait on although nobody listens, so that a slice's end or a lost connection costs nobody a place in line.

Who asks again under the request's id takes over its place. Who does not within KEEP_S is taken out of the line; what it was
granted in that moment ends with its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
KEEP_S = 5.0


class Waits:
    """The requests of a service that wait on."""

    def __init__(self) -> None:
        self._left: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """How many wait on although nobody listens."""
        return len(self._left)

    async def outcome(self, work: Coroutine[Any, Any, T], *, keep: bool, slice_s: float | None = None) -> T | None:
        """Return what comes of a request, or None where the slice has ended and the request waits on.

        With `keep` it waits on, too, where the caller is cancelled.
        """
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait((task,), timeout=slice_s)
        except asyncio.CancelledError:
            if keep:
                self._keep(task)
            else:
                task.cancel()
                await asyncio.wait((task,))
                _looked_at(task)
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

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._left.add(task)
        timer = asyncio.get_running_loop().call_later(KEEP_S, task.cancel)

        def over(done: asyncio.Task[Any]) -> None:
            timer.cancel()
            self._left.discard(done)
            _looked_at(done)

        task.add_done_callback(over)


def _looked_at(task: asyncio.Task[Any]) -> None:
    """Look at how a task ended: nobody else does."""
    if task.done() and not task.cancelled():
        task.exception()
