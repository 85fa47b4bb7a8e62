"""An operation on its way through the engine, and who waits for its answer."""

from __future__ import annotations

from typing import Any

from ..database import Event
from .operations import Operation


class Call:
    """An operation. `deadline` is for its answer, `stand_until` for standing in line; both on the port's clock."""

    __slots__ = (
        "answer",
        "deadline",
        "done",
        "error",
        "event",
        "last_look",
        "left",
        "number",
        "operation",
        "stand_until",
        "standing",
    )

    def __init__(self, operation: Operation[Any], number: int, deadline: float, stand_until: float) -> None:
        self.operation, self.number = operation, number
        self.deadline, self.stand_until = deadline, stand_until
        self.answer: Any = None
        self.error: Exception | None = None
        self.done = False
        self.standing = False  # in line
        self.last_look = False  # its patience has ended: it looks once more, and stands no longer
        self.left = False  # nobody waits for it any more
        self.event: Event | None = None  # made by who has to wait: most have not

    def finish(self, answer: Any, error: Exception | None = None) -> None:
        """Answer it, or fail it."""
        self.answer, self.error = answer, error
        self.done = True
        self.wake()

    def wake(self) -> None:
        """Let its caller look again."""
        if self.event is not None:
            self.event.set()
