"""What a witness keeps: copies of what the clients of a speaker's own instance hold, for the next speaker to recall.

A copy has an id of its own, which the speaker's horizon row names once the copy is whole. It only grows, but for locks that
were released or have ended; and it is given up rather than begun anew: what is not there is waited for, as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..held import Held
from ..lock import Lock
from ..remembered import Remembered
from .errors import NoCopy
from .messages import Item

MOST_COPIES = 8
MOST_REMEMBERED = 1_000


class Copies:
    """Copies by their ids. Of more than a few, the oldest is given up. `now` is the clock that leases count on."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._copies: dict[str, Held] = {}
        self._given_up = Remembered(MOST_REMEMBERED)

    def add(self, copy: str, locks: Iterable[Lock], *, begins: bool) -> None:
        """Add locks to a copy, which is made where they are its first. Raises NoCopy where it is not here."""
        held = self._copies[copy] if copy in self._copies else self._begun(copy, begins=begins)
        for lock in locks:
            held.add(lock)

    def of(self, copy: str) -> list[Lock]:
        """Return what is in a copy. Raises NoCopy."""
        if copy not in self._copies:
            raise NoCopy
        return self._copies[copy].locks()

    def let_go(self, item: Item) -> None:
        """Forget a lock that was released."""
        for held in self._copies.values():
            held.let_go(item.name, item.id, item.request)

    def _begun(self, copy: str, *, begins: bool) -> Held:
        # A first message that came twice, and late, must not pass for a copy that was given up since.
        if not begins or self._given_up.has("", copy, self._now()):
            raise NoCopy
        held = self._copies[copy] = Held(self._now)
        if len(self._copies) > MOST_COPIES:
            oldest = next(iter(self._copies))
            del self._copies[oldest]
            self._given_up.add("", oldest, self._now())
        return held
