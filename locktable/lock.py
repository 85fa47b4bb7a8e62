"""What a lock is, what is asked for one, and what is granted. A lease counts on a clock that only goes forward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

DEFAULT_LEASE_S = 30.0
MAX_LEASE_S = 600.0


class Moment(NamedTuple):
    """A moment: `now` on the monotonic clock, which decides, and `wall_ms` on the wall clock, which is shown."""

    now: float
    wall_ms: int

    def wall(self, after_s: float = 0.0) -> datetime:
        """Return the wall clock's time some seconds later."""
        return datetime.fromtimestamp(self.wall_ms / 1000, UTC) + timedelta(seconds=after_s)


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that is held, or was.

    `node` is where its holder asked for it. Its lease ends at `until`, on the monotonic clock of the process that has this
    value; `acquired_at` and `expires_at` are for people. `fence` only grows for a name: whatever the lock guards may refuse
    a smaller one. `request` is the id that the client gave its request, if it did.
    """

    name: str
    id: str
    node: str
    holder: str
    acquired_at: datetime
    expires_at: datetime
    until: float
    fence: int = 0
    request: str = ""

    @property
    def expires_text(self) -> str:
        """The moment its lease ends, for people (RFC 3339)."""
        return self.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def left_s(self, now: float) -> float:
        """Return how many seconds of its lease are left."""
        return max(0.0, self.until - now)

    def has_lapsed(self, now: float) -> bool:
        """Tell whether its lease has ended."""
        return self.until <= now

    def lasting(self, lease_s: float, at: Moment) -> Self:
        """Return it with its lease counted anew. No renewal shortens a lease: it may come late."""
        until = at.now + lease_s
        return self if until <= self.until else replace(self, until=until, expires_at=at.wall(lease_s))

    def through(self, node: str) -> Self:
        """Return it as held through `node`, where that is known."""
        return self if node in ("", self.node) else replace(self, node=node)


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a lock. `request` is an id of the client's own: repeated under it, it means the same as one."""

    name: str
    node: str = ""
    holder: str = ""
    lease_s: float = 0.0
    wait_s: float = 0.0
    request: str = ""

    def granted(self, lock_id: str, fence: int, at: Moment) -> Lock:
        """Return the lock that grants it."""
        lease_s = lease(self.lease_s)
        shown = at.wall(), at.wall(lease_s)
        return Lock(self.name, lock_id, self.node, self.holder, *shown, at.now + lease_s, fence, self.request)


@dataclass(frozen=True, slots=True)
class Grant:
    """A lock granted or renewed. `waited_s` is how long the request stood in line; `again` tells that it had the lock before.

    `lasts_s` counts from the moment the request came in: the holder may trust its lease that long from before it asked.
    """

    lock: Lock
    waited_s: float = 0.0
    lasts_s: float = 0.0
    again: bool = False


def lease(asked_s: float) -> float:
    """Return the lease that is given: 30 s to who asks for none, 10 minutes at most."""
    return DEFAULT_LEASE_S if asked_s <= 0 else min(asked_s, MAX_LEASE_S)
