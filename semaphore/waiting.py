"""Those who stand in a bucket's line through this process. Only the bucket's leader changes it."""

from __future__ import annotations

from collections.abc import Iterator

from ..database import Port
from .call import Call
from .errors import WaitCancelled
from .operations import Acquire, Cancel, Cancelled, Granted, Stay
from .planned import PROVISIONAL_S, WAITER_S, Hold
from .state import State

SHORTEST_POLL_S, LONGEST_POLL_S = 0.02, 0.25
STAY_S = WAITER_S / 3  # how often the rows of those who wait here are renewed
LEAVING_S = 10.0  # how long a caller whose patience has ended waits for its place to be given up


class WaitingHere:
    """Who waits, by owner; how often somebody looks for all of them; and when their rows are renewed."""

    def __init__(self, port: Port, semaphore: str) -> None:
        self._port, self._semaphore = port, semaphore
        self._calls: dict[str, list[Call]] = {}
        self._leaving: list[Call] = []
        self.is_puzzled = False  # the last reading showed somebody neither in line nor with a slot
        self._poll_s = SHORTEST_POLL_S
        self._stay_at = self._kept_at = self._looked_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __iter__(self) -> Iterator[Call]:
        return (call for calls in list(self._calls.values()) for call in calls)

    def leases(self) -> dict[str, int | None]:
        """Return the lease that each owner here asked for: a slot handed to it needs no confirmation."""
        asked = ((owner_id, call.operation) for owner_id, calls in self._calls.items() for call in reversed(calls))
        return {owner_id: operation.lease_s for owner_id, operation in asked if isinstance(operation, Acquire)}

    def join(self, call: Call, ticket: int, seen_at: float, *, kept: bool) -> None:
        """Let a call stand in line. Several may wait for one owner: they share its place and its slot.

        The place was there at `seen_at`; `kept` tells that its rows were written then, and not only found.
        """
        now = self._port.now()
        if not self._calls:
            self._poll_s, self._looked_at = SHORTEST_POLL_S, seen_at
            self._stay_at, self._kept_at = now + STAY_S, seen_at
        if call.operation.owner_id not in self._calls:
            self._looked_at = min(self._looked_at, seen_at)
            if not kept:  # nobody knows when its rows end
                self._stay_at, self._kept_at = now, float("-inf")
        self._calls[call.operation.owner_id] = calls = self._calls.get(call.operation.owner_id) or []
        call.ticket, call.stood = ticket, True
        calls.append(call)

    def serve(self, owner_id: str, granted: Granted) -> int:
        """Answer those who wait for an owner. Return how many there were."""
        calls = self._calls.pop(owner_id, [])
        for call in calls:
            call.succeed(granted)
        return len(calls)

    def note_tried(self, owner_id: str, hold: Hold) -> None:
        """Note that a hold may have been granted to those who wait for an owner."""
        for call in self._calls.get(owner_id, ()):
            call.may_have_granted(hold)

    def fail_all(self, error: Exception) -> None:
        """Answer everybody with an error."""
        calls, self._calls = self._calls, {}
        for waiting in calls.values():
            for call in waiting:
                call.fail(error)

    def leave_soon(self, call: Call) -> None:
        """Note that a caller's patience has ended: from now on it waits for the database, and not for ever."""
        call.ticket, call.deadline = None, self._port.now() + LEAVING_S
        self._leaving.append(call)

    @property
    def leaving(self) -> bool:
        """Tell whether somebody wants to leave."""
        return bool(self._leaving)

    def leavers(self) -> Iterator[Call]:
        """Yield those whose patience has ended, as calls that give the place up; others may still wait in it.

        Each stays noted here until it was taken over: an interrupt loses none.
        """
        while self._leaving:
            call = self._leaving[-1]
            if not call.done and self._takes_leave(call):
                yield call
            self._leaving.remove(call)

    def _takes_leave(self, call: Call) -> bool:
        """Take a call out of the line, and tell whether there is anything left to ask for it."""
        calls, operation = self._calls.get(call.operation.owner_id, []), call.operation
        if call in calls:
            self._remove(call, calls)
        if calls and not isinstance(operation, Acquire):
            call.succeed(Cancelled(None))  # its caller is gone, and others keep the place
            return False
        if isinstance(operation, Acquire):
            keep = Cancel(operation.owner_id, keep=True, lease_s=operation.lease_s)
            call.operation = Acquire(operation.owner_id, operation.lease_s) if calls else keep
        return True

    def tend(self, state: State) -> list[Call]:
        """Compare with a new reading. Return the calls that must ask again, and those that keep the others' places."""
        now, steady = self._port.now(), self._is_steady(self._port.now())
        self.is_puzzled, again = False, list[Call]()
        for owner_id, calls in list(self._calls.items()):
            if owner_id not in state.held and owner_id in state.waiting:
                continue
            if owner_id in state.held or not steady:
                again += self._taken_out(calls)
            elif state.serial:
                for call in self._taken_out(calls):
                    call.fail(WaitCancelled(self._semaphore, owner_id))
            else:  # a slot handed over may not show yet, where the end of the wait does
                self.is_puzzled = True
        if not self.is_puzzled:
            self._looked_at = state.as_of
        self._poll_s = SHORTEST_POLL_S if again else min(LONGEST_POLL_S, self._poll_s * 1.5)
        return again + (self._stays(now) if self._calls and now >= self._stay_at else [])

    def poll_pause_s(self, chance: float) -> float:
        """Return how long to wait before the next look, at most LONGEST_POLL_S; `chance` is in 0..1."""
        return self._poll_s * (0.5 + chance / 2)

    def kept(self, began_at: float) -> None:
        """Note that rows were renewed by a batch that left at `began_at`."""
        self._kept_at = began_at

    def _is_steady(self, now: float) -> bool:
        """Tell whether a place that is gone was taken away: neither its row nor a slot handed to it can have ended unseen."""
        handed_s = min((lease_s for lease_s in self.leases().values() if lease_s), default=PROVISIONAL_S)
        return now - self._kept_at < WAITER_S - 1 and now - self._looked_at < min(PROVISIONAL_S, handed_s) - 1

    def _stays(self, now: float) -> list[Call]:
        self._stay_at = now + STAY_S
        stays = [Call.begun(self._port, Stay(owner_id), now + STAY_S) for owner_id in self._calls]
        for call in stays:
            call.attended = not call.claim.take()  # as if sent once: nobody waits for it
        return stays

    def _taken_out(self, calls: list[Call]) -> list[Call]:
        taken = list(calls)
        for call in taken:
            self._remove(call, calls)
        return taken

    def _remove(self, call: Call, calls: list[Call]) -> None:
        calls.remove(call)
        call.ticket = None
        if not calls:
            self._calls.pop(call.operation.owner_id, None)
