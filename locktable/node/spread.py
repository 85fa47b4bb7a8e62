"""Telling every node what was released, so that none of them brings it back in a rebuild."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice

from ..errors import LockError
from .messages import Forget, Item
from .port import Port
from .rows import Peer
from .terms import Terms

log = logging.getLogger(__name__)

MOST_ITEMS = 500
MOST_WAITING = 10_000


class Spread:
    """What is still to be told to whom. One message to a node is on its way at a time; what comes up meanwhile is one more."""

    def __init__(self, port: Port, peers: Callable[[], Iterable[Peer]], terms: Terms) -> None:
        self._port, self._peers, self._terms = port, peers, terms
        self._waiting: dict[Peer, dict[Item, None]] = {}

    def tell(self, item: Item) -> None:
        """Tell every node, beside the caller. One that does not hear it may bring the lock back until its lease ends."""
        for peer in self._peers():
            if (queue := self._waiting.get(peer)) is None:
                queue = self._waiting[peer] = {}
                self._port.begin(self._deliver(peer, queue))
            if len(queue) < MOST_WAITING:
                queue[item] = None

    async def _deliver(self, peer: Peer, queue: dict[Item, None]) -> None:
        while queue:
            items = tuple(islice(queue, MOST_ITEMS))
            for item in items:
                del queue[item]
            try:
                await self._port.ask(peer.address, Forget(items=items), self._terms.ask_s)
            except LockError as error:
                log.info("%s was not told of %d releases, and may bring them back: %s", peer.node, len(items), error)
        del self._waiting[peer]
