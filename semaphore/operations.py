"""What callers ask of a bucket, and what they are answered."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Acquire:
    """Take a slot for an owner: with a lease of `lease_s` seconds, or until released. With `wait`, stand in line for it."""

    owner_id: str
    lease_s: int | None = None
    wait: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Give an owner's slot back. With `fence`, only the hold that has it.

    With `untold` too, only while nobody else was told of it: it was granted to a caller of this process who is gone.
    """

    owner_id: str
    fence: int | None = None
    untold: bool = False


@dataclass(frozen=True, slots=True)
class Renew:
    """Count an owner's lease anew, or end it being leased. With `fence`, only the hold that has it."""

    owner_id: str
    lease_s: int | None
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Take an owner out of the line. With `keep`, a slot that it was handed meanwhile stays its own, leased as asked.

    With `unwanted` too, the caller is gone: its place is given up, and what was granted to it is only told, not touched.
    """

    owner_id: str
    keep: bool = False
    lease_s: int | None = None
    unwanted: bool = False


@dataclass(frozen=True, slots=True)
class Stay:
    """Keep a waiting owner's place: its rows end by their TTL otherwise."""

    owner_id: str


Operation = Acquire | Release | Renew | Cancel | Stay


@dataclass(frozen=True, slots=True)
class Granted:
    """The owner holds `token`. `fence` only grows for a token; `again` tells that it held the token before.

    A lease counts from `began_at` at the latest, on the port's clock: then the first attempt left. `mark` is its row's.
    """

    token: int
    fence: int
    again: bool = False
    began_at: float = 0.0
    mark: int | None = field(default=None, compare=False, repr=False)


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
    """The hold of `token` is counted anew, from `began_at` at the latest."""

    token: int
    fence: int
    began_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The owner has left the line (`ticket` is None: it did not stand in it; 0: it left by an earlier attempt of this call)."""

    ticket: int | None


@dataclass(frozen=True, slots=True)
class Stayed:
    """The owner still stands in line."""


Answer = Granted | Full | Queued | Released | NotHeld | Stale | Renewed | Cancelled | Stayed
