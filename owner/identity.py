"""Who asks for a slot, and who may not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from .errors import OwnerFieldError, OwnerTooLong, ReservedOwner
from .spelling import INT64, spell, take_apart

RESERVED_RUN_ID = "30000000-0000-f000-f000-000000000000"

LONGEST_OWNER_ID = 4096  # bytes: a few of them still fit into one batch, and Cassandra refuses keys over 64 KiB

# Written out, not computed: they are part of stored primary keys, whatever becomes of the code that spells them.
NONE = "0::30000000-0000-f000-f000-000000000000:-1"
FREE = "0::30000000-0000-f000-f000-000000000000:-2"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who asks for a slot: one hold of one run of one workflow.

    `workflow_id` and `run_id` are any text that UTF-8 can encode, the empty one too; `hold_id` is a signed 64-bit
    number. `str(owner)` is the owner_id, and `Owner.parse` reads it back. Raises OwnerFieldError for a value that no
    owner_id can spell, TypeError for one of another type.
    """

    workflow_id: str
    run_id: str
    hold_id: int
    _text: str = field(default="", init=False, repr=False, compare=False)  # once it was asked for: every call does

    def __post_init__(self) -> None:
        _check_text("workflow_id", self.workflow_id)
        _check_text("run_id", self.run_id)
        _check_hold_id(self.hold_id)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an owner_id. Raises OwnerIdError where `text` is not the one spelling of an owner."""
        if not isinstance(text, str):
            raise TypeError(f"an owner_id is a str, not {type(text).__name__}")
        return cls(*take_apart(text))

    def __str__(self) -> str:
        if not self._text:
            object.__setattr__(self, "_text", spell(self.workflow_id, self.run_id, self.hold_id))
        return self._text

    @property
    def reserved(self) -> bool:
        """Tell whether this is NONE, FREE or another owner that slotkeeper's own rows name and no run can be."""
        return self.workflow_id == "" and self.run_id == RESERVED_RUN_ID and self.hold_id < 0


def owner_id_to_store(owner: Owner | str) -> str:
    """Return the owner_id under which a hold of `owner`, an Owner or an owner_id, may be stored.

    Raises ReservedOwner for an owner of slotkeeper's own rows, OwnerTooLong, OwnerIdError for a text that is no owner_id.
    """
    who = owner if isinstance(owner, Owner) else Owner.parse(owner)
    if who.reserved:
        raise ReservedOwner(str(who))
    text = owner if type(owner) is str else str(who)  # which is the one spelling, once it could be read
    if 4 * len(text) > LONGEST_OWNER_ID and (size := len(text.encode())) > LONGEST_OWNER_ID:
        raise OwnerTooLong(text, size, LONGEST_OWNER_ID)
    return text


def _check_text(field: str, value: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{field} of an owner is a str, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise OwnerFieldError(field, value, f"has a lone surrogate at character {error.start}") from error


def _check_hold_id(value: int) -> None:
    # A bool is an int to Python, and True would be stored as the owner of hold 1.
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"hold_id of an owner is an int, not {type(value).__name__}")
    if value not in INT64:
        raise OwnerFieldError("hold_id", value, "overflows int64")
