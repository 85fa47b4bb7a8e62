"""Bounded slots for the owners of a workflow engine.

A *semaphore* has `size` *tokens*, spread over buckets; an *owner* takes one and gives it back, perhaps from another process
on another machine. What is promised: a token has one holder at a time, an owner holds at most one token of a semaphore,
and whatever crashes, stalls or is told nothing, a repeated acquire or release means the same as one. What breaks the
promise: plain writes to the tables, and clients of one keyspace that use different consistency pairs.

>>> from slotkeeper import Client, Owner, database, schema
>>> store = database.open_store("sqlite:///:memory:")
>>> _ = schema.setup(store)
>>> with Client(store) as client:
...     _ = client.create("gpu", size=1)
...     client.try_acquire("gpu", Owner("order:42", "run-1", 7)).token
...     client.try_acquire("gpu", Owner("order:43", "run-1", 1))
...     client.release("gpu", "8:order:42:run-1:7")
1
True
>>> store.close()
"""

from __future__ import annotations

from .bound import AsyncSemaphore, Semaphore
from .client import AsyncClient, Client
from .core import Holder, Standing, Waiting
from .errors import (
    BadLease,
    BadName,
    BeingDeleted,
    ChangeUnknown,
    HoldUnknown,
    LeaseLost,
    NoSuchSemaphore,
    NotAcquired,
    OutcomeUnknown,
    RowsDisagree,
    SemaphoreError,
    SemaphoreExists,
    SemaphoreHeld,
    StaleFence,
    WaitCancelled,
)
from .hold import AsyncHold, Hold
from .layout import BadSize
from .metadata import Description, domain_id

__all__ = [
    "AsyncClient",
    "AsyncHold",
    "AsyncSemaphore",
    "BadLease",
    "BadName",
    "BadSize",
    "BeingDeleted",
    "ChangeUnknown",
    "Client",
    "Description",
    "Hold",
    "HoldUnknown",
    "Holder",
    "LeaseLost",
    "NoSuchSemaphore",
    "NotAcquired",
    "OutcomeUnknown",
    "RowsDisagree",
    "Semaphore",
    "SemaphoreError",
    "SemaphoreExists",
    "SemaphoreHeld",
    "StaleFence",
    "Standing",
    "WaitCancelled",
    "Waiting",
    "domain_id",
]
