"""What nodes say to one another. A lease travels as the time that is left: clocks need the same rate, not the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import msgspec

from ..errors import (
    AlreadyReleased,
    BadLockRequest,
    LockError,
    LockHeld,
    LockUnavailable,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    TakenOver,
)
from ..lock import Grant, Lock, Request
from .errors import Outdated
from .rows import Peer


class _Said(msgspec.Struct, frozen=True, tag_field="says", kw_only=True):
    """Anything that is said."""


class Told(msgspec.Struct, frozen=True):
    """A lock as another process is told of it. Its `until` is the teller's, and means nothing here."""

    lock: Lock
    left_s: float

    @classmethod
    def of(cls, lock: Lock, now: float) -> Self:
        """Tell of a lock."""
        return cls(lock, lock.left_s(now))

    def here(self, now: float) -> Lock:
        """Return the lock on the clock of whoever is told now: its way here makes it last a little longer, never shorter."""
        return replace(self.lock, until=now + self.left_s)


class Acquire(_Said, frozen=True, tag="acquire"):
    """A client of `asker` wants a lock."""

    asker: Peer
    request: Request


class Renew(_Said, frozen=True, tag="renew"):
    """A client of `asker` wants a lease counted anew."""

    asker: Peer
    name: str
    id: str
    lease_s: float


class Release(_Said, frozen=True, tag="release"):
    """A client of `asker` has let go of a lock, named by its id or by its request's."""

    asker: Peer
    name: str
    id: str = ""
    request: str = ""


class Item(msgspec.Struct, frozen=True):
    """What is to be forgotten."""

    name: str
    id: str = ""
    request: str = ""


class Forget(_Said, frozen=True, tag="forget"):
    """These locks were released: whoever hears of them shall bring none of them back."""

    items: tuple[Item, ...]


class Rebuild(_Said, frozen=True, tag="rebuild"):
    """`speaker` speaks since this epoch, and asks what may be held. Who answers hands out no grant of an older epoch."""

    epoch: int
    speaker: Peer


class Leave(_Said, frozen=True, tag="leave"):
    """`asker` stops, hands out nothing more, and leaves what its clients hold to the speaker."""

    asker: Peer
    held: tuple[Told, ...]


class Copy(_Said, frozen=True, tag="copy"):
    """`asker` speaks in this epoch, and its clients hold these: keep them in a copy, until a later speaker recalls it."""

    asker: Peer
    epoch: int
    copy: str
    held: tuple[Told, ...]
    begins: bool = False


class Recall(_Said, frozen=True, tag="recall"):
    """`speaker` speaks since this epoch: what is in this copy? Who answers adds nothing to it any more, as with `Rebuild`."""

    epoch: int
    speaker: Peer
    copy: str


class Vacant(_Said, frozen=True, tag="vacant"):
    """Whoever spoke in this epoch has stopped: the seat is free."""

    epoch: int


class ListLocks(_Said, frozen=True, tag="list"):
    """What is held in the cluster?"""


class ListNode(_Said, frozen=True, tag="list_node"):
    """What do you hold, and what did you grant?"""


class Given(_Said, frozen=True, tag="given"):
    """A lock granted or renewed, under an epoch."""

    epoch: int
    told: Told
    waited_s: float
    lasts_s: float
    again: bool

    @classmethod
    def of(cls, grant: Grant, epoch: int, now: float) -> Self:
        """Tell of a grant."""
        return cls(
            epoch=epoch,
            told=Told.of(grant.lock, now),
            waited_s=grant.waited_s,
            lasts_s=grant.lasts_s,
            again=grant.again,
        )

    def grant(self, asked_at: float) -> Grant:
        """Return the grant on the clock of who asked.

        Its lease counts from before it was asked for, like the client's own count, which began earlier. Counted from when the
        answer came, a lease that has ended could come up again after a long way, or where its node stood still meanwhile.
        """
        lock = replace(self.told.lock, until=asked_at + self.lasts_s)
        return Grant(lock, self.waited_s, self.lasts_s, self.again)


class Holdings(_Said, frozen=True, tag="holdings"):
    """What an instance's clients hold, and what it granted while it spoke."""

    peer: Peer
    held: tuple[Told, ...]
    granted: tuple[Told, ...]


class Listed(_Said, frozen=True, tag="listed"):
    """Locks, and the time that is left of each."""

    locks: tuple[Told, ...]


class Done(_Said, frozen=True, tag="done"):
    """It is done."""


class Refusal(_Said, frozen=True, tag="refusal"):
    """It was refused: an error, as it travels."""

    error: str
    text: str = ""
    name: str = ""
    id: str = ""
    told: Told | None = None
    number: int = 0

    @classmethod
    def of(cls, error: LockError, now: float) -> Refusal:
        """Tell of an error."""
        kind, text = type(error).__name__, str(error)
        if isinstance(error, LockHeld):
            return cls(error=kind, told=Told.of(error.lock, now), number=error.ahead)
        if isinstance(error, NotHeld):
            return cls(error=kind, name=error.name, id=error.id)
        if isinstance(error, AlreadyReleased | TakenOver):
            return cls(error=kind, name=error.name, id=error.request)
        if isinstance(error, NotTheSpeaker):
            return cls(error=kind, name=error.speaker)
        if isinstance(error, Outdated):
            return cls(error=kind, number=error.epoch)
        return cls(error=BadLockRequest.__name__ if isinstance(error, BadLockRequest) else kind, text=text)

    def raised(self, now: float) -> LockError:
        """Return the error on the clock of whoever is told now."""
        match self.error:
            case "LockHeld" if self.told is not None:
                return LockHeld(self.told.here(now), ahead=self.number)
            case "NotHeld":
                return NotHeld(self.name, self.id)
            case "AlreadyReleased":
                return AlreadyReleased(self.name, self.id)
            case "TakenOver":
                return TakenOver(self.name, self.id)
            case "NotTheSpeaker":
                return NotTheSpeaker(self.name)
            case "NotRebuilt":
                return NotRebuilt()
            case "Outdated":
                return Outdated(self.number)
            case "BadLockRequest":
                return BadLockRequest(self.text)
        return LockUnavailable(self.text)


Message = Acquire | Renew | Release | Forget | Rebuild | Leave | Copy | Recall | Vacant | ListLocks | ListNode
Answer = Given | Holdings | Listed | Done | Refusal
