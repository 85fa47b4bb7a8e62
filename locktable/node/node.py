"""A node of the lock cluster: what its clients and the other nodes ask of it.

What is asked of a node that does not speak goes to the speaker, once: a node that was handed a request and does not speak
says so. A node remembers what its own clients hold, before they are told, for the next speaker to read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from ..errors import LockError, LockUnavailable, NotHeld, NotTheSpeaker
from ..held import Held
from ..limits import Limits
from ..lock import Grant, Lock, Request
from .asking import Asked
from .copies import Copies
from .errors import GrantLate, NodeLeaving, NoSpeaker, Outdated
from .members import Members
from .messages import (
    Acquire,
    Answer,
    Copy,
    Done,
    Forget,
    Given,
    Holdings,
    Item,
    Leave,
    Listed,
    ListLocks,
    ListNode,
    Message,
    Rebuild,
    Recall,
    Refusal,
    Release,
    Renew,
    Told,
    Vacant,
)
from .port import Background, Port
from .rows import Peer, Seen
from .seat import Term
from .speaking import Speaking
from .spread import Spread
from .status import Status, status_of
from .stopping import hand_on, resign
from .terms import Terms

log = logging.getLogger(__name__)


class Node:
    """One node. `new_id` makes ids, of locks and of this run of the node; `dice` draws numbers in 0..1.

    `address` is where the other nodes reach it, as the port's `ask` takes it.
    """

    def __init__(
        self,
        name: str,
        cluster: str,
        address: str,
        port: Port,
        *,
        new_id: Callable[[], str],
        dice: Callable[[], float],
        terms: Terms | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.me, self.cluster, self.port, self.terms = Peer(name, new_id(), address), cluster, port, terms or Terms()
        self.held, self.copies = Held(port.now), Copies(port.now)
        self.members = Members(port, cluster, self.me, self.terms)
        self.speaking = Speaking(
            port,
            cluster,
            self.me,
            self.held,
            self.terms,
            self,
            self.copies,
            others=lambda: self.members.others,
            new_id=new_id,
            dice=dice,
            limits=limits,
        )
        self.known = Seen()  # who speaks, as far as we know
        self.promised = 0  # nothing is handed out that was granted in an epoch before this one
        self.takes_requests = self.has_left = self.has_handed_out = False
        self._spread = Spread(port, self._to_tell, self.terms)
        self._running: list[Background] = []

    def __repr__(self) -> str:
        return f"<Node {self.me.node} of {self.cluster}: {self.speaking.seat}>"

    def now(self) -> float:
        """Return the moment, on the clock that leases count on."""
        return self.port.now()

    # --- its life -------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Stand for election, and take requests."""
        self.takes_requests = True
        self._running = [self.port.begin(self.speaking.election.run()), self.port.begin(self.members.keep())]

    async def stop(self) -> None:
        """Stop in order: vacate the seat, leave what our clients hold to the next speaker, and be gone.

        Takes `terms.stop_s` at most, and what a last transaction takes. Messages should be answered until it returns.
        """
        self.takes_requests = False
        if not self._running:
            return
        deadline = self.port.now() + self.terms.stop_s
        election, members = self._running
        self._running = []
        self.speaking.election.end()
        await election.ended()
        self.has_left = True
        if await resign(self, deadline):
            await hand_on(self, deadline)
        self.members.end()
        await members.ended()

    # --- what the election tells ----------------------------------------------------------------------------------------

    def saw(self, seen: Seen) -> None:
        """See Watcher.saw."""
        if (seen.epoch or 0) >= (self.known.epoch or 0):
            self.known = seen

    async def won(self, term: Term) -> None:
        """See Watcher.won."""
        if self.promised > term.epoch:
            self.speaking.seat.leave()
            return
        self.promised = term.epoch
        self.speaking.begin(term)

    async def lost(self) -> None:
        """See Watcher.lost."""
        await self.speaking.end()

    # --- what clients ask -----------------------------------------------------------------------------------------------

    async def acquire(self, request: Request) -> Grant:
        """Grant a lock to a client of ours.

        Raises LockHeld, AlreadyReleased, TakenOver, BadLockRequest, and LockUnavailable in many kinds: ask again.
        """
        self._check_takes_requests()
        request = self.speaking.table.limits.checked(replace(request, node=self.me.node))
        if self.speaking.is_trusted:
            grant, epoch = await self._granted(request, self.me)
        else:
            asked_at = self.port.now()
            grant, epoch = self._given(await self._ask_to_acquire(request), asked_at)
        return self._kept(grant, epoch)

    async def renew(self, name: str, lock_id: str, lease_s: float = 0.0) -> Grant:
        """Count a lock's lease anew. Raises NotHeld, BadLockRequest, LockUnavailable."""
        self._check_takes_requests()
        self.speaking.table.limits.check_lease(lease_s)
        if self.speaking.is_trusted:
            grant, epoch = await self._renewed(name, lock_id, lease_s, self.me)
        else:
            message, asked_at = Renew(asker=self.me, name=name, id=lock_id, lease_s=lease_s), self.port.now()
            grant, epoch = self._given(await self._ask_speaker(message), asked_at)
        return self._kept(grant, epoch)

    async def release(self, name: str, lock_id: str = "", *, request: str = "") -> bool:
        """End a lock, by its id or its request's. Tell whether it is let go: False where it was not held any more.

        A client of ours has let go, whatever the speaker says: where that cannot be reached, every node is told to forget it.
        Raises LockUnavailable while we know neither the speaker nor the others: nobody would be told.
        """
        item = Item(name, lock_id, request)
        self._let_go(item)
        try:
            if self.speaking.is_trusted:
                await self._released(item)
            else:
                self._check(await self._ask_speaker(Release(asker=self.me, name=name, id=lock_id, request=request)))
        except NotHeld:
            return False
        except LockUnavailable as error:
            await self.speaking.forget(item)
            self._spread.tell(item)
            if not self.members.are_known:
                raise
            log.info("lock %s was released, and every node is told: %s", name, error)
        return True

    async def forget(self, name: str, lock_id: str = "", *, request: str = "") -> None:
        """Forget a lock that was released elsewhere: no rebuild is to bring it back."""
        item = Item(name, lock_id, request)
        self._let_go(item)
        await self.speaking.forget(item)

    async def locks(self) -> list[Lock]:
        """Return what is held in the cluster: the speaker knows. Raises LockUnavailable."""
        if self.speaking.is_trusted:
            return await self.speaking.locks()
        answer = self._check(await self._ask_speaker(ListLocks()))
        if not isinstance(answer, Listed):
            raise LockUnavailable
        now = self.port.now()
        return [told.here(now) for told in answer.locks]

    async def node_locks(self) -> list[Lock]:
        """Return what our clients hold, and then what we granted. A lock may be in both."""
        return self.held.locks() + await self.speaking.table.granted()

    async def status(self) -> Status:
        """Tell what this node knows of itself and of its cluster."""
        return await status_of(self)

    # --- what other nodes ask -------------------------------------------------------------------------------------------

    async def answer(self, message: Message) -> Answer:
        """Answer another node's message."""
        try:
            return await self._answered(message)
        except LockError as error:
            return Refusal.of(error, self.port.now())

    async def _answered(self, message: Message) -> Answer:
        match message:
            case Acquire():
                grant, epoch = await self._granted(message.request, message.asker)
                return Given.of(grant, epoch, self.port.now())
            case Renew():
                grant, epoch = await self._renewed(message.name, message.id, message.lease_s, message.asker)
                return Given.of(grant, epoch, self.port.now())
            case Release():
                self._check_speaks()
                await self._released(Item(message.name, message.id, message.request))
            case Forget():
                for item in message.items:
                    await self.forget(item.name, item.id, request=item.request)
            case Rebuild():
                return await self._told(message)
            case Leave():
                await self._adopted(message)
            case Copy():
                self._copied(message)
            case Recall():
                await self._promise(message.epoch, message.speaker)
                return self._listed(self.copies.of(message.copy))
            case Vacant():
                self.saw(Seen(max(message.epoch, 0)))
                self.speaking.election.look_soon()
            case ListLocks():
                self._check_speaks()
                return self._listed(await self.speaking.locks())
            case ListNode():
                return self._listed(await self.node_locks())
        return Done()

    async def _told(self, message: Rebuild) -> Holdings:
        """Tell a new speaker what may be held."""
        await self._promise(message.epoch, message.speaker)
        now, granted = self.port.now(), await self.speaking.table.granted()
        return Holdings(
            peer=self.me,
            held=tuple(Told.of(lock, now) for lock in self.held.locks()),
            granted=tuple(Told.of(lock, now) for lock in granted),
        )

    async def _promise(self, epoch: int, speaker: Peer) -> None:
        """Give our word: nothing granted in an older epoch is handed out any more, and no copy of it grows."""
        self._check_epoch(epoch)
        self.promised = epoch
        term = self.speaking.seat.term
        if term is not None and term.epoch < epoch:
            await self.speaking.end()
        self.saw(Seen(epoch, None, speaker))

    def _copied(self, message: Copy) -> None:
        self._check_takes_requests()
        self._check_epoch(message.epoch)
        now = self.port.now()
        self.copies.add(message.copy, [told.here(now) for told in message.held], begins=message.begins)

    def _check_epoch(self, epoch: int) -> None:
        if epoch < self.promised:
            raise Outdated(self.promised)

    async def _adopted(self, message: Leave) -> None:
        self._check_speaks()
        self._check_takes_requests()
        now, self.has_handed_out = self.port.now(), True
        await self.speaking.adopt(message.asker, [told.here(now) for told in message.held])

    # --- within: as the speaker -----------------------------------------------------------------------------------------

    async def _granted(self, request: Request, asker: Peer) -> tuple[Grant, int]:
        self._check_speaks()
        return await self.speaking.acquire(replace(request, node=asker.node), asker)

    async def _renewed(self, name: str, lock_id: str, lease_s: float, asker: Peer) -> tuple[Grant, int]:
        self._check_speaks()
        return await self.speaking.renew(name, lock_id, lease_s, asker)

    async def _released(self, item: Item) -> None:
        self._let_go(item)  # it may have come through us first, and through another node since
        lock = await self.speaking.release(item.name, item.id, item.request)
        self._spread.tell(Item(lock.name, lock.id, item.request))

    def _check_speaks(self) -> None:
        if not self.speaking.is_trusted:
            speaker = self.known.speaker
            raise NotTheSpeaker(speaker.node if speaker is not None and speaker != self.me else "")

    # --- within: for our clients ----------------------------------------------------------------------------------------

    def _check_takes_requests(self) -> None:
        if not self.takes_requests:
            raise NodeLeaving

    def _kept(self, grant: Grant, epoch: int) -> Grant:
        """Remember a grant, and return it to the client. Nothing waits from the look at our promise to the end."""
        if self.has_left:
            raise NodeLeaving
        if epoch < self.promised or grant.lock.has_lapsed(self.port.now()):
            raise GrantLate
        self.has_handed_out = True
        self.held.add(grant.lock)
        return grant

    def _let_go(self, item: Item) -> None:
        self.held.let_go(item.name, item.id, item.request)
        self.copies.let_go(item)
        self.speaking.let_go(item)

    def _speaker(self) -> Peer:
        speaker = self.known.speaker
        if speaker is None or speaker.instance == self.me.instance:
            raise NoSpeaker
        return speaker

    async def _ask_speaker(self, message: Message) -> Answer:
        return await self.port.ask(self._speaker().address, message, self.terms.ask_s)

    async def _ask_to_acquire(self, request: Request) -> Answer:
        """Hand a request over. It may stand in line for long: stop waiting when somebody else speaks by then, or we stop."""
        speaker, epoch = self._speaker(), self.known.epoch
        message, timeout_s = Acquire(asker=self.me, request=request), request.wait_s + self.terms.ask_s
        answer = await Asked(self.port, lambda answer: self._unheard(request, answer)).answer(
            speaker.address,
            message,
            timeout_s,
            goes_on=lambda: self.known.epoch == epoch and self.takes_requests,
            beat_s=self.terms.beat_s,
        )
        if answer is None:
            self._check_takes_requests()
            raise NotTheSpeaker(self.known.speaker.node if self.known.speaker is not None else "")
        return answer

    def _unheard(self, request: Request, answer: Answer) -> None:
        """Give a lock back that its client did not wait for and cannot ask for again: it named no request id."""
        if isinstance(answer, Given) and not request.request:
            lock = answer.told.lock
            self.port.finish(self._give_back(lock))

    async def _give_back(self, lock: Lock) -> None:
        try:
            await self.release(lock.name, lock.id)
        except LockError as error:
            log.info(
                "lock %s was granted to a client that is gone, and stays until its lease ends: %s", lock.name, error
            )

    def _given(self, answer: Answer, asked_at: float) -> tuple[Grant, int]:
        answer = self._check(answer)
        if not isinstance(answer, Given):
            raise LockUnavailable
        return answer.grant(asked_at), answer.epoch

    def _check(self, answer: Answer) -> Answer:
        if isinstance(answer, Refusal):
            raise answer.raised(self.port.now())
        return answer

    def _listed(self, locks: list[Lock]) -> Listed:
        now = self.port.now()
        return Listed(locks=tuple(Told.of(lock, now) for lock in locks))

    def _to_tell(self) -> list[Peer]:
        known = (*self.members.peers, *self.speaking.horizon.peers, *self.speaking.witnesses)
        peers = {peer.instance: peer for peer in known}
        peers.pop(self.me.instance, None)
        return list(peers.values())
