"""The JSON that the lock service and its client exchange: what each asks and answers, and how it is spelled.

A lock: `{"name": "network/blue", "id": "…", "node": "n1", "holder": "job 7", "acquired_at": "…", "expires_at": "…",
"expires_in": "29.9s"}`, and beside these ours: `expires_in_ms`, `fence`, `request`, and where it was just granted or renewed
`waited_ms` and `lasts_ms`: how long it lasts from the moment that the request came in. Between machines a lease travels as
time left: their clocks need not agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

import msgspec

from ..web.problem import ProblemDocument
from .durations import duration, parse_duration
from .errors import (
    AlreadyReleased,
    BadLockRequest,
    FencesUsedUp,
    LimitReached,
    LockError,
    LockHeld,
    LockUnavailable,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    TakenOver,
)
from .lock import Grant, Lock, Request

LOCKS = "/api/cluster/lock"
NODE_LOCKS = "/api/node/name/{node}/lock"
PEER = "/api/peer"
STATUS = "/api/status"
LIST_KIND = "ClusterLockList"
MS = 1000
UNREACHABLE = "node-unreachable"  # of a node that handed a request over and had no answer: it may have been carried out

# What an error is called in the type of a problem document, its status and its title. The first that fits is its own.
PROBLEMS: Mapping[type[LockError], tuple[str, int, str]] = {
    LockHeld: ("lock-held", 409, "Lock held"),
    AlreadyReleased: ("already-released", 409, "Already released"),
    TakenOver: ("taken-over", 409, "Taken over"),
    NotHeld: ("not-held", 404, "Not held"),
    BadLockRequest: ("invalid-body", 400, "Invalid Body"),
    NotTheSpeaker: ("not-the-speaker", 503, "Not the speaker"),
    NotRebuilt: ("not-rebuilt", 503, "Lock table"),
    FencesUsedUp: ("fences-used-up", 503, "Lock table"),
    LimitReached: ("limit-reached", 503, "Lock table"),
    LockUnavailable: ("lock-table", 503, "Lock table"),
}


class LockDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A lock, as the cluster lists it."""

    name: str
    id: str
    node: str
    holder: str = ""
    acquired_at: datetime
    expires_at: datetime
    expires_in: str = ""
    expires_in_ms: int | None = None
    fence: int = 0
    request: str = ""
    waited_ms: int | None = None
    lasts_ms: int | None = None
    again: bool = False

    @classmethod
    def of(cls, lock: Lock, now: float, grant: Grant | None = None) -> Self:
        """Spell a lock, and how it was granted."""
        left_s = lock.left_s(now)
        return cls(
            name=lock.name,
            id=lock.id,
            node=lock.node,
            holder=lock.holder,
            acquired_at=lock.acquired_at,
            expires_at=lock.expires_at,
            expires_in=duration(left_s),
            expires_in_ms=int(left_s * MS),
            fence=lock.fence,
            request=lock.request,
            waited_ms=None if grant is None else int(grant.waited_s * MS),
            lasts_ms=None if grant is None else int(grant.lasts_s * MS),
            again=grant is not None and grant.again,
        )

    @property
    def left_s(self) -> float | None:
        """How long it still lasted when it was sent; None where that was not said."""
        if self.expires_in_ms is not None:
            return self.expires_in_ms / MS
        return parse_duration(self.expires_in) if self.expires_in else None

    @property
    def lease_s(self) -> float:
        """How long its lease is, by the wall clock of who granted it."""
        return (self.expires_at - self.acquired_at).total_seconds()

    def trusted_until(self, sent: float, received: float) -> float:
        """Return until when its holder may trust it, on the clock of `sent` and `received`: the moments of the question."""
        if self.lasts_ms is not None:
            return sent + self.lasts_ms / MS
        left_s = self.left_s
        return max(sent + self.lease_s, received + left_s - 1.0) if left_s is not None else sent + self.lease_s

    def as_lock(self, received: float) -> Lock:
        """Return it as a lock whose lease counts on the clock of `received`."""
        left_s = self.left_s
        until = received + (self.lease_s if left_s is None else left_s)
        shown = self.acquired_at, self.expires_at
        return Lock(self.name, self.id, self.node, self.holder, *shown, until, self.fence, self.request)


class AcquireDocument(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request for a lock. Durations are `lease` and `wait` as Go spells them, or ours in milliseconds, which come first.

    `slice_ms` wants an answer after so long, be it 202: the request waits on, and keeps its place in line for a moment, so
    that it can be asked again under its `request` id.
    """

    name: str = ""
    holder: str = ""
    lease: str = ""
    wait: str = ""
    node: str = ""
    request: str = ""
    lease_ms: int | None = None
    wait_ms: int | None = None
    slice_ms: int | None = None

    def as_request(self) -> Request:
        """Return the request. Raises BadLockRequest."""
        wait_s = seconds(self.wait_ms, self.wait)
        lease_s = seconds(self.lease_ms, self.lease)
        return Request(self.name, self.node, self.holder, lease_s, wait_s, self.request)


class RenewDocument(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request to count a lock's lease anew, from now."""

    name: str = ""
    id: str = ""
    lease: str = ""
    lease_ms: int | None = None

    @property
    def lease_s(self) -> float:
        """The new lease. Raises BadLockRequest."""
        return seconds(self.lease_ms, self.lease)


class LockList(msgspec.Struct, kw_only=True):
    """Locks, by name."""

    kind: str = LIST_KIND
    items: list[LockDocument]


class WaitingDocument(msgspec.Struct, kw_only=True):
    """A request that waits on: its place in line is kept for `kept_ms`."""

    waiting: bool = True
    kept_ms: int


class LockProblemDocument(ProblemDocument, kw_only=True, omit_defaults=True):
    """A problem with a lock. `lock` is the holder's, where somebody else has it, and `ahead` how many stood in line before."""

    lock: LockDocument | None = None
    ahead: int = 0


def seconds(ms: int | None, text: str) -> float:
    """Return a duration that was given in milliseconds or as a text. Raises BadLockRequest."""
    return parse_duration(text) if ms is None else ms / MS
