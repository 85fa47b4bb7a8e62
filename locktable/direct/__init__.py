"""Locks straight in the database, with no service between: each is a semaphore of one slot.

What is promised is what a semaphore promises: one holder at a time, first come, first served across processes, a lease that
ends by itself, a fence that only grows for a name, unknown outcomes settled. What breaks the promise: see
`slotkeeper.semaphore`. A lock's name stays in the database once it was used.

>>> from slotkeeper import database, schema
>>> from slotkeeper.locktable import LockHeld
>>> from slotkeeper.locktable.direct import DirectLocks
>>> store = database.open_store("sqlite:///:memory:")
>>> _ = schema.setup(store)
>>> with DirectLocks(store, node="n1") as locks:
...     with locks.hold("network/blue", holder="job 7", lease_s=60) as hold:
...         try:
...             locks.acquire("network/blue", holder="job 8")
...         except LockHeld as held:
...             held.lock.holder, held.lock.fence == hold.fence
...     locks.locks()
('job 7', True)
[]
>>> store.close()
"""

from __future__ import annotations

from .client import AsyncDirectLocks, DirectLocks
from .core import cluster_id

__all__ = ["AsyncDirectLocks", "DirectLocks", "cluster_id"]
