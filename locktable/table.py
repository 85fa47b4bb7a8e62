"""The two faces: `Table` for threads, `AsyncTable` for asyncio. The same names, thin, and decide nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Self
from uuid import uuid4

from ..database import drive
from .core import Locks, always
from .limits import Limits
from .lock import Grant, Lock, Request
from .ports import LoopPort, ThreadsPort
from .state import MayGrant, NewId


def new_id() -> str:
    """Return an id for a lock: a random UUID."""
    return str(uuid4())


class _Table:
    """What both faces have in common."""

    _locks: Locks

    def __repr__(self) -> str:
        return repr(self._locks).replace(type(self._locks).__name__, type(self).__name__)

    @property
    def is_rebuilt(self) -> bool:
        """Tell whether the table may grant: it was rebuilt since it was made, and since it was dropped."""
        return self._locks.is_rebuilt

    @property
    def generation(self) -> int:
        """How often the table was dropped. A rebuild names the one that it read the nodes for."""
        return self._locks.generation

    @property
    def epoch(self) -> int:
        """The epoch of the fences."""
        return self._locks.epoch

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return self._locks.waiting


class Table(_Table):
    """A lock table for threads, which may share it. It is empty at first, and grants nothing before `rebuild`.

    Leases count on the clock `now`. Fences grow as long as the table lives, and beyond with an `epoch` that grows. See `Locks`
    for `may_grant`.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.monotonic,
        new_id: NewId = new_id,
        may_grant: MayGrant = always,
        limits: Limits | None = None,
        epoch: int = 0,
    ) -> None:
        self._now = now
        self._locks = Locks(
            ThreadsPort(now), new_id=new_id, may_grant=may_grant, limits=limits, epoch=epoch, guard=threading.Lock()
        )

    def for_tasks(self) -> AsyncTable:
        """Return the same table for the tasks of an asyncio loop. They stand in one line with the threads."""
        return AsyncTable.over(self._locks.through(LoopPort(self._now)))

    def acquire(self, request: Request) -> Grant:
        """Grant a lock; where it is held, stand in line for it as long as the request says, first come, first served.

        A request repeated under its id gets the same grant, or its earlier call's place in line (which ends with TakenOver).
        Raises LockHeld, NotRebuilt, AlreadyReleased, LimitReached, LockUnavailable, NoName, BadLockRequest.
        """
        return drive(self._locks.acquire(request))

    def renew(self, name: str, lock_id: str, lease_s: float = 0.0, *, node: str = "") -> Grant:
        """Count a lock's lease anew, from now; a shorter one changes nothing. With `node`, it was asked for there.

        Raises NotHeld where it was released or its lease has ended, NotRebuilt, LockUnavailable.
        """
        return drive(self._locks.renew(name, lock_id, lease_s, node=node))

    def release(self, name: str, lock_id: str = "", *, request: str = "") -> Lock | None:
        """End a lock, by its id or its request's, and return it. None: it is not held under that id.

        By a request id, a place in line is given up too, and a call that is still on its way will be refused.
        """
        return drive(self._locks.release(name, lock_id, request=request))

    def forget(self, name: str, lock_id: str) -> None:
        """End a lock that was released elsewhere. For ten minutes no rebuild brings it back."""
        drive(self._locks.forget(name, lock_id))

    def drop(self) -> None:
        """Stop granting: empty the table, and answer all who wait with NotRebuilt."""
        drive(self._locks.drop())

    def rebuild(self, generation: int, locks: Iterable[Lock], *, epoch: int | None = None) -> list[Lock] | None:
        """Replace the locks by what was read from the nodes, and begin to grant, with the fences of `epoch`.

        Of two locks of one name the one that lasts longer is kept; return the others, whose holders do not know of it.
        None: the table was dropped since `generation`, and nothing was changed. Raises BadEpoch for one that goes back.
        """
        return drive(self._locks.rebuild(generation, locks, epoch=epoch))

    def locks(self) -> list[Lock]:
        """Return what is held, by name."""
        return drive(self._locks.locks())

    def granted(self) -> list[Lock]:
        """Return what was granted here and may still be held, before a drop as well as after it: a rebuild needs it."""
        return drive(self._locks.granted())


class AsyncTable(_Table):
    """A lock table for the tasks of one asyncio loop. As `Table`, with `await`."""

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.monotonic,
        new_id: NewId = new_id,
        may_grant: MayGrant = always,
        limits: Limits | None = None,
        epoch: int = 0,
    ) -> None:
        self._locks = Locks(LoopPort(now), new_id=new_id, may_grant=may_grant, limits=limits, epoch=epoch)

    @classmethod
    def over(cls, locks: Locks) -> Self:
        """Return the face of a table that is there already, over a port of an asyncio loop."""
        table = cls.__new__(cls)
        table._locks = locks
        return table

    async def acquire(self, request: Request) -> Grant:
        """See Table.acquire. Who is cancelled meanwhile leaves no place behind, and no lock."""
        return await self._locks.acquire(request)

    async def renew(self, name: str, lock_id: str, lease_s: float = 0.0, *, node: str = "") -> Grant:
        """See Table.renew."""
        return await self._locks.renew(name, lock_id, lease_s, node=node)

    async def release(self, name: str, lock_id: str = "", *, request: str = "") -> Lock | None:
        """See Table.release."""
        return await self._locks.release(name, lock_id, request=request)

    async def forget(self, name: str, lock_id: str) -> None:
        """See Table.forget."""
        await self._locks.forget(name, lock_id)

    async def drop(self) -> None:
        """See Table.drop."""
        await self._locks.drop()

    async def rebuild(self, generation: int, locks: Iterable[Lock], *, epoch: int | None = None) -> list[Lock] | None:
        """See Table.rebuild."""
        return await self._locks.rebuild(generation, locks, epoch=epoch)

    async def locks(self) -> list[Lock]:
        """See Table.locks."""
        return await self._locks.locks()

    async def granted(self) -> list[Lock]:
        """See Table.granted."""
        return await self._locks.granted()
