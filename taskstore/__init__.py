"""A task store: tasks in memory, changed by whole transactions, and journalled so that no crash loses an answered one.

A *task* is immutable: every change makes a new one with a new id, and no id ever comes back, so a task that exists is
exactly the one that was seen. An *update* adds, changes and deletes tasks, all or nothing, if all that it names is still
there and nobody else owns it. A *claim* owns one available task of some groups for a while: at random, the oldest most
likely, and none is passed over for ever. Who is slow finds the id gone, and drops its work.

What is promised of a strict store: an answer means that the journal has it; what two callers are told fits one order. Of an
opportunistic one: the same but for the last `lag_s` seconds before a crash. What breaks the promise: a journal that
another program writes to, and a disk or a cluster that forgets what it has acknowledged.

>>> from slotkeeper.taskstore import Add, TaskStore
>>> with TaskStore("memory") as store:
...     mail = store.update("me", adds=[Add("mail", b"to: you")])
...     task = store.claim("worker 1", "mail", for_s=30)
...     store.update("worker 1", adds=[Add("sent", task.data)], deletes=[task.id])[0].data, store.groups()
(b'to: you', ['sent'])
"""

from __future__ import annotations

from .clock import Clock
from .errors import (
    BadJournal,
    BadWorker,
    ClaimLost,
    Fenced,
    Interrupted,
    JournalDamaged,
    JournalError,
    JournalFailed,
    JournalFull,
    JournalLocked,
    OutcomeUnknown,
    Quarantine,
    StoreBusy,
    StoreClosed,
    TaskStoreError,
    UpdateError,
)
from .journal import Journal
from .memory import MemoryJournal
from .outcome import Outcome
from .stats import GroupStats, Stats
from .store import AsyncTaskStore, TaskStore
from .task import Add, Change, Task
from .worker import AsyncHeldTask, AsyncWorker, HeldTask, Worker

__all__ = [
    "Add",
    "AsyncHeldTask",
    "AsyncTaskStore",
    "AsyncWorker",
    "BadJournal",
    "BadWorker",
    "Change",
    "ClaimLost",
    "Clock",
    "Fenced",
    "GroupStats",
    "HeldTask",
    "Interrupted",
    "Journal",
    "JournalDamaged",
    "JournalError",
    "JournalFailed",
    "JournalFull",
    "JournalLocked",
    "MemoryJournal",
    "Outcome",
    "OutcomeUnknown",
    "Quarantine",
    "Stats",
    "StoreBusy",
    "StoreClosed",
    "Task",
    "TaskStore",
    "TaskStoreError",
    "UpdateError",
    "Worker",
]
