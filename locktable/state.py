"""The lock table's rules, without any waiting: what each request does to the locks, and who is answered by it.

A lock that comes free is handed to the first in its line at once, by whoever frees it or notices that its lease has ended.
So a lock with a line is never free, and nobody overtakes. All times come in; only who has the table's guard calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from .errors import AlreadyReleased, LimitReached, LockHeld, LockUnavailable, NotHeld, NotRebuilt, TakenOver
from .fences import Fences
from .leases import Leases, by_id, by_name
from .limits import Limits
from .line import Call, Line
from .lock import Grant, Lock, Moment, lease
from .remembered import Remembered

NewId = Callable[[], str]
MayGrant = Callable[[str, float], bool]


class State:
    """A table: its locks, those of the table it was before (`former`), and what was released lately."""

    def __init__(self, new_id: NewId, may_grant: MayGrant, limits: Limits, epoch: int) -> None:
        self._new_id, self._may_grant, self._limits = new_id, may_grant, limits
        self.is_rebuilt, self.generation = False, 0
        self.fences = Fences(epoch)
        self.waiting = 0
        self._locks = Leases(by_name)
        self._former = Leases(by_id)
        self._released = Remembered(limits.remembered)
        self._refused = Remembered(limits.remembered)  # request ids that were released
        self._lines: dict[str, Line] = {}

    # --- asking, renewing, releasing ------------------------------------------------------------------------------------

    def ask(self, call: Call, at: Moment) -> None:
        """Grant a lock, or let the call stand in line for it. Raises NotRebuilt, LockHeld, AlreadyReleased, LockUnavailable."""
        self._ready(at)
        request = call.request
        if request.request and self._refused.has(request.name, request.request, at.now):
            raise AlreadyReleased(request.name, request.request)
        lock = self._locks.get(request.name)
        if lock is None:
            self._check_room()
            self._grant(call, at)
        elif request.request and lock.request == request.request:
            self._grant_again(call, lock, at)
        else:
            self._stand(call, lock)

    def look(self, call: Call, at: Moment) -> None:
        """See what became of a call in line: its lock's lease may have ended, or its patience."""
        self._sweep(at)
        if call.is_done:
            return
        lock = self._locks.get(call.request.name)
        assert lock is not None, "somebody stands in line for a free lock"
        if at.now >= call.stands_until:
            call.fail(LockHeld(lock, ahead=self._ahead(call)))
            self._leave(call)
        else:
            call.sleeps_until = min(lock.until, call.stands_until)

    def give_up(self, call: Call, at: Moment) -> None:
        """Leave nothing of a call whose caller is gone: no place, and no lock that nobody knows of."""
        lock = call.lock
        if lock is None:
            self._leave(call)
        elif self._locks.get(lock.name) is lock:  # no copy of it: nobody else was told, and nobody has renewed it
            self._released.add(lock.name, lock.id, at.now)
            self._free(lock.name, at)
        elif self._former.get(by_id(lock)) is lock:
            self._released.add(lock.name, lock.id, at.now)
            self._former.pop(by_id(lock))

    def renew(self, name: str, lock_id: str, lease_s: float, node: str, at: Moment) -> Grant:
        """Count a lock's lease anew, from now. Raises NotRebuilt, NotHeld, LockUnavailable."""
        self._ready(at)
        lock = self._locks.get(name)
        if lock is None or lock.id != lock_id:
            raise NotHeld(name, lock_id)
        renewed = lock.through(node).lasting(lease(lease_s), at)
        self._check_may(renewed.node, renewed.until)
        self._locks.put(renewed)
        return Grant(renewed, lasts_s=renewed.until - at.now, again=True)

    def release(self, name: str, lock_id: str, at: Moment) -> Lock | None:
        """End a lock. None: it is not held under this id."""
        self._sweep(at)
        self._former.pop((name, lock_id))
        lock = self._locks.get(name)
        if lock is None or lock.id != lock_id:
            return None
        self._remember(lock, at)
        self._free(name, at)
        return lock

    def release_request(self, name: str, request: str, at: Moment) -> Lock | None:
        """End what a request was granted, and its place in line; from now on it is refused. None: it held no lock."""
        self._sweep(at)
        self._refused.add(name, request, at.now)
        line = self._lines.get(name)
        if line is not None and (call := line.under(request)) is not None:
            call.fail(AlreadyReleased(name, request))
            self._leave(call)
        lock = self._locks.get(name)
        return self.release(name, lock.id, at) if lock is not None and lock.request == request else None

    def forget(self, name: str, lock_id: str, at: Moment) -> None:
        """End a lock that was released elsewhere, and keep it from coming back, even if it was never known here."""
        self._sweep(at)
        self._released.add(name, lock_id, at.now)
        self._former.pop((name, lock_id))
        if self._is_held(name, lock_id):
            self._free(name, at)

    # --- losing the table, and getting it back --------------------------------------------------------------------------

    def drop(self, at: Moment) -> None:
        """Empty the table, and answer all who wait. Its locks are kept as former ones, to be told to who rebuilds."""
        self._former.lapsed(at.now)
        for lock in self._locks:
            if not lock.has_lapsed(at.now):
                self._former.put(lock)
        self._locks = Leases(by_name)
        self.is_rebuilt = False
        self.generation += 1
        lines, self._lines, self.waiting = self._lines, {}, 0
        for line in lines.values():
            for call in line.calls():
                call.fail(NotRebuilt())

    def rebuild(self, generation: int, locks: Iterable[Lock], epoch: int | None, at: Moment) -> list[Lock] | None:
        """Replace the table's locks, and grant from now on. None: it was dropped since `generation`; nothing was changed.

        Of two locks of one name, granted apart, the one that lasts longer is kept, or else the first; return the others.
        """
        if generation != self.generation:
            return None
        if epoch is not None:
            self.fences.begin(epoch)
        told = list(locks)
        for lock in told:
            self.fences.seen(lock.fence)
        known = self._known(told, at)
        kept: dict[str, Lock] = {}
        for lock in sorted(known, key=lambda lock: -lock.until):
            kept.setdefault(lock.name, lock)
        self._locks = Leases(by_name, kept.values())
        self.is_rebuilt = True
        for name in list(self._lines):  # nobody waits, unless the table was not dropped before
            self._hand_over(name, at)
        for lock in kept.values():
            self._see_to_first(lock)
        return [lock for lock in known if kept[lock.name] is not lock]

    def locks(self, at: Moment) -> list[Lock]:
        """Return what is held, by name."""
        self._sweep(at)
        return self._locks.ordered()

    def granted(self, at: Moment) -> list[Lock]:
        """Return what this table and the ones before have granted, and may still be held."""
        self._sweep(at)
        former = [lock for lock in self._former.ordered() if not self._is_refused(lock, at)]
        return former + [lock for lock in self._locks.ordered() if by_id(lock) not in self._former]

    # --- within ---------------------------------------------------------------------------------------------------------

    def _known(self, locks: Iterable[Lock], at: Moment) -> list[Lock]:
        """Return each lock that may still be held once, as it lasts longest: a copy read later may be from before a renewal."""
        found: dict[tuple[str, str], Lock] = {}
        for lock in locks:
            released = self._released.has(lock.name, lock.id, at.now) or self._is_refused(lock, at)
            if lock.has_lapsed(at.now) or released:
                continue
            if lock.until > found.setdefault(by_id(lock), lock).until:
                found[by_id(lock)] = lock
        return list(found.values())

    def _ready(self, at: Moment) -> None:
        if not self.is_rebuilt:
            raise NotRebuilt
        self._sweep(at)

    def _sweep(self, at: Moment) -> None:
        """Let everything go whose time has ended."""
        self._former.lapsed(at.now)
        self._released.prune(at.now)
        self._refused.prune(at.now)
        for lock in self._locks.lapsed(at.now):
            self._hand_over(lock.name, at)

    def _free(self, name: str, at: Moment) -> None:
        self._locks.pop(name)
        self._hand_over(name, at)

    def _hand_over(self, name: str, at: Moment) -> None:
        """Grant a free lock to the first in its line, or to the next, where that one may not have it."""
        while name in self._lines and name not in self._locks:
            call = self._lines[name].first()
            self._leave(call)
            try:
                self._grant(call, at)
            except LockUnavailable as error:
                call.fail(error)

    def _grant(self, call: Call, at: Moment) -> None:
        request = call.request
        self._check_may(request.node, at.now + lease(request.lease_s))
        lock = request.granted(self._new_id(), self.fences.next(), at)
        self._locks.put(lock)
        call.grant(lock, at.now)
        self._see_to_first(lock)

    def _grant_again(self, call: Call, lock: Lock, at: Moment) -> None:
        """Answer a request with the lock that it has. Its client may have come through another node since.

        A copy is kept: if an earlier call was handed the lock and gives up only now, it sees that it is not alone. A grant of a
        former epoch may have reached nobody, and the name may have been held by others since: its fence is of this epoch now.
        """
        fence = self.fences.next() if self.fences.is_former(lock.fence) else lock.fence
        same = replace(lock, node=call.request.node or lock.node, fence=fence)
        self._check_may(same.node, same.until)
        self._locks.put(same)
        call.grant(same, at.now, again=True)

    def _check_may(self, node: str, until: float) -> None:
        if not self._may_grant(node, until):
            raise LockUnavailable

    def _check_room(self) -> None:
        if len(self._locks) >= self._limits.locks:
            raise LimitReached("locks", self._limits.locks)

    def _stand(self, call: Call, lock: Lock) -> None:
        name, limits = call.request.name, self._limits
        line = self._lines.get(name) or Line()
        is_new = line.under(call.request.request) is None
        if call.request.wait_s <= 0:
            raise LockHeld(lock, ahead=line.ahead(call))
        if is_new and len(line) >= limits.waiters_a_name:
            raise LimitReached(f"waiting for lock {name}", limits.waiters_a_name)
        if is_new and self.waiting >= limits.waiters:
            raise LimitReached("waiting for locks", limits.waiters)
        self._lines[name] = line
        self.waiting += is_new
        call.sleeps_until = min(lock.until, call.stands_until)
        if (before := line.join(call)) is not None:
            before.fail(TakenOver(name, call.request.request))

    def _leave(self, call: Call) -> None:
        line = self._lines.get(call.request.name)
        if line is None or not line.leave(call):
            return
        self.waiting -= 1
        if not line:
            del self._lines[call.request.name]
        elif (lock := self._locks.get(call.request.name)) is not None:
            self._see_to_first(lock)

    def _see_to_first(self, lock: Lock) -> None:
        """See to it that the first in line, which keeps the time for all, is up when the lease ends."""
        line = self._lines.get(lock.name)
        if line is not None and (first := line.first()).sleeps_until > lock.until:
            first.wake()

    def _ahead(self, call: Call) -> int:
        return self._lines[call.request.name].ahead(call)

    def _is_held(self, name: str, lock_id: str) -> bool:
        lock = self._locks.get(name)
        return lock is not None and lock.id == lock_id

    def _is_refused(self, lock: Lock, at: Moment) -> bool:
        return bool(lock.request) and self._refused.has(lock.name, lock.request, at.now)

    def _remember(self, lock: Lock, at: Moment) -> None:
        self._released.add(lock.name, lock.id, at.now)
        if lock.request:
            self._refused.add(lock.name, lock.request, at.now)
