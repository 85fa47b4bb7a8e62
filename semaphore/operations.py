"""What callers ask of a bucket, and what they are answered."""

from __future__ import annotations

from msgspec import Struct


class Acquire(Struct, frozen=True):
    """Take a slot for an owner: with a lease of `lease_s` seconds, or until released. With `wait`, stand in line for it."""

    owner_id: str
    lease_s: int | None = None
    wait: bool = False


class Release(Struct, frozen=True):
    """Give an owner's slot back. With `fence`, only the hold that has it.

    With `untold` too, only while nobody else was told of it: it was granted to a caller of this process who is gone.
    """

    owner_id: str
    fence: int | None = None
    untold: bool = False


class Renew(Struct, frozen=True):
    """Count an owner's lease anew, or end it being leased. With `fence`, only the hold that has it."""

    owner_id: str
    lease_s: int | None
    fence: int | None = None


class Cancel(Struct, frozen=True):
    """Take an owner out of the line. With `keep`, a slot that it was handed meanwhile stays its own, leased as asked.

    With `unwanted` too, the caller is gone: its place is given up, and what was granted to it is only told, not touched.
    """

    owner_id: str
    keep: bool = False
    lease_s: int | None = None
    unwanted: bool = False


class Stay(Struct, frozen=True):
    """Keep a waiting owner's place: its rows end by their TTL otherwise."""

    owner_id: str


Operation = Acquire | Release | Renew | Cancel | Stay


class Granted(Struct, frozen=True):
    """The owner holds `token`. `fence` only grows for a token; `again` tells that it held the token before.

    A lease counts from `began_at` at the latest, on the port's clock: then the first attempt left. `mark` is its row's.
    """

    token: int
    fence: int
    again: bool = False
    began_at: float = 0.0
    mark: int | None = None


class Full(Struct, frozen=True):
    """No slot is free for this owner; nothing was changed. `ahead` wait in line."""

    held: int
    ahead: int = 0


class Queued(Struct, frozen=True):
    """The owner stands in line with this ticket."""

    ticket: int


class Released(Struct, frozen=True):
    """The owner's hold of `token` has ended (None: by an earlier attempt of this call)."""

    token: int | None


class NotHeld(Struct, frozen=True):
    """The owner holds nothing here; nothing was changed."""


class Stale(Struct, frozen=True):
    """The owner's hold has another fence; nothing was changed."""

    token: int
    fence: int


class Renewed(Struct, frozen=True):
    """The hold of `token` is counted anew, from `began_at` at the latest."""

    token: int
    fence: int
    began_at: float = 0.0


class Cancelled(Struct, frozen=True):
    """The owner has left the line (`ticket` is None: it did not stand in it; 0: it left by an earlier attempt of this call)."""

    ticket: int | None


class Stayed(Struct, frozen=True):
    """The owner still stands in line."""


Answer = Granted | Full | Queued | Released | NotHeld | Stale | Renewed | Cancelled | Stayed
