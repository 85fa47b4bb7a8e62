"""What the direct faces do, written once: locks over the semaphores of one domain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from uuid import UUID, uuid5

from ...database import Unavailable
from ...owner import Owner
from ...semaphore import BeingDeleted, NoSuchSemaphore, OutcomeUnknown, WaitCancelled
from ...semaphore.core import SHORTEST_LEASE_S
from ...semaphore.core import Core as Semaphores
from ...semaphore.metadata import LONGEST_NAME
from ...semaphore.operations import Full, Granted, Released, Renewed
from ..errors import AlreadyReleased, BadLockRequest, LockHeld, LockUnavailable, LockUnknown, NotHeld
from ..limits import Limits
from ..lock import Lock, Moment, Request, lease
from ..port import Port
from .ids import NewId, leased, lock_id_of, owner_of, owner_of_lock, seen

CLUSTERS = UUID(
    "3f6c7a52-4d2b-5b8e-9d7a-2f6f0c9e1b74"
)  # the namespace of clusters' domains; changing it would lose every lock
PAGE = 100
ONLY = 1  # a lock's semaphore has one token
LOOKS = 3  # for a holder that another one has followed meanwhile


def cluster_id(cluster: str | UUID) -> UUID:
    """Return the domain in which a cluster's locks are: a UUID as it is, and any name by UUIDv5."""
    return cluster if isinstance(cluster, UUID) else uuid5(CLUSTERS, cluster)


def whole_lease(asked_s: float) -> int:
    """Return the lease that is given: as `lease` says, in whole seconds, at least two."""
    return max(SHORTEST_LEASE_S, ceil(lease(asked_s)))


class Core:
    """Locks of one cluster. Each call ends within `timeout_s` seconds, waiting in line aside."""

    def __init__(self, semaphores: Semaphores, port: Port, *, timeout_s: float, new_id: NewId) -> None:
        self._semaphores, self._port, self._new_id = semaphores, port, new_id
        self._timeout_s = timeout_s
        self._limits = Limits()

    async def acquire(self, asked: Request) -> Lock:
        """Take a lock, or stand in line for it."""
        request = self._checked(asked)
        lock_id = lock_id_of(request.name, request.request) if request.request else self._new_id()
        with _told(request.name, request.request or lock_id):
            request = await self._as_before(request, lock_id)
            for _ in range(LOOKS):
                answer = await self._take(request, owner_of(request.holder, request.node, lock_id))
                if isinstance(answer, Granted):
                    return self._granted(request, lock_id, answer)
                if (held := await self._held(request.name)) is not None:
                    raise LockHeld(held, ahead=answer.ahead)
        raise LockUnavailable(
            f"lock {request.name} changes hands too fast to tell who holds it. Ask again, with a wait."
        )

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float | None = None) -> Lock:
        """Count a lock's lease anew. Raises NotHeld."""
        self._limits.check_lease(lease_s)
        whole_s = whole_lease(lease_s)
        with _told(lock.name, lock.request or lock.id):
            try:
                answer = await self._semaphores.renew(
                    lock.name,
                    owner_of_lock(lock),
                    fence=lock.fence,
                    lease_s=whole_s,
                    timeout_s=self._timeout_s if timeout_s is None else timeout_s,
                )
            except NoSuchSemaphore:
                raise NotHeld(lock.name, lock.id) from None
        if not isinstance(answer, Renewed):
            raise NotHeld(lock.name, lock.id)
        return leased(lock, answer.began_at, whole_s, self._moment())

    async def release(self, name: str, lock_id: str) -> bool:
        """Give a lock back that is known by its id. False: it is not held under it."""
        held = await self._held_now(name)
        return held is not None and held.id == lock_id and await self.release_lock(held)

    async def release_lock(self, lock: Lock) -> bool:
        """Give a lock back. False: it had ended before."""
        with _told(lock.name, lock.request or lock.id):
            try:
                answer = await self._semaphores.release(lock.name, owner_of_lock(lock), lock.fence, self._timeout_s)
            except NoSuchSemaphore:
                return False
        return isinstance(answer, Released)

    async def locks(self) -> list[Lock]:
        """Read what is held, by name."""
        found: list[Lock] = []
        after: str | None = None
        with _told("*"):
            while page := await self._semaphores.page(after, PAGE):
                after = page[-1].name
                found += [lock for each in page if (lock := await self._held(each.name)) is not None]
        return found

    async def _as_before(self, request: Request, lock_id: str) -> Request:
        """Return a request as the one that has the lock already under its id: that may have come from another node."""
        held = await self._held_now(request.name) if request.request else None
        return request if held is None or held.id != lock_id else replace(request, node=held.node, holder=held.holder)

    async def _take(self, request: Request, owner: Owner) -> Granted | Full:
        try:
            return await self._ask(request, owner)
        except NoSuchSemaphore:
            await self._semaphores.create(request.name, ONLY, None, self._timeout_s)
            return await self._ask(request, owner)

    async def _ask(self, request: Request, owner: Owner) -> Granted | Full:
        return await self._semaphores.acquire(
            request.name,
            owner,
            wait_s=max(0.0, request.wait_s),
            lease_s=whole_lease(request.lease_s),
            timeout_s=self._timeout_s,
        )

    async def _held_now(self, name: str) -> Lock | None:
        with _told(name):
            try:
                return await self._held(name)
            except NoSuchSemaphore:
                return None

    async def _held(self, name: str) -> Lock | None:
        holder = await self._semaphores.holder_of(name, ONLY)
        return None if holder is None else seen(name, holder, self._moment())

    def _granted(self, request: Request, lock_id: str, answer: Granted) -> Lock:
        at = self._moment()
        since = Moment(0.0, answer.fence).wall()  # a fence is the time of its grant, or the next free moment after it
        shown = request.holder, since, since
        lock = Lock(request.name, lock_id, request.node, *shown, at.now, answer.fence, request.request)
        return leased(lock, answer.began_at, whole_lease(request.lease_s), at)

    def _checked(self, request: Request) -> Request:
        if len(request.name.encode(errors="replace")) > LONGEST_NAME:
            raise BadLockRequest(f"A lock's name has at most {LONGEST_NAME} bytes.")
        return self._limits.checked(request)

    def _moment(self) -> Moment:
        return Moment(self._port.now(), self._port.wall_ms())


@contextmanager
def _told(name: str, request: str = "") -> Iterator[None]:
    """Say of locks what went wrong with semaphores."""
    try:
        yield
    except (Unavailable, BeingDeleted) as error:
        raise LockUnavailable(f"lock {name}: {error}") from error
    except OutcomeUnknown as error:
        raise LockUnknown(name, request) from error
    except WaitCancelled as error:
        raise AlreadyReleased(name, request) from error
