"""Locks with leases, granted from a table in memory.

A *lock* is a name that one holder has at a time, for a *lease*: when that ends the lock is free, whatever became of its
holder, who may renew it before. Who asks for a held lock stands in *line*, first come, first served. A *fence* comes with
each grant and only grows for a name: what the lock guards may refuse a smaller one.

What is promised: no two leases of one name overlap, and nobody overtakes; a request repeated under its id means the same as
one. What breaks the promise: a table that is rebuilt without asking all who may hold a lock, and a holder that goes on
after its lease has ended, where nothing looks at fences.

>>> from slotkeeper.locktable import LockHeld, Request, Table
>>> table = Table()
>>> table.rebuild(table.generation, [])  # nobody holds anything yet
[]
>>> lock = table.acquire(Request("network/blue", node="n1", holder="job 7", lease_s=60)).lock
>>> try:
...     table.acquire(Request("network/blue", node="n2", holder="job 8", wait_s=0))
... except LockHeld as held:
...     held.lock.holder, held.ahead
('job 7', 0)
>>> table.release("network/blue", lock.id) == lock
True
>>> table.acquire(Request("network/blue", node="n2", holder="job 8")).lock.fence > lock.fence
True
"""

from __future__ import annotations

from .client import AsyncLocker, Locker
from .core import Locks
from .errors import (
    AlreadyReleased,
    BadEpoch,
    BadLockRequest,
    FencesUsedUp,
    LimitReached,
    LockError,
    LockHeld,
    LockLost,
    LockUnavailable,
    LockUnknown,
    NoName,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    TakenOver,
)
from .held import Held
from .hold import AsyncLockHold, LockHold
from .limits import Limits
from .local import local_held, speaker_table
from .lock import DEFAULT_LEASE_S, MAX_LEASE_S, Grant, Lock, Request, lease
from .table import AsyncTable, Table

__all__ = [
    "DEFAULT_LEASE_S",
    "MAX_LEASE_S",
    "AlreadyReleased",
    "AsyncLockHold",
    "AsyncLocker",
    "AsyncTable",
    "BadEpoch",
    "BadLockRequest",
    "FencesUsedUp",
    "Grant",
    "Held",
    "LimitReached",
    "Limits",
    "Lock",
    "LockError",
    "LockHeld",
    "LockHold",
    "LockLost",
    "LockUnavailable",
    "LockUnknown",
    "Locker",
    "Locks",
    "NoName",
    "NotHeld",
    "NotRebuilt",
    "NotTheSpeaker",
    "Request",
    "Table",
    "TakenOver",
    "lease",
    "local_held",
    "speaker_table",
]
