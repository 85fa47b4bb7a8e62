"""The lock table over a port: the rules of `state`, one caller at a time, and the waiting for a lock that is held."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Self

from .limits import Limits
from .line import Call
from .lock import Grant, Lock, Moment, Request
from .port import Port
from .state import MayGrant, NewId, State


def always(node: str, until: float) -> bool:
    """Let every lock be granted."""
    return True


class Locks:
    """A lock table. It is empty and not rebuilt at first: it grants nothing before `rebuild`.

    `new_id` makes the locks' ids. `may_grant(node, until)` is asked in the very moment of each grant and renewal, with the node
    that asks and the end of the lease on the port's clock: where it says no, nothing is granted, and LockUnavailable raised.
    `guard` keeps threads apart where they share the table; tasks of one loop need none, for nothing here waits under it.
    """

    def __init__(
        self,
        port: Port,
        *,
        new_id: NewId,
        may_grant: MayGrant = always,
        limits: Limits | None = None,
        epoch: int = 0,
        guard: AbstractContextManager[object] | None = None,
    ) -> None:
        self._port, self.limits = port, limits or Limits()
        self._guard = guard or nullcontext()
        self._state = State(new_id, may_grant, self.limits, epoch)

    def through(self, port: Port) -> Self:
        """Return the same table for callers of another kind: those of `port`. Its clocks should be the same."""
        other = copy(self)
        other._port = port
        return other

    def __repr__(self) -> str:
        state = "rebuilt" if self.is_rebuilt else "not rebuilt"
        return f"<{type(self).__name__} {state} generation={self.generation} epoch={self.epoch} waiting={self.waiting}>"

    @property
    def is_rebuilt(self) -> bool:
        """Tell whether the table may grant."""
        return self._state.is_rebuilt

    @property
    def generation(self) -> int:
        """How often the table was dropped. A rebuild names the one that it read the nodes for."""
        return self._state.generation

    @property
    def epoch(self) -> int:
        """The epoch of the fences."""
        return self._state.fences.epoch

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return self._state.waiting

    async def acquire(self, request: Request) -> Grant:
        """Grant a lock; where it is held, stand in line for it as long as the request says, first come, first served.

        A request repeated under its id gets the same grant, or its earlier call's place in line (which ends with TakenOver).
        Raises LockHeld, NotRebuilt, AlreadyReleased, LimitReached, LockUnavailable, NoName, BadLockRequest.
        """
        call = Call(self.limits.checked(request), self._port.now())
        with self._guard:
            self._state.ask(call, self._moment())
            if not call.is_done:
                call.event = self._port.event()
        if not call.is_done:
            await self._until_done(call)
        return call.answer

    async def renew(self, name: str, lock_id: str, lease_s: float = 0.0, *, node: str = "") -> Grant:
        """Count a lock's lease anew, from now; a shorter one changes nothing. With `node`, it was asked for there.

        Raises NotHeld where it was released or its lease has ended, NotRebuilt, LockUnavailable.
        """
        self.limits.check_lease(lease_s)
        with self._guard:
            return self._state.renew(name, lock_id, lease_s, node, self._moment())

    async def release(self, name: str, lock_id: str = "", *, request: str = "") -> Lock | None:
        """End a lock, by its id or its request's, and return it. None: it is not held under that id.

        By a request id, a place in line is given up too, and a call that is still on its way will be refused.
        """
        with self._guard:
            at = self._moment()
            by_request = self._state.release_request(name, request, at) if request else None
            return (self._state.release(name, lock_id, at) if lock_id else None) or by_request

    async def forget(self, name: str, lock_id: str) -> None:
        """End a lock that was released elsewhere. For ten minutes no rebuild brings it back."""
        with self._guard:
            self._state.forget(name, lock_id, self._moment())

    async def drop(self) -> None:
        """Stop granting: empty the table, and answer all who wait with NotRebuilt."""
        with self._guard:
            self._state.drop(self._moment())

    async def rebuild(self, generation: int, locks: Iterable[Lock], *, epoch: int | None = None) -> list[Lock] | None:
        """Replace the locks by what was read from the nodes, and begin to grant, with the fences of `epoch`.

        Of two locks of one name the one that lasts longer is kept; return the others, whose holders do not know of it.
        None: the table was dropped since `generation`, and nothing was changed. Raises BadEpoch for one that goes back.
        """
        with self._guard:
            return self._state.rebuild(generation, locks, epoch, self._moment())

    async def locks(self) -> list[Lock]:
        """Return what is held, by name."""
        with self._guard:
            return self._state.locks(self._moment())

    async def granted(self) -> list[Lock]:
        """Return what was granted here and may still be held, before a drop as well as after it: a rebuild needs it."""
        with self._guard:
            return self._state.granted(self._moment())

    async def _until_done(self, call: Call) -> None:
        try:
            while not call.is_done:
                await self._sleep(call)
                with self._guard:
                    self._state.look(call, self._moment())
        except BaseException:
            with self._guard:
                self._state.give_up(call, self._moment())
            raise

    async def _sleep(self, call: Call) -> None:
        assert call.event is not None
        if await call.event.wait(call.sleeps_until - self._port.now()):
            call.event.clear()

    def _moment(self) -> Moment:
        return Moment(self._port.now(), self._port.wall_ms())
