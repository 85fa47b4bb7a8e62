"""What a node does while it speaks: it rebuilds the table, grants and renews, and vouches for each answer before it leaves."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..core import Locks
from ..errors import NotHeld, NotRebuilt, NotTheSpeaker
from ..held import Held
from ..leases import by_id
from ..limits import Limits
from ..lock import Grant, Lock, Moment, Request
from .copies import Copies
from .election import Election, Watcher
from .errors import GrantLate
from .horizon import Horizon
from .messages import Item
from .port import Port
from .rebuild import Rebuilding, TermOver
from .rows import Peer
from .seat import Seat, Term
from .terms import Terms
from .witness import Others, Witness

log = logging.getLogger(__name__)


class Speaking:
    """The table of a node, its seat, and the horizon. It grants only while the seat is its own and the table is rebuilt."""

    def __init__(
        self,
        port: Port,
        cluster: str,
        me: Peer,
        held: Held,
        terms: Terms,
        watcher: Watcher,
        copies: Copies,
        *,
        others: Others,
        new_id: Callable[[], str],
        dice: Callable[[], float],
        limits: Limits | None = None,
    ) -> None:
        self.seat, self.horizon = Seat(port, cluster, me, terms), Horizon(terms)
        self.election = Election(port, self.seat, self.horizon, terms, dice, watcher)
        self.table = Locks(port, new_id=new_id, may_grant=lambda node, until: self.seat.is_ours, limits=limits)
        self.rebuilding: Rebuilding | None = None
        self.rebuild_s = 0.0  # how long the last rebuild took
        self.witness: Witness | None = None  # in a term
        self._copies, self._others, self._new_id = copies, others, new_id
        self._port, self._cluster, self._me, self._held, self._terms = port, cluster, me, held, terms

    @property
    def is_trusted(self) -> bool:
        """Tell whether nobody else can speak yet."""
        return self.seat.is_ours

    @property
    def witnesses(self) -> list[Peer]:
        """Who keeps a copy of what our own clients hold, if anybody does."""
        return [self.witness.peer] if self.witness is not None and self.witness.peer is not None else []

    # --- a term ---------------------------------------------------------------------------------------------------------

    def begin(self, term: Term) -> None:
        """Begin a term: find out what may be held, beside the renewals."""
        self.horizon.clear()
        self.rebuilding = Rebuilding(
            self._port, self._cluster, self._me, self.seat, term, self.horizon, self._terms, self._copies
        )
        self.witness = Witness(
            self._port,
            self._me,
            self._held,
            self.horizon,
            self.seat,
            term,
            self._terms,
            others=self._others,
            new_id=self._new_id,
        )
        self._port.begin(self._rebuild(self.rebuilding, term, self.table.generation))

    async def end(self) -> None:
        """End a term: whoever waits is told to ask again."""
        self.seat.leave()
        self.rebuilding = None
        if self.witness is not None:
            self.witness.end()
            self.witness = None
        await self.table.drop()

    async def _rebuild(self, rebuilding: Rebuilding, term: Term, generation: int) -> None:
        began_at = self._port.now()
        try:
            locks = await rebuilding.gather(self._held.locks(), await self.table.granted())
        except TermOver:
            return
        # Nothing waits from here on: the term goes on, and the table has the generation that it had, or refuses.
        if await self.table.rebuild(generation, locks, epoch=term.epoch) is None:
            return
        self.rebuilding, self.rebuild_s = None, self._port.now() - began_at
        log.info("table rebuilt from %d nodes, %d locks held", rebuilding.answered + 1, len(locks))
        self._take_over(rebuilding.witnessed, await self.table.locks())
        if self.witness is not None:
            await self.witness.keep()

    def _take_over(self, witnessed: dict[str, set[tuple[str, str]]], locks: list[Lock]) -> None:
        """Answer for what others have told of those that did not tell themselves: the next speaker shall not wait for them."""
        for instance, ids in witnessed.items():
            for lock in locks:
                if by_id(lock) in ids:
                    self._held.add(lock)
                    self.horizon.need(self._me, lock.until)
            self.horizon.retire(instance)

    # --- requests -------------------------------------------------------------------------------------------------------

    async def acquire(self, request: Request, asker: Peer) -> tuple[Grant, int]:
        """Grant a lock to a client of `asker`, and return the epoch with it. Raises as `Locks.acquire`, and GrantLate."""
        generation = self.table.generation
        grant = await self.table.acquire(request)
        try:
            return grant, await self._vouch(grant.lock, asker, generation)
        except BaseException:
            if not request.request:  # nobody can ask for it again
                self.let_go(Item(grant.lock.name, grant.lock.id))
                await self.table.release(grant.lock.name, grant.lock.id)
            raise

    async def renew(self, name: str, lock_id: str, lease_s: float, asker: Peer) -> tuple[Grant, int]:
        """Count a lease anew for a client of `asker`, and return the epoch with it. Raises as `Locks.renew`, and GrantLate."""
        generation = self.table.generation
        if self.table.is_rebuilt:
            grant = await self.table.renew(name, lock_id, lease_s, node=asker.node)
        else:
            grant = self._renew_told(name, lock_id, lease_s, asker)
        return grant, await self._vouch(grant.lock, asker, generation)

    async def release(self, name: str, lock_id: str, request: str) -> Lock:
        """End a lock, by its id or its request's. Raises NotHeld, NotRebuilt: it will not come back then, either."""
        if not self.table.is_rebuilt:
            await self.forget(Item(name, lock_id, request))
            raise NotRebuilt
        lock = await self.table.release(name, lock_id, request=request)
        if lock is None and lock_id:
            await self.table.forget(name, lock_id)  # some node may still tell of it
        if lock is None:
            raise NotHeld(name, lock_id or request)
        return lock

    def let_go(self, item: Item) -> None:
        """Tell a witness nothing more of a lock that was released."""
        if self.witness is not None:
            self.witness.let_go(item)

    async def forget(self, item: Item) -> None:
        """Bring a lock back never."""
        if self.rebuilding is not None:
            self.rebuilding.forget(item.name, lock_id=item.id, request=item.request)
        if item.id:
            await self.table.forget(item.name, item.id)
        if item.request:
            await self.table.release(item.name, request=item.request)

    async def locks(self) -> list[Lock]:
        """Return what is held in the cluster. Raises NotRebuilt."""
        if not self.table.is_rebuilt:
            raise NotRebuilt
        return await self.table.locks()

    async def adopt(self, asker: Peer, held: list[Lock]) -> None:
        """Answer for what the clients of a node hold that stops, and let its horizon row go. Raises LockUnavailable."""
        if not self.table.is_rebuilt and (self.rebuilding is None or not self.rebuilding.has_heard(asker)):
            raise NotRebuilt
        term = self.seat.term
        for lock in held:
            self._held.add(lock)
            self.horizon.need(self._me, lock.until)
        while missing := [lock for lock in held if not self._is_witnessed(lock)]:
            await self._tell(missing)
        if term is None or self.seat.term is not term:
            raise NotTheSpeaker
        self.horizon.let_go(asker.instance)
        await self.election.gone(asker.instance)

    # --- within ---------------------------------------------------------------------------------------------------------

    def _renew_told(self, name: str, lock_id: str, lease_s: float, asker: Peer) -> Grant:
        at = Moment(self._port.now(), self._port.wall_ms())
        self.table.limits.check_lease(lease_s)
        lock = None
        if self.rebuilding is not None and self.is_trusted:
            lock = self.rebuilding.renew(name, lock_id, lease_s, asker.node, at)
        if lock is None:
            raise NotRebuilt
        return Grant(lock, lasts_s=lock.left_s(at.now), again=True)

    async def _vouch(self, lock: Lock, asker: Peer, generation: int) -> int:
        """Return our epoch once a lease may be answered for: its horizon is noted, and we have spoken all the time."""
        await self.election.cover(asker, lock.until)
        while asker.instance == self._me.instance and not self._is_witnessed(lock):
            await self._tell([lock])
            await self.election.cover(asker, lock.until)
        term = self.seat.term
        if term is None or not self.is_trusted or self.table.generation != generation:
            raise GrantLate
        return term.epoch

    def _is_witnessed(self, lock: Lock) -> bool:
        """Tell whether a lock of our own clients may be answered for, where its horizon is covered."""
        return self.witness is None or self.witness.has(lock)

    async def _tell(self, locks: list[Lock]) -> None:
        if self.witness is not None:
            await self.witness.tell(locks)
