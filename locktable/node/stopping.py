"""How a node stops without holding anybody up: it vacates the seat, and leaves what its clients hold to the next speaker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...database import DatabaseError, delete
from ..errors import LockError
from .messages import Done, Leave, Told, Vacant
from .rows import horizon_key
from .settle import Unsettled

if TYPE_CHECKING:
    from .node import Node

log = logging.getLogger(__name__)


async def resign(node: Node, deadline: float) -> bool:
    """Vacate the seat if it is ours, and tell the others, so that one of them speaks at once. False: nobody has heard it.

    Where our clients hold nothing, our horizon row goes with it: nobody has to wait for us.
    """
    seat = node.speaking.seat
    if seat.seen.speaker is None or seat.seen.speaker.instance != node.me.instance:
        return True
    rides = () if node.held.locks() else (delete(horizon_key(node.me.instance)),)
    try:
        if not await seat.resign(rides, deadline=deadline):
            return True
    except (DatabaseError, Unsettled):
        log.info("the seat was not vacated: it is free when its lease ends", exc_info=True)
        return True
    node.saw(seat.seen)
    reached: set[str] = set()
    for each in [node.port.begin(_tell(node, peer.address, reached)) for peer in node.members.others]:
        await each.ended()
    return bool(reached)


async def hand_on(node: Node, deadline: float) -> None:
    """Leave what our clients hold to the speaker. Whatever we leave to nobody holds rebuilds up until its leases end."""
    if not node.has_handed_out:
        return
    while node.port.now() < deadline and node.members.others:
        if await _left(node):
            return
        await node.port.sleep(node.terms.again_s)
        try:
            node.saw(await node.speaking.seat.look())
        except (DatabaseError, Unsettled):
            log.debug("the speaker row was not read", exc_info=True)
    if node.held.locks():
        log.info("what our clients hold was left to nobody: the next speaker waits until their leases end")


async def _left(node: Node) -> bool:
    speaker, now = node.known.speaker, node.port.now()
    if speaker is None or speaker.instance == node.me.instance:
        return False
    message = Leave(asker=node.me, held=tuple(Told.of(lock, now) for lock in node.held.locks()))
    try:
        return isinstance(await node.port.ask(speaker.address, message, node.terms.ask_s), Done)
    except LockError:
        return False


async def _tell(node: Node, address: str, reached: set[str]) -> None:
    try:
        await node.port.ask(address, Vacant(epoch=node.known.epoch or 0), node.terms.again_s)
        reached.add(address)
    except LockError:
        log.debug("%s finds out by itself that the seat is free", address)
