"""A client of the lock service: the names of every locker, over HTTP, through whichever node of the cluster answers.

    with LockClient("http://n1:8049,http://n2:8049") as locks, locks.hold("network/blue", wait_s=60) as hold:
        change_it(fence=hold.fence)  # and stop where hold.lost is set

A lost answer changes nothing: each request has an id, under which it is repeated, or taken back. A hold is renewed in the
background, and trusted no longer than its lease surely lasts, counted from before the request left.
"""

from __future__ import annotations

from .client import URL, AsyncLockClient, LockClient
from .errors import BadLockAnswer, ForkedLockClient, LockAccessDenied, LockClientClosed, ServiceUnreachable

__all__ = [
    "URL",
    "AsyncLockClient",
    "BadLockAnswer",
    "ForkedLockClient",
    "LockAccessDenied",
    "LockClient",
    "LockClientClosed",
    "ServiceUnreachable",
]
