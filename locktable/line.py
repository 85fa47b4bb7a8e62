"""Those who wait for one lock, in the order they came. A lock that comes free goes to the first, and nobody else is woken."""

from __future__ import annotations

from collections import OrderedDict
from math import inf

from ..database import Event
from .errors import LockError
from .lock import Grant, Lock, Request


class Call:
    """A request on its way, and who waits for its answer. Only who has the table's guard touches it."""

    __slots__ = ("_error", "_grant", "arrived_at", "event", "request", "sleeps_until", "stands_until")

    def __init__(self, request: Request, arrived_at: float) -> None:
        self.request, self.arrived_at = request, arrived_at
        self.stands_until = arrived_at + max(0.0, request.wait_s)
        self.sleeps_until = inf
        self.event: Event | None = None  # made for those who have to wait
        self._grant: Grant | None = None
        self._error: LockError | None = None

    @property
    def is_done(self) -> bool:
        """Tell whether it is answered."""
        return self._grant is not None or self._error is not None

    @property
    def lock(self) -> Lock | None:
        """The lock that it was granted."""
        return self._grant.lock if self._grant is not None else None

    @property
    def answer(self) -> Grant:
        """What it was answered. Raises what kept it from being granted."""
        if self._error is not None:
            raise self._error
        assert self._grant is not None, "asked for the answer of a call that has none yet"
        return self._grant

    def grant(self, lock: Lock, now: float, *, again: bool = False) -> None:
        """Answer it with a lock."""
        self._grant = Grant(lock, max(0.0, now - self.arrived_at), lock.until - self.arrived_at, again)
        self.wake()

    def fail(self, error: LockError) -> None:
        """Answer it with an error."""
        self._error = error
        self.wake()

    def wake(self) -> None:
        """Let its caller look again."""
        if self.event is not None:
            self.event.set()


class Line:
    """The calls that wait for one lock. A call under a request id takes over the place that an earlier one had under it."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: OrderedDict[str | Call, Call] = OrderedDict()

    def __len__(self) -> int:
        return len(self._calls)

    def join(self, call: Call) -> Call | None:
        """Let a call stand at the end, or where an earlier one stood, which is returned."""
        key = _key(call)
        before = self._calls.get(key)
        self._calls[key] = call
        return before

    def leave(self, call: Call) -> bool:
        """Let a call go. False: it did not stand here any more."""
        if self._calls.get(_key(call)) is not call:
            return False
        del self._calls[_key(call)]
        return True

    def under(self, request: str) -> Call | None:
        """Return the call under a request id."""
        return self._calls.get(request) if request else None

    def first(self) -> Call:
        """Return the first one."""
        return next(iter(self._calls.values()))

    def ahead(self, call: Call) -> int:
        """Return how many stand before a call, or before whoever came now."""
        key = _key(call)
        return next((place for place, other in enumerate(self._calls) if other == key), len(self._calls))

    def calls(self) -> list[Call]:
        """Return everybody, in order."""
        return list(self._calls.values())


def _key(call: Call) -> str | Call:
    return call.request.request or call
