"""The rebuild: what a new speaker does before it grants anything.

It reads the horizon rows, and asks each instance that has one what its clients hold and what it granted. An instance that
does not answer holds the rebuild up until its row is gone: its leases have ended by then. One that answers has given its word
to hand out nothing any more that an older speaker granted, so no grant can come up after the rebuild.

Where the row names a witness, that is asked as well. What it has a copy of is all that was answered through the instance, and
nothing more will be: the witness confirms nothing to an older speaker any more. So the instance itself is not waited for.

Meanwhile what has been told can be renewed: it is held, so nobody else can hold it, and a speaker's end shall cost no holder
its lock.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from ...database import DatabaseError, Event, Slice
from ..errors import LockError, NotHeld
from ..leases import by_id
from ..lock import Lock, Moment, lease
from .copies import Copies
from .errors import NoCopy, Outdated
from .horizon import Horizon
from .messages import Answer, Holdings, Listed, Message, Rebuild, Recall, Refusal
from .port import Port
from .rows import CLUSTERS, HORIZON_ROWS, Peer, Witnessed, horizon_key
from .seat import Seat, Term
from .terms import Terms

log = logging.getLogger(__name__)

LOOK_BEFORE_S = 2.0
GRACE_S = 1.0  # how long whoever has a witness may be slow to tell by itself


class TermOver(Exception):  # between the rebuild and the node: it reaches no caller
    """The term ended before the rebuild did."""


class Rebuilding:
    """One rebuild, of one term. `held_up_by` has those who have not answered, once it is known whom to ask."""

    def __init__(
        self, port: Port, cluster: str, me: Peer, seat: Seat, term: Term, horizon: Horizon, terms: Terms, copies: Copies
    ) -> None:
        self.held_up_by: dict[str, Peer] | None = None
        self.answered = 0
        self.witnessed: dict[str, set[tuple[str, str]]] = {}  # whom others have told of, and of which locks
        self._held: dict[tuple[str, str], Lock] = {}
        self._granted: dict[tuple[str, str], Lock] = {}
        self._newest: dict[str, int] = {}  # the latest fence of each name that somebody holds
        self._port, self._cluster, self._me, self._terms = port, cluster, me, terms
        self._seat, self._term, self._horizon, self._copies = seat, term, horizon, copies
        self._tried: dict[str, Event] = {}
        self._all_heard = port.event()

    async def gather(self, held: list[Lock], granted: list[Lock]) -> list[Lock]:
        """Return what may be held, once all have told it or their leases have ended. Begin with our own. Raises TermOver."""
        await self._find()
        self._add(held, granted)
        asked = [peer for peer in self._horizon.peers if peer.instance != self._me.instance]
        self.held_up_by = {peer.instance: peer for peer in asked}
        for peer in asked:
            self._tried[peer.instance] = self._port.event()
            self._port.begin(self._ask(peer))
            if (witness := self._horizon.witness_of(peer.instance)) is not None:
                self._port.begin(self._recall(peer, witness))
        while self._goes_on and self.held_up_by:
            await self._all_heard.wait(self._terms.again_s)
        if self.held_up_by or not self._goes_on:
            raise TermOver
        return self._known()

    def has_heard(self, peer: Peer) -> bool:
        """Tell whether nothing of an instance is waited for."""
        return self.held_up_by is not None and peer.instance not in self.held_up_by

    def renew(self, name: str, lock_id: str, lease_s: float, node: str, at: Moment) -> Lock | None:
        """Count a lease anew that has been told of. None: no such lock has been, so far.

        Raises NotHeld where a later grant of the name was told: somebody has released the lock behind its holder's back.
        """
        lock = self._held.get((name, lock_id)) or self._granted.get((name, lock_id))
        if lock is None or lock.has_lapsed(at.now):
            return None
        if self._newest.get(name, lock.fence) > lock.fence:
            raise NotHeld(name, lock_id)
        # Whoever renews it holds it, though its node may have lost the memory of that.
        renewed = self._held[name, lock_id] = lock.through(node).lasting(lease(lease_s), at)
        return renewed

    def forget(self, name: str, *, lock_id: str = "", request: str = "") -> None:
        """Leave out a lock that was released meanwhile."""
        for locks in (self._held, self._granted):
            for key, lock in list(locks.items()):
                if lock.name == name and (lock.id == lock_id or (request and lock.request == request)):
                    del locks[key]

    @property
    def _goes_on(self) -> bool:
        return self._seat.term is self._term and self._seat.is_ours

    async def _find(self) -> None:
        """Read the horizon rows: with our epoch in the speaker row, nobody else adds one."""
        while self._goes_on:
            began_at = self._port.now()
            try:
                rows = await self._port.read(CLUSTERS, (self._cluster,), (HORIZON_ROWS,), serial=True)
            except DatabaseError:
                log.debug("the horizon rows were not read", exc_info=True)
                await self._port.sleep(self._terms.again_s)
            else:
                if self._goes_on:
                    self._horizon.find(rows, began_at, self._port.now())
                    return
        raise TermOver

    async def _ask(self, peer: Peer) -> None:
        while self._goes_on and not self.has_heard(peer):
            if await self._was_told(peer):
                self.answered += 1
                self._hear(peer)
                return
            self._tried[peer.instance].set()
            if not await self._has_ended(peer):
                await self._port.sleep(self._terms.again_s)
            elif not self.has_heard(peer):
                if self._goes_on:
                    self._horizon.lose(peer.instance)
                self._hear(peer)

    def _hear(self, peer: Peer) -> None:
        if self.held_up_by is not None:
            self.held_up_by.pop(peer.instance, None)
            if not self.held_up_by:
                self._all_heard.set()

    async def _was_told(self, peer: Peer) -> bool:
        answer = await self._answer(peer.address, Rebuild(epoch=self._term.epoch, speaker=self._me))
        # Another instance at the same address can tell nothing of the former one: its memory is gone.
        if not isinstance(answer, Holdings) or answer.peer.instance != peer.instance or self.has_heard(peer):
            return False
        now = self._port.now()
        self._add([told.here(now) for told in answer.held], [told.here(now) for told in answer.granted])
        return True

    async def _recall(self, peer: Peer, witness: Witnessed) -> None:
        """Have a witness tell for an instance, which may tell by itself meanwhile: then it is not only slow to."""
        while self._goes_on and not self.has_heard(peer):
            if (locks := await self._copy(witness)) is None:
                await self._port.sleep(self._terms.again_s)
                continue
            # No lease through it lasts longer than its row, however long the word of it was on its way.
            ends_at = self._horizon.ends_at(peer.instance)
            self._add([replace(lock, until=min(lock.until, ends_at)) for lock in locks], [])
            await self._tried[peer.instance].wait(GRACE_S)
            if self._goes_on and not self.has_heard(peer):
                log.info("what the clients of %s hold is told by its witness at %s", peer.node, witness.address)
                self.witnessed[peer.instance] = {by_id(lock) for lock in locks}
                self._hear(peer)

    async def _copy(self, witness: Witnessed) -> list[Lock] | None:
        if witness.address == self._me.address:
            return self._own_copy(witness.copy)
        message = Recall(epoch=self._term.epoch, speaker=self._me, copy=witness.copy)
        answer, now = await self._answer(witness.address, message), self._port.now()
        return [told.here(now) for told in answer.locks] if isinstance(answer, Listed) else None

    def _own_copy(self, copy: str) -> list[Lock] | None:
        try:
            return self._copies.of(copy)
        except NoCopy:
            return None

    async def _answer(self, address: str, message: Message) -> Answer | None:
        """Ask, and return the answer; None where there is none that counts."""
        asked_at = self._port.now()
        try:
            answer = await self._port.ask(address, message, self._terms.ask_s)
        except LockError as error:
            log.debug("%s has not told what is held: %s", address, error)
            return None
        now = self._port.now()
        if isinstance(answer, Refusal) and isinstance(answer.raised(now), Outdated) and self._goes_on:
            self._seat.leave()  # another one speaks by now
        if not self._goes_on or now - asked_at > self._terms.ask_s:
            return None  # where we stood still, leases would last longer by that than they do
        return answer

    async def _has_ended(self, peer: Peer) -> bool:
        """Tell whether an instance's leases have ended, by its row: only we write it now."""
        if self._port.now() < self._horizon.ends_at(peer.instance) - LOOK_BEFORE_S:
            return False
        try:
            row = Slice(horizon_key(peer.instance))
            return not await self._port.read(CLUSTERS, (self._cluster,), (row,), serial=True)
        except DatabaseError:
            return False

    def _add(self, held: list[Lock], granted: list[Lock]) -> None:
        for lock in held:
            self._newest[lock.name] = max(lock.fence, self._newest.get(lock.name, 0))
        for locks, told in ((self._held, held), (self._granted, granted)):
            for lock in told:
                before = locks.get(by_id(lock))
                if before is None or before.until < lock.until:
                    locks[by_id(lock)] = lock

    def _known(self) -> list[Lock]:
        """Return what may be held: of each name one lock.

        A lock that was granted and that nobody holds cannot be handed out any more, so one that is held goes before it. Of two
        that were held, the one granted later is: it was granted when the other was over, and some node has not heard of that.
        """
        now = self._port.now()
        latest: dict[str, Lock] = {}
        for locks in (self._granted, self._held):
            for lock in sorted(locks.values(), key=lambda lock: lock.fence):
                if not lock.has_lapsed(now):
                    latest[lock.name] = lock
        for lock in self._held.values():
            if latest.get(lock.name, lock) is not lock:
                log.warning("lock %s was granted twice: %s on %s has lost it", lock.name, lock.id, lock.node)
        return list(latest.values())
