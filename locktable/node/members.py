"""Which nodes are up. Nothing is decided by it: it tells people who is there, and a release whom to notify."""

from __future__ import annotations

import logging

from ...database import Batch, DatabaseError, Port, Slice, delete
from .rows import NODES, Peer, member_row, peer_of
from .terms import Terms

log = logging.getLogger(__name__)


class Members:
    """A node's own row, and those of the others as they were last read. `keep` goes on until `end`."""

    def __init__(self, port: Port, cluster: str, me: Peer, terms: Terms) -> None:
        self.peers: tuple[Peer, ...] = (me,)
        self.are_known = False  # the others have been read since we began
        self._port, self._cluster, self._me, self._terms = port, cluster, me, terms
        self._since_ms = port.wall_ms()
        self._nudge = port.event()
        self._is_ending = False

    @property
    def others(self) -> tuple[Peer, ...]:
        """The nodes beside this one."""
        return tuple(peer for peer in self.peers if peer.instance != self._me.instance)

    async def keep(self) -> None:
        """Keep our row alive, and look who else is up. At the end, take our row away."""
        write_at = self._port.now()
        while not self._is_ending:
            try:
                if self._port.now() >= write_at:
                    await self._write()
                    write_at = self._port.now() + self._terms.member_ttl_s / 3
                await self.look()
            except DatabaseError:
                log.debug("the rows of the nodes were not written or read", exc_info=True)
            await self._nudge.wait(self._terms.beat_s)
            self._nudge.clear()
        try:
            await self._port.commit(self._batch(leaving=True))
        except DatabaseError:
            log.debug("our row stays until its TTL ends", exc_info=True)

    async def look(self) -> None:
        """Read who is up. Raises DatabaseError."""
        rows = await self._port.read(NODES, (self._cluster,), (Slice(ttl_of="node"),), serial=False)
        peers = {peer.instance: peer for row in rows if (peer := peer_of(row)).node}
        self.peers, self.are_known = tuple({**peers, self._me.instance: self._me}.values()), True

    def end(self) -> None:
        """End it soon."""
        self._is_ending = True
        self._nudge.set()

    async def _write(self) -> None:
        await self._port.commit(self._batch(leaving=False))  # an unknown outcome is settled by the next one

    def _batch(self, *, leaving: bool) -> Batch:
        mine = (self._me.instance,)
        own = {"node": (None, self._me.node)}
        write = delete(mine, expect=own) if leaving else member_row(self._me, self._since_ms, self._terms.member_ttl_s)
        return Batch(NODES, (self._cluster,), (write,))
