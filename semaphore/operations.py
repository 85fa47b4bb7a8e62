"""What callers ask of a bucket, and what they are answered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Acquire:
    """Take a slot for an owner: with a lease of `lease_s` seconds, or until released. With `wait`, stand in line for it."""

    owner_id: str
    lease_s: int | None = None
    wait: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Give an owner's slot back. With `fence`, only the hold that has it."""

    owner_id: str
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    """Count an owner's lease anew, or end it being leased. With `fence`, only the hold that has it."""

    owner_id: str
    lease_s: int | None
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Take an owner out of the line."""

    owner_id: str


@dataclass(frozen=True, slots=True)
class Stay:
    """Keep a waiting owner's place: its rows end by their TTL otherwise."""

    owner_id: str


Operation = Acquire | Release | Renew | Cancel | Stay


@dataclass(frozen=True, slots=True)
class Granted:
    """The owner holds `token`. `fence` only grows for a token; `again` tells that it held the token before."""

    token: int
    fence: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class Full:
    """No slot is free for this owner; nothing was changed. `ahead` wait in line."""

    held: int
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Queued:
    """The owner stands in line with this ticket."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Released:
    """The owner's hold of `token` has ended (None: by an earlier attempt of this call)."""

    token: int | None


@dataclass(frozen=True, slots=True)
class NotHeld:
    """The owner holds nothing here; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Stale:
    """The owner's hold has another fence; nothing was changed."""

    token: int
    fence: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """The hold of `token` is counted anew."""

    token: int
    fence: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The owner has left the line (`ticket` is None: it did not stand in it)."""

    ticket: int | None


@dataclass(frozen=True, slots=True)
class Stayed:
    """The owner still stands in line."""


Answer = Granted | Full | Queued | Released | NotHeld | Stale | Renewed | Cancelled | Stayed
