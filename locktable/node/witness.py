"""The speaker's side of the witness: what its own clients are granted is told to another node before it is answered.

What a speaker grants for other nodes, those hold themselves. What it grants for its own clients would die with it, and its
successor would have to wait until those leases have ended. So another node keeps a copy, and the speaker's horizon row names
it: from before the first answer that relies on the copy, until after the last one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import inf

from ...database import Event
from ..errors import LockError, LockUnavailable
from ..held import Held
from ..leases import by_id
from ..lock import Lock
from .errors import Outdated
from .horizon import Horizon
from .messages import Copy, Done, Item, Refusal, Told
from .port import Port
from .rows import Peer, Witnessed
from .seat import Seat, Term
from .terms import Terms

log = logging.getLogger(__name__)

MOST_LOCKS = 500  # in a message
Others = Callable[[], Sequence[Peer]]


class Witness:
    """Whoever keeps the copy, in one term: one node at a time, and another one when it fails. `keep` goes on with the term."""

    def __init__(
        self,
        port: Port,
        me: Peer,
        held: Held,
        horizon: Horizon,
        seat: Seat,
        term: Term,
        terms: Terms,
        *,
        others: Others,
        new_id: Callable[[], str],
    ) -> None:
        self.peer: Peer | None = None
        self._port, self._me, self._held, self._horizon = port, me, held, horizon
        self._seat, self._term, self._terms, self._others, self._new_id = seat, term, terms, others, new_id
        self._told: Held | None = None  # what the copy surely has; None: nothing waits for one
        self._queue: dict[tuple[str, str], Lock] = {}
        self._waiting: list[Event] = []
        self._nudge = port.event()
        self._turn = 0

    def __repr__(self) -> str:
        return f"<Witness {self.peer}, {len(self._queue)} locks to tell>"

    def has(self, lock: Lock) -> bool:
        """Tell whether a lock may be answered for, if its horizon is covered, too: the copy has it, or there is none."""
        return self._told is None or self._told.has(lock) or lock.has_lapsed(self._port.now())

    async def tell(self, locks: Iterable[Lock]) -> None:
        """Return when the copy may have these locks, or there is none any more: look again."""
        for lock in locks:
            self._put(lock)
        event = self._port.event()
        self._waiting.append(event)
        self._nudge.set()
        await event.wait(inf)

    def let_go(self, item: Item) -> None:
        """Tell nothing more of a lock that was released. The witness hears of that as all nodes do."""
        self._queue.pop((item.name, item.id), None)
        if self._told is not None:
            self._told.let_go(item.name, item.id, item.request)

    async def keep(self) -> None:
        """Have a copy kept as long as the term goes on, where there is another node."""
        while self._goes_on:
            peer = self._next()
            try:
                if peer is not None:
                    await self._with(peer)
            except LockError as error:
                log.info("%s keeps no copy of what our clients hold: %s", peer.node if peer is not None else "", error)
            finally:
                self._drop()
            await self._port.sleep(self._terms.again_s)

    def end(self) -> None:
        """Let go on all who wait: the term is over."""
        self._wake()
        self._nudge.set()

    @property
    def _goes_on(self) -> bool:
        return self._seat.term is self._term

    def _next(self) -> Peer | None:
        peers = [peer for peer in self._others() if peer.address != self._me.address]
        self._turn += 1
        return peers[self._turn % len(peers)] if peers else None

    async def _with(self, peer: Peer) -> None:
        """Let a node begin a copy; when it is whole, let our row name it, and tell what comes up. Raises LockError."""
        copy, told = self._new_id(), Held(self._port.now)
        await self._say(peer, copy, (), told, begins=True)
        await self._say_all(peer, copy, self._held.locks(), told)
        # From here on nothing is answered that the copy does not have. What came up meanwhile is told now.
        self.peer, self._told = peer, told
        await self._say_all(peer, copy, [lock for lock in self._held.locks() if not told.has(lock)], told)
        if self._goes_on:
            self._horizon.name_witness(self._me.instance, Witnessed(copy, peer.address))
        while self._goes_on:
            await self._say_queued(peer, copy, told)
            if not self._queue:
                await self._nudge.wait(self._terms.beat_s)  # and then see whether the copy is still there
            self._nudge.clear()

    async def _say_queued(self, peer: Peer, copy: str, told: Held) -> None:
        locks = list(islice(self._queue.values(), MOST_LOCKS))
        for lock in locks:
            del self._queue[by_id(lock)]
        waiting, self._waiting = self._waiting, []
        try:
            await self._say(peer, copy, locks, told)
        finally:
            for event in waiting:
                event.set()

    async def _say_all(self, peer: Peer, copy: str, locks: list[Lock], told: Held) -> None:
        for at in range(0, len(locks), MOST_LOCKS):
            await self._say(peer, copy, locks[at : at + MOST_LOCKS], told)

    async def _say(self, peer: Peer, copy: str, locks: Sequence[Lock], told: Held, *, begins: bool = False) -> None:
        now, epoch = self._port.now(), self._term.epoch
        held = tuple(Told.of(lock, now) for lock in locks)
        message = Copy(asker=self._me, epoch=epoch, copy=copy, held=held, begins=begins)
        answer = await self._port.ask(peer.address, message, self._terms.witness_s)
        if isinstance(answer, Refusal):
            error = answer.raised(self._port.now())
            if isinstance(error, Outdated) and self._goes_on:
                self._seat.leave()  # another one speaks by now
            raise error
        if not isinstance(answer, Done):
            raise LockUnavailable
        for lock in locks:
            told.add(lock)

    def _put(self, lock: Lock) -> None:
        queued = self._queue.get(by_id(lock))
        if queued is None or queued.until < lock.until:
            self._queue[by_id(lock)] = lock

    def _drop(self) -> None:
        """Have no witness. No answer leaves before our row names none, where it may have named one."""
        self.peer = self._told = None
        self._queue.clear()
        if self._goes_on:
            self._horizon.name_witness(self._me.instance, None)
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
