"""What renews a client's leases: a thread of its own, whatever the client's threads or loop are busy with.

Leases that are due together are renewed together, a few batches a bucket, and a bucket whose replicas are silent holds up no
other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from ..database import AsyncioPort, Store
from ..database.loopthread import LoopThread, Work
from .bucket import Dice
from .core import Core
from .lease import Lease, keep
from .metadata import Description


class Keeper(LoopThread[Lease]):
    """Renews leases until they are let go or lost."""

    def __init__(
        self, store: Store, domain_id: UUID, *, client_id: str, dice: Dice, known: dict[str, Description]
    ) -> None:
        @asynccontextmanager
        async def keeping() -> AsyncIterator[Work[Lease]]:
            port, phase = AsyncioPort(store), dice()
            core = Core(port, domain_id, client_id=client_id, dice=dice, known=known)
            yield lambda lease: keep(lease, port, core, dice, phase)
            await port.finished()

        super().__init__(f"slotkeeper-leases-{client_id}", keeping)
