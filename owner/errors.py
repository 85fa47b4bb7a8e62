"""What can be wrong with an owner, and with the question which bucket is its."""

from __future__ import annotations

from ..errors import SlotkeeperError

SHOWN_CHARACTERS = 200


class OwnerIdError(SlotkeeperError, ValueError):
    """A text is not an owner_id, and nothing was done with it. Spell owners with `str(Owner(...))`, never by hand.

    `text` is the whole text, `position` the offset in its UTF-8 bytes where it is wrong, `reason` what is wrong there.
    """

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.text = text
        self.position = position
        self.reason = reason
        super().__init__(f"owner id {_shown(text)} is wrong at byte {position}: {reason}")


class ReservedOwner(OwnerIdError):
    """An owner_id is one that slotkeeper keeps for its own rows (NONE, FREE and their family): a hold stored under it
    would read as a free slot. Give the owner a workflow id, or the run id of a real run.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, 0, "reserved for slotkeeper's own rows, no run can have it")


class OwnerTooLong(OwnerIdError):
    """An owner_id is longer than a row's key should be. Give the workflow or the run a shorter id, its hash for one.

    `size` counts its bytes in UTF-8.
    """

    def __init__(self, text: str, size: int, most: int) -> None:
        self.size = size
        super().__init__(text, most, f"it has {size} bytes, at most {most} can be stored")


class OwnerFieldError(SlotkeeperError, ValueError):
    """An owner cannot have this value in this field, as no owner_id could spell it. Correct the value and try again.

    `field` names the field, `value` is what it was given, `reason` says why it cannot be.
    """

    def __init__(self, field: str, value: str | int, reason: str) -> None:
        self.field = field
        self.value = value
        self.reason = reason
        super().__init__(f"{field} of an owner {reason}")


class NoBucket(SlotkeeperError, ValueError):
    """An owner has no bucket where there are fewer than one. Pass how many the semaphore has: ceil(size / bucket_size).

    `buckets` is the number that was passed.
    """

    def __init__(self, buckets: int) -> None:
        self.buckets = buckets
        super().__init__(f"an owner has no bucket among {buckets}: a semaphore has at least one")


def _shown(text: str) -> str:
    # A refused text can be anything, megabytes too, and this goes into log lines.
    return repr(text) if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]!r}..."
