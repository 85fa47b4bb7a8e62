"""What a node tells people of itself and of its cluster."""

from __future__ import annotations

import msgspec

from .rows import Peer


class HeldUp(msgspec.Struct, frozen=True):
    """Who has not told what it holds, and for how many seconds that may hold the rebuild up."""

    peer: Peer
    left_s: float


class Status(msgspec.Struct, frozen=True):
    """A node, and its cluster as it sees it. The numbers of the table are 0 where it does not speak.

    `trusted_s` is for how long it may still grant without a renewal; `trouble` is why the speaker row could not be read or
    written lately.
    """

    cluster: str
    node: Peer
    speaker: Peer | None
    epoch: int
    speaks: bool
    trusted_s: float
    rebuilt: bool
    held_up_by: tuple[HeldUp, ...]
    members: tuple[Peer, ...]
    locks: int
    waiting: int
    held: int
    trouble: str = ""
