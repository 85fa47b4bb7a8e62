"""What a node tells people of itself and of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .rows import Peer

if TYPE_CHECKING:
    from .node import Node


class HeldUp(msgspec.Struct, frozen=True):
    """Who has not told what it holds, and for how many seconds that may hold the rebuild up."""

    peer: Peer
    left_s: float


class Status(msgspec.Struct, frozen=True):
    """A node, and its cluster as it sees it. The numbers of the table are 0 where it does not speak.

    `trusted_s` is for how long it may still grant without a renewal; `trouble` is why the speaker row could not be read or
    written lately. `witness` keeps a copy of what the clients of the speaker itself hold.
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
    witness: Peer | None = None


async def status_of(node: Node) -> Status:
    """Tell what a node knows of itself and of its cluster."""
    speaking, now = node.speaking, node.port.now()
    term, rebuilding, trouble = speaking.seat.term, speaking.rebuilding, speaking.election.trouble
    held_up_by = (rebuilding.held_up_by or {}) if rebuilding is not None else {}
    return Status(
        cluster=node.cluster,
        node=node.me,
        speaker=node.known.speaker,
        epoch=node.known.epoch or 0,
        speaks=speaking.is_trusted,
        trusted_s=max(0.0, term.trusted_until - now) if term is not None else 0.0,
        rebuilt=speaking.is_trusted and speaking.table.is_rebuilt,
        held_up_by=tuple(
            HeldUp(peer, max(0.0, speaking.horizon.ends_at(peer.instance) - now)) for peer in held_up_by.values()
        ),
        members=node.members.peers,
        locks=len(await speaking.table.locks()),
        waiting=speaking.table.waiting,
        held=len(node.held.locks()),
        trouble=str(trouble) if trouble is not None else "",
        witness=next(iter(speaking.witnesses), None),
    )
