"""The port for an asyncio loop. How a message gets to another node is the service's business."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from ...database import AsyncioPort, Store
from .messages import Answer, Message
from .port import Background

log = logging.getLogger(__name__)


class Post(Protocol):
    """Carries messages to other nodes."""

    async def __call__(self, address: str, message: Message, timeout_s: float) -> Answer:
        """See Port.ask."""
        ...


class NodePort(AsyncioPort):
    """A port for the running loop, over a store and a post."""

    def __init__(self, store: Store, post: Post) -> None:
        super().__init__(store)
        self._post = post
        self._beside: set[asyncio.Task[None]] = set()

    async def ask(self, address: str, message: Message, timeout_s: float) -> Answer:
        """See Port.ask."""
        return await self._post(address, message, timeout_s)

    def begin(self, core: Coroutine[Any, Any, None]) -> Background:
        """Run something as a task."""
        task = asyncio.get_running_loop().create_task(core)
        self._beside.add(task)  # the loop itself keeps no hold of it
        task.add_done_callback(self._ended)
        return _Task(task)

    async def close(self) -> None:
        """Wait for what is being cleaned up, and end what else runs. The node has stopped by then."""
        await self.finished()
        while self._beside:
            for task in self._beside:
                task.cancel()
            await asyncio.wait(set(self._beside))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a part of the lock node has ended with an error", exc_info=error)


class _Task:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    async def ended(self) -> None:
        await asyncio.wait([self._task])
