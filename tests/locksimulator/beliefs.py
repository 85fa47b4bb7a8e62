"""What clients may believe: that they hold a lock, until their own count of its lease ends or they let go."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from schedules.history import Violation


@dataclass(slots=True)
class Belief:
    """A client's belief to hold a lock, until a moment of the schedule's clock."""

    name: str
    id: str
    fence: int
    who: str
    until: float


class Beliefs:
    """The beliefs of all clients. Two of them about one name never overlap, and fences grow from one to the next."""

    def __init__(self) -> None:
        self._held: dict[str, Belief] = {}
        self._fences: dict[str, tuple[int, str]] = {}
        self.released: dict[str, float] = {}  # since when it is known that a lock, by its id, was released

    def believe(self, belief: Belief, sent: float, now: float) -> None:
        """Note that a client which asked at some moment was granted a lock, or the one that it had again."""
        before = self._held.get(belief.name)
        if before is not None and before.who != belief.who and before.until > now:
            raise Violation(f"{belief} is granted at t={now:.4f}, and {before} lasts")
        if self.released.get(belief.id, inf) < sent:
            raise Violation(f"{belief} is granted, and its release was answered")
        fence, of = self._fences.get(belief.name, (-1, ""))
        if belief.fence <= fence and of != belief.id:
            raise Violation(f"{belief} has no greater fence than {of}, which had {fence}")
        self._fences[belief.name] = belief.fence, belief.id
        self._held[belief.name] = belief

    def let_go(self, belief: Belief) -> None:
        """Note that a client relies on a lock no more."""
        if self._held.get(belief.name) is belief:
            del self._held[belief.name]

    def of(self, name: str, now: float) -> Belief | None:
        """Return who may believe to hold a lock."""
        belief = self._held.get(name)
        return belief if belief is not None and belief.until > now else None
