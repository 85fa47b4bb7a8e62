"""What callers ask of a store, as values. Times are nanoseconds, durations too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from .record import Record
from .state import State
from .task import Add, Change, Task

T = TypeVar("T")


class Operation(Struct, Generic[T], eq=False):
    """Something to ask for, and what kind of answer it has."""


class Update(Operation[list[Task]]):
    """Add, change and delete tasks, if all that is named exists and may be changed."""

    owner: str
    adds: tuple[Add, ...] = ()
    changes: tuple[Change, ...] = ()
    deletes: tuple[int, ...] = ()
    depends: tuple[int, ...] = ()


class Claim(Operation[Task | None]):
    """Own one available task of some groups for a while."""

    owner: str
    groups: tuple[str, ...]
    for_ns: int
    depends: tuple[int, ...] = ()


class Renew(Operation[Task]):
    """Own a task of one's own for longer."""

    owner: str
    task_id: int
    for_ns: int


class Release(Operation[Task]):
    """Give a task of one's own back: unharmed, or with what went wrong."""

    owner: str
    task_id: int
    after_ns: int = 0
    error: str | None = None


class Look(Operation[T]):
    """Look at the state; `see` gets it with the time, and changes nothing."""

    see: Callable[[State, int], T]


class Freeze(Operation[tuple[int, list[Record]]]):
    """Draw a line in the journal, and get records that stand for all above it."""
