"""What a lock service is asked, and what its answers mean."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TypeVar

import msgspec

from ...web.caller import Answer, Params
from .. import wire
from ..errors import (
    AlreadyReleased,
    BadLockRequest,
    LockError,
    LockHeld,
    LockUnavailable,
    NoName,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    TakenOver,
)
from ..lock import Request
from ..wire import MS, UNREACHABLE, AcquireDocument, LockProblemDocument, RenewDocument
from .errors import BadLockAnswer, LockAccessDenied

T = TypeVar("T")
FOREVER_S = 1e9
GATEWAY = (502, 504)  # said by who stands between, and does not know what became of it


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `takes_s` is how long the service may let it wait on purpose."""

    method: str
    path: str
    body: bytes | None = None
    params: Params = ()
    takes_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that was answered, and when it was asked and answered, on the caller's clock."""

    answer: Answer
    sent: float
    received: float

    @property
    def is_busy(self) -> bool:
        """Tell whether the service does nothing now, and may soon."""
        return self.answer.status in (429, 503)

    @property
    def is_about_another(self) -> bool:
        """Tell whether a proxy, or a node that handed it over, says that it had no answer: it may have been carried out."""
        if self.answer.is_problem:
            said = _decoded(self.answer.body, LockProblemDocument)
            return said is not None and said.name == UNREACHABLE
        return self.answer.status in GATEWAY

    def read(self, kind: type[T]) -> T:
        """Return the document of an answer. Raises BadLockAnswer."""
        found = _decoded(self.answer.body, kind)
        if found is None:
            raise _misread(self.answer)
        return found

    def refusal(self, *, name: str = "", some_id: str = "") -> LockError:
        """Return what the answer says went wrong. `some_id` is what was asked for: an id, or the id of a request."""
        said = _decoded(self.answer.body, LockProblemDocument) if self.answer.is_problem else None
        if said is None and self.is_busy:  # who stands between has no node to ask
            return LockUnavailable(f"{LockUnavailable.__doc__} (status {self.answer.status})")
        if said is None:
            return _misread(self.answer)
        return _error(said, self.received, name, some_id)


def acquire(request: Request, left_s: float, slice_s: float) -> Question:
    """Ask for a lock; where a slice is shorter than what is left of the wait, for an answer within it."""
    document = AcquireDocument(
        name=request.name,
        holder=request.holder,
        request=request.request,
        lease_ms=_ms(request.lease_s),
        wait_ms=_ms(left_s),
        slice_ms=_ms(slice_s) if slice_s < left_s else None,
    )
    return Question("POST", wire.LOCKS, msgspec.json.encode(document), takes_s=slice_s)


def renew(name: str, lock_id: str, lease_s: float) -> Question:
    """Ask for a lease to be counted anew."""
    document = RenewDocument(name=name, id=lock_id, lease_ms=_ms(lease_s))
    return Question("PUT", wire.LOCKS, msgspec.json.encode(document))


def release(name: str, lock_id: str, request: str) -> Question:
    """Give a lock back, by its id or its request's."""
    named = (("id", lock_id), ("request", request))
    return Question("DELETE", wire.LOCKS, params=(("name", name), *((key, value) for key, value in named if value)))


def locks() -> Question:
    """Ask what is held in the cluster."""
    return Question("GET", wire.LOCKS)


def status() -> Question:
    """Ask how a node sees the cluster."""
    return Question("GET", wire.STATUS)


def _ms(seconds: float) -> int:
    if isnan(seconds):
        raise BadLockRequest("A lease and a wait are numbers of seconds.")
    return int(max(-1.0, min(seconds, FOREVER_S)) * MS)


def _error(said: LockProblemDocument, received: float, name: str, some_id: str) -> LockError:
    match said.name:
        case "lock-held" if said.lock is not None:
            return LockHeld(said.lock.as_lock(received), ahead=said.ahead)
        case "not-held":
            return NotHeld(name, some_id)
        case "already-released":
            return AlreadyReleased(name, some_id)
        case "taken-over":
            return TakenOver(name, some_id)
        case "not-the-speaker":
            return NotTheSpeaker(said.detail.partition(" speaks")[0])
        case "not-rebuilt":
            return NotRebuilt()
    if said.status in (401, 403):
        return LockAccessDenied(f"{LockAccessDenied.__doc__} ({said.detail})")
    if said.status in (429, 503):
        return LockUnavailable(said.detail)
    if said.status in (404, 405) or said.status >= 500:
        return BadLockAnswer(f"{BadLockAnswer.__doc__} ({said.status}: {said.detail})")
    return NoName() if said.detail == NoName.__doc__ else BadLockRequest(said.detail)


def _misread(answer: Answer) -> BadLockAnswer:
    told = f"(status {answer.status}, {answer.headers.get('content-type', 'no content type')})"
    return BadLockAnswer(f"{BadLockAnswer.__doc__} {told}")


def _decoded(body: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeError):
        return None
