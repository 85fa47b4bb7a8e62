"""An operation on its way through a bucket, and who waits for its answer."""

from __future__ import annotations

from ..database import Port
from .operations import Answer, Operation
from .planned import Ask, Hold
from .state import State


class Call:
    """An operation and who waits for its answer. Whoever takes `claim` decides: the leader sends it, or its caller gives up.

    `deadline` is for the database's answer, `stand_until` for standing in line; both on the port's clock.
    """

    __slots__ = (
        "abandoned",
        "alone",
        "answer",
        "arrived",
        "attended",
        "blocked",
        "claim",
        "deadline",
        "error",
        "event",
        "gives_back",
        "operation",
        "stand_until",
        "stood",
        "ticket",
        "tried",
        "unsure",
    )

    def __init__(self, port: Port, operation: Operation, deadline: float, stand_until: float | None = None) -> None:
        self.operation, self.deadline, self.arrived = operation, deadline, port.now()
        self.stand_until = deadline if stand_until is None else stand_until
        self.event, self.claim = port.event(), port.mutex()
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.ticket: int | None = None  # set while it stands in line
        self.stood = False  # it stands in line, or has, or may have
        self.attended = True  # somebody waits for it, and can lead
        self.abandoned = False  # its caller is gone, and nothing of it is to be undone
        self.unsure = False  # an attempt of it may have applied
        self.tried: set[Hold] = set()  # the holds that such attempts may have granted
        self.gives_back: tuple[int, int] | None = None  # the token and fence of a hold that nobody knows of
        self.alone = False  # the server rejected a batch that it was in
        self.blocked = 0

    @property
    def done(self) -> bool:
        """Tell whether it is answered, one way or the other, or nobody wants an answer any more."""
        return self.answer is not None or self.error is not None or self.abandoned

    def abandon(self) -> None:
        """Send it no more. A renewal that came behind a longer one would shorten a lease that its owner counts on."""
        self.attended, self.abandoned = False, True

    def succeed(self, answer: Answer) -> None:
        """Answer it."""
        self.settle(answer)
        self.event.set()

    def settle(self, answer: Answer) -> None:
        """Answer it, and let its caller be woken later."""
        self.answer, self.ticket = answer, None

    def fail(self, error: Exception) -> None:
        """Answer it with an error."""
        self.error, self.ticket = error, None
        self.event.set()

    def asked(self, state: State) -> Ask:
        """Return it as a plan sees it. Only a serial reading proves what it does not show."""
        fresh = state.as_of >= self.arrived and state.serial
        return Ask(self.operation, fresh, self.unsure, frozenset(self.tried), self.stood)
