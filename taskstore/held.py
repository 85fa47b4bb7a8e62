"""A task in a worker's hands: its id changes with each renewal, and it can be lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ..database import Event
from ..database.port import Mutex
from .errors import ClaimLost, UpdateError
from .task import Task


class Flag(Protocol):
    """What is set once and may be waited for."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...


F = TypeVar("F", bound=Flag)


class Held(Generic[F]):
    """A task that a handler has. `task` is what it is now; `lost` is set when it may be somebody else's.

    It is renewed while the handler works, so its id grows. Whoever has the `turn` may change it: who renews it gives the turn
    back, who ends it keeps it, so that nothing is ended under an id that a renewal is about to replace.
    """

    def __init__(self, task: Task, for_s: float, now: Callable[[], float], lost: F, turn: Mutex, free: Event) -> None:
        self.task, self.lost = task, lost
        self.turn, self.free = turn, free
        self.ids = frozenset((task.id,))
        self.in_doubt = False  # a renewal, or an end, went without an answer
        self.ending = False  # the turn is not given back any more
        self._for_s, self._now = for_s, now
        self.began_at = now()

    def __repr__(self) -> str:
        return f"<{'lost' if self.lost.is_set() else 'held'} {self.task!r}>"

    @property
    def id(self) -> int:
        """Its id now. In an Outcome, any that it had will do."""
        return self.task.id

    @property
    def group(self) -> str:
        """Its group."""
        return self.task.group

    @property
    def data(self) -> bytes:
        """Its data."""
        return self.task.data

    @property
    def attempt(self) -> int:
        """The number of this attempt: 1 for the first."""
        return self.task.attempt

    @property
    def error(self) -> str:
        """What went wrong the last time."""
        return self.task.error

    @property
    def is_lost(self) -> bool:
        """Tell whether the task may be somebody else's. Its count is asked: who renews may be late to say so."""
        if self._now() >= self.began_at + self._for_s:
            self.lost.set()
        return self.lost.is_set()

    def check(self) -> None:
        """Raise ClaimLost when the task may be somebody else's."""
        if self.is_lost:
            raise ClaimLost

    def is_due(self, ahead_s: float) -> bool:
        """Tell whether it is to be renewed now, when nobody looks again for so long: at a third of the claim at the latest."""
        return not self.lost.is_set() and self._now() + ahead_s >= self.began_at + self._for_s / 3

    def renewed(self, task: Task, began_at: float) -> None:
        """Take a renewal in, which counts from before it was asked for."""
        self.found(task)
        self.began_at, self.in_doubt = began_at, False  # what was under way named an id that is gone

    def found(self, task: Task) -> None:
        """Take in what the task is now."""
        self.task, self.ids = task, self.ids | {task.id}

    def may_be(self, task: Task) -> bool:
        """Tell whether a task is this one after a renewal that was not answered."""
        mine = self.task
        same = (task.group, task.owner, task.data) == (mine.group, mine.owner, mine.data)
        return task.id > mine.id and same and (task.claims, task.attempt, task.error) == (
            mine.claims, mine.attempt, mine.error
        )  # fmt: skip

    def is_named_in(self, error: UpdateError) -> bool:
        """Tell whether an update was refused for this task, and not for others."""
        return self.task.id in (*error.changes, *error.deletes, *error.owned)
