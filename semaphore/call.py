"""An operation on its way through a bucket, and who waits for its answer."""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from ..database import Port
from ..database.port import Event, Mutex
from .operations import Answer, Operation
from .planned import Ask, Hold
from .state import State


class Call(Struct, eq=False):
    """An operation and who waits for its answer. Whoever takes `claim` decides: the leader sends it, or its caller gives up.

    `deadline` is for the database's answer, `stand_until` for standing in line; both on the port's clock.
    """

    operation: Operation
    deadline: float
    stand_until: float
    arrived: float
    event: Event
    claim: Mutex
    answer: Answer | None = None
    error: Exception | None = None
    ticket: int | None = None  # set while it stands in line
    stood: bool = False  # it stands in line, or has, or may have
    attended: bool = True  # somebody waits for it, and can lead
    abandoned: bool = False  # its caller is gone, and nothing of it is to be undone
    unsure: bool = False  # an attempt of it may have applied
    tried: frozenset[Hold] = frozenset()  # the holds that such attempts may have granted
    gives_back: tuple[int, int] | None = None  # the token and fence of a hold that nobody knows of
    alone: bool = False  # the server rejected a batch that it was in
    blocked: int = 0

    @classmethod
    def begun(cls, port: Port, operation: Operation, deadline: float, stand_until: float | None = None) -> Self:
        """Return a call that begins now."""
        stand_until = deadline if stand_until is None else stand_until
        return cls(operation, deadline, stand_until, port.now(), port.event(), port.mutex())

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

    def may_have_granted(self, hold: Hold) -> None:
        """Note a hold that an attempt of it may have granted."""
        self.tried |= {hold}

    def asked(self, state: State) -> Ask:
        """Return it as a plan sees it. Only a serial reading proves what it does not show."""
        fresh = state.as_of >= self.arrived and state.serial
        return Ask(self.operation, fresh, self.unsure, self.tried, self.stood)
