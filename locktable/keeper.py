"""What renews a client's locks: a thread of its own, whatever the client's threads or loop are busy with."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from ..database.loopthread import LoopThread, Work
from .lease import Lease, Renewer, keep
from .lock import Lock
from .ports import LoopPort

log = logging.getLogger(__name__)

Opened = Callable[[], AbstractAsyncContextManager[Renewer]]


class LockKeeper(LoopThread[Lease]):
    """Renews leases until they are let go or lost. `opened` makes what renews them, in the thread's own loop."""

    def __init__(self, opened: Opened, name: str = "slotkeeper-locks") -> None:
        super().__init__(name, lambda: _keeping(opened))


@asynccontextmanager
async def _keeping(opened: Opened) -> AsyncIterator[Work[Lease]]:
    async with AsyncExitStack() as stack:
        port, renewer = LoopPort(), await _entered(stack, opened)
        yield lambda lease: keep(lease, port, renewer, random.random)


async def _entered(stack: AsyncExitStack, opened: Opened) -> Renewer:
    try:
        return await stack.enter_async_context(opened())
    except Exception as error:  # nobody can renew: each lease is lost when its time has come, and its holder told
        log.warning("locks will not be renewed: %s", error, exc_info=True)
        return _Broken(error)


class _Broken:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float) -> Lock:
        raise self._error
