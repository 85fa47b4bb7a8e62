"""What can go wrong with a semaphore, what it means, and what to do next."""

from __future__ import annotations

from ..errors import SlotkeeperError, default_message


class SemaphoreError(SlotkeeperError):
    """Something went wrong with a semaphore."""


class BadName(SemaphoreError, ValueError):
    """The name is none that a semaphore can have."""

    def __init__(self, semaphore: str, reason: str) -> None:
        self.semaphore, self.reason = semaphore, reason
        super().__init__(f"{semaphore[:40]!r} is no name for a semaphore: {reason}.")


class BadLease(SemaphoreError, ValueError):
    """The lease is none that a hold can have: a whole number of seconds, at least 2, or None."""


class NoSuchSemaphore(SemaphoreError):
    """There is no semaphore of this name in this domain. Create it first, and check the domain."""

    def __init__(self, semaphore: str) -> None:
        self.semaphore = semaphore
        super().__init__(f"Semaphore {semaphore!r}: {default_message(NoSuchSemaphore)}")


class SemaphoreExists(SemaphoreError):
    """A semaphore of this name exists with other parameters. Nothing was changed; use it as it is, or another name."""

    def __init__(self, semaphore: str, *, size: int, bucket_size: int) -> None:
        self.semaphore, self.size, self.bucket_size = semaphore, size, bucket_size
        super().__init__(
            f"Semaphore {semaphore!r} exists with size {size} and bucket size {bucket_size}. Nothing was changed;"
            " use it as it is, or another name."
        )


class SemaphoreHeld(SemaphoreError):
    """The semaphore has holders, so it was not deleted. Release them, or force the deletion."""

    def __init__(self, semaphore: str, *, held: int) -> None:
        self.semaphore, self.held = semaphore, held
        super().__init__(
            f"Semaphore {semaphore!r} has {held} {'holder' if held == 1 else 'holders'}, so it was not deleted."
            " Release them, or force the deletion."
        )


class BeingDeleted(SemaphoreError):
    """Somebody is deleting this semaphore, or died at it. Wait for it, or run the deletion again: it goes on."""

    def __init__(self, semaphore: str) -> None:
        self.semaphore = semaphore
        super().__init__(f"Semaphore {semaphore!r}: {default_message(BeingDeleted)}")


class RowsDisagree(SemaphoreError):
    """An owner's row and the token rows tell different things, and no batch of ours leaves that behind. Look at the rows:
    another program, or a plain write, has changed them.
    """

    def __init__(self, semaphore: str, owner_id: str) -> None:
        self.semaphore, self.owner_id = semaphore, owner_id
        super().__init__(f"Semaphore {semaphore!r}, owner {owner_id!r}: {default_message(RowsDisagree)}")


class StaleFence(SemaphoreError):
    """The owner's hold is not the one with this fence: that one has ended. Nothing was changed; stop what relies on it."""

    def __init__(self, semaphore: str, owner_id: str, *, fence: int | None, current: int | None) -> None:
        self.semaphore, self.owner_id, self.fence, self.current = semaphore, owner_id, fence, current
        now = "it holds nothing" if current is None else f"its hold has fence {current}"
        super().__init__(
            f"Semaphore {semaphore!r}, owner {owner_id!r}: the hold with fence {fence} has ended, {now}."
            " Nothing was changed; stop what relies on it."
        )


class NotAcquired(SemaphoreError, TimeoutError):
    """No slot became free in time. Nothing is held and the place in line is given up; try again later."""

    def __init__(self, semaphore: str, owner_id: str, *, waited_s: float, detail: str = "") -> None:
        self.semaphore, self.owner_id, self.waited_s, self.detail = semaphore, owner_id, waited_s, detail
        what = f"no slot became free in {waited_s:g} s" if waited_s else "no slot is free"
        whole = f"Semaphore {semaphore!r}, owner {owner_id!r}: {what}. Nothing is held; try again later."
        super().__init__(f"{what}: {detail}" if detail else whole)


class WaitCancelled(SemaphoreError):
    """Somebody took this owner out of the line while it was waiting. Nothing is held."""

    def __init__(self, semaphore: str, owner_id: str) -> None:
        self.semaphore, self.owner_id = semaphore, owner_id
        super().__init__(f"Semaphore {semaphore!r}, owner {owner_id!r}: {default_message(WaitCancelled)}")


class LeaseLost(SemaphoreError):
    """The lease of this hold has ended: somebody else may hold the slot. Stop the work that it guarded."""

    def __init__(self, semaphore: str, owner_id: str, *, token: int, fence: int) -> None:
        self.semaphore, self.owner_id, self.token, self.fence = semaphore, owner_id, token, fence
        super().__init__(f"Semaphore {semaphore!r}, owner {owner_id!r}, token {token}: {default_message(LeaseLost)}")


class OutcomeUnknown(SemaphoreError):
    """The database did not say in time whether the change took effect. Look before you repeat it."""


class ChangeUnknown(OutcomeUnknown):
    """The database did not say in time whether the semaphore was created or deleted. Do the same again: it goes on."""


class HoldUnknown(OutcomeUnknown):
    """The database did not say in time whether the change took effect. Look before you go on: `token_of(owner)` tells what
    is held, and a later acquire or release by the same owner settles it.
    """

    def __init__(self, semaphore: str, owner_id: str, *, wanted: str) -> None:
        self.semaphore, self.owner_id, self.wanted = semaphore, owner_id, wanted
        super().__init__(f"Semaphore {semaphore!r}, owner {owner_id!r}, {wanted}: {default_message(HoldUnknown)}")
