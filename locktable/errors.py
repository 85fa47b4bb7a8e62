"""What can go wrong with a lock, what it means, and what to do next."""

from __future__ import annotations

from ..errors import SlotkeeperError, default_message
from .lock import Lock


class LockError(SlotkeeperError):
    """Something went wrong with a lock."""


class LockHeld(LockError):
    """Somebody else holds the lock, and the wait for it has ended.

    `lock` is the holder's as it was last seen; `ahead` tells how many stood in line before this request.
    """

    def __init__(self, lock: Lock, *, ahead: int = 0) -> None:
        self.lock, self.ahead = lock, ahead
        by = f" by {lock.holder}" if lock.holder else ""
        on = f" on {lock.node}" if lock.node else ""
        super().__init__(f"lock {lock.name} is held{by}{on} until {lock.expires_text}")


class LockUnavailable(LockError):
    """Locks cannot be granted now. Nothing was changed; ask again shortly."""


class NotRebuilt(LockUnavailable):
    """the cluster lock table is not rebuilt from the nodes yet"""


class NotTheSpeaker(LockUnavailable):
    """This node does not speak for the cluster. Nothing was changed; ask again."""

    def __init__(self, speaker: str = "") -> None:
        self.speaker = speaker
        super().__init__(f"{speaker} speaks for the cluster: ask again" if speaker else None)


class FencesUsedUp(LockUnavailable):
    """All fences of this epoch are given. Nothing was changed; drop the table and rebuild it with a greater epoch."""


class LimitReached(LockUnavailable):
    """The lock table is full: of locks, or of those who wait. Nothing was changed; ask again later."""

    def __init__(self, what: str, most: int) -> None:
        self.what, self.most = what, most
        super().__init__(f"There are {most} {what} already, and no more may be. Nothing was changed; ask again later.")


class BadLockRequest(LockError, ValueError):
    """The request for a lock is not a proper one. Nothing was changed; correct what the message names."""


class NoName(BadLockRequest):
    """a lock needs a name"""


class BadEpoch(LockError, ValueError):
    """An epoch is a whole number below 2,147,483,648, and never goes back. Nothing was changed."""


class NotHeld(LockError):
    """The lock is not held under this id: it was released, or its lease has ended. What it guarded may be somebody else's."""

    def __init__(self, name: str, lock_id: str) -> None:
        self.name, self.id = name, lock_id
        super().__init__(f"lock {name} is not held under {lock_id}: it was released, or its lease has ended")


class LockLost(LockError):
    """The lease has ended, or could not be renewed in time: the lock may be somebody else's by now. Stop what it guards."""

    def __init__(self, name: str, lock_id: str, *, fence: int = 0) -> None:
        self.name, self.id, self.fence = name, lock_id, fence
        super().__init__(f"lock {name} ({lock_id}, fence {fence}): {default_message(LockLost)}")


class AlreadyReleased(LockError):
    """This request was released, so it is granted no more. Ask with another request id for another grant."""

    def __init__(self, name: str, request: str) -> None:
        self.name, self.request = name, request
        super().__init__(f"lock {name}, request {request}: {default_message(AlreadyReleased)}")


class TakenOver(LockError):
    """A later call with the same request id has taken over this one's place in line, and will get the answer."""

    def __init__(self, name: str, request: str) -> None:
        self.name, self.request = name, request
        super().__init__(f"lock {name}, request {request}: {default_message(TakenOver)}")


class LockUnknown(LockError):
    """Nobody said in time whether the lock was granted, renewed or released. A repeated call under the same request id, or a
    release, settles it; its lease ends it at the latest.
    """

    def __init__(self, name: str, request: str = "") -> None:
        self.name, self.request = name, request
        super().__init__(f"lock {name}: {default_message(LockUnknown)}")
