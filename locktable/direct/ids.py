"""A lock's holder as the owner of a semaphore's slot: `<holder>`, `<node>:<lock id>`, 0. The id alone tells requests apart."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid5

from ...owner import Owner
from ...semaphore.core import Holder
from ...semaphore.lease import MARGIN_S
from ..lock import Lock, Moment

REQUESTS = UUID("0b0f0c1e-9d0b-5f0e-8f5c-6a2f0b6f3c11")  # the namespace of lock ids that are made of request ids
HOLD_ID = 0

NewId = Callable[[], str]


def lock_id_of(name: str, request: str) -> str:
    """Return the id of the lock that a request is granted: always the same."""
    return str(uuid5(REQUESTS, f"{len(name)}:{name}:{request}"))


def owner_of(holder: str, node: str, lock_id: str) -> Owner:
    """Return the owner under which a lock is held."""
    return Owner(holder, f"{node}:{lock_id}", HOLD_ID)


def owner_of_lock(lock: Lock) -> Owner:
    """Return the owner under which a lock is held. One that was taken without these locks has the owner's id for its own."""
    return Owner.parse(lock.id) if ":" in lock.id else owner_of(lock.holder, lock.node, lock.id)


def leased(lock: Lock, began_at: float, lease_s: int, at: Moment) -> Lock:
    """Return a lock as its holder may trust it, its lease counted from `began_at`: less the server's rounding, and a margin."""
    until = began_at + lease_s - 1 - MARGIN_S
    shown = lock.acquired_at, at.wall(began_at + lease_s - at.now)
    return Lock(lock.name, lock.id, lock.node, lock.holder, *shown, until, lock.fence, lock.request)


def seen(name: str, holder: Holder, at: Moment) -> Lock:
    """Return a lock as its row shows it. Of a slot that was taken without these locks, the owner's id is shown."""
    owner = Owner.parse(holder.owner_id)
    node, colon, lock_id = owner.run_id.rpartition(":")
    left_s = float(holder.lease_left_s or 0)
    shown = Moment(0.0, holder.since_ms).wall(), at.wall(left_s)
    if not colon or owner.hold_id != HOLD_ID:
        return Lock(name, holder.owner_id, "", owner.workflow_id, *shown, at.now + left_s, holder.fence)
    return Lock(name, lock_id, node, owner.workflow_id, *shown, at.now + left_s, holder.fence)
