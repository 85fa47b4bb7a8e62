"""The heart: from what is known of a bucket and what callers ask, one guarded batch. Pure: no I/O, no clock, no chance.

What each write guards, and why, is docs/protocol.md; in short: a token row names its holder and its version, a direct grant
and a release to nobody name the last ticket, an enqueue the free mark too, and a slot goes to the head of the line first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from msgspec.structs import replace

from ..database import Value, delete, insert, update
from ..database.batch import MOST_WRITES
from ..owner import FREE
from .line import Line
from .mark import handed_to, is_kept, kept, taken
from .operations import (
    Acquire,
    Answer,
    Cancel,
    Cancelled,
    Full,
    Granted,
    NotHeld,
    Operation,
    Queued,
    Release,
    Released,
    Renew,
    Renewed,
    Stale,
    Stay,
    Stayed,
)
from .planned import PROVISIONAL_S, Ask, Hold, Plan, Setting
from .rows import owner_key, token_key
from .state import State, Token, Waiter

MOST_BYTES = 64 * 1024
NOT_LOOKED_FOR = -1
ROOM = 8  # the writes that one more operation may take, the queue and head rows included


_Settle = Callable[[int, Ask], None]


def plan(state: State, asks: Sequence[Ask], setting: Setting) -> Plan:
    """Plan one batch for as many of the operations as fit; answers are given by the operation's index."""
    return _Planner(state, asks, setting).run()


class _Planner:
    """One run of `plan`. An owner has one operation a batch, and a row one write that sets its holder."""

    def __init__(self, state: State, asks: Sequence[Ask], setting: Setting) -> None:
        self._state, self._asks, self._setting = state, asks, setting
        self._plan = Plan()
        self._busy: set[str] = set()
        self._released: list[tuple[int, str]] = []  # tokens given back in this batch, and by whom
        self._untold: set[int] = set()  # of these, tokens for which nobody may be told meanwhile that they are held
        self._free = self._free_tokens()
        self._next_free: int | None = NOT_LOOKED_FOR
        self._line = Line(state, setting, self._plan)
        self._bytes = 0
        self._served: set[int] = set()  # acquires that were answered by serving the line

    def run(self) -> Plan:
        """Give back first, then serve the line, then the newcomers."""
        self._each((Cancel, Release, Renew), self._settle_old)
        self._serve_line()
        self._each((Stay, Acquire), self._settle_new)
        for number, owner_id in self._released:
            self._release_to_nobody(number, owner_id)
        self._line.write_rows()
        return self._plan

    def _each(self, kinds: tuple[type, ...], settle: _Settle) -> None:
        for index, ask in enumerate(self._asks):
            if not isinstance(ask.operation, kinds) or index in self._served:
                continue
            if ask.operation.owner_id in self._busy or not self._has_room(ask.operation):
                self._put_off(index)
            else:
                settle(index, ask)

    def _has_room(self, operation: Operation) -> bool:
        self._bytes += 400 + 4 * len(operation.owner_id)
        pending = len(self._released) + 2  # their token rows, the queue row and the head row
        return len(self._plan.writes) + pending + ROOM <= MOST_WRITES and self._bytes <= MOST_BYTES

    # --- giving back, renewing, leaving the line ---------------------------------------------------------------------

    def _settle_old(self, index: int, ask: Ask) -> None:
        operation, number = ask.operation, self._state.held.get(ask.operation.owner_id)
        if isinstance(operation, Cancel):
            self._cancel(index, ask, operation, self._state.waiting.get(operation.owner_id))
        elif number is None:
            self._not_held(index, ask)
        elif (fence := self._state.tokens[number].version or 0) != (getattr(operation, "fence", None) or fence):
            self._no(index, ask, Stale(number, fence))
        elif isinstance(operation, Release):
            self._release(index, ask, operation, number)
        elif isinstance(operation, Renew):
            self._hold_anew(number, operation, kept(self._setting.mark))
            self._plan.after.append((index, Renewed(number, fence)))

    def _not_held(self, index: int, ask: Ask) -> None:
        owner_id, is_release = ask.operation.owner_id, isinstance(ask.operation, Release)
        if is_release and self._is_left_behind(owner_id):
            self._touch(owner_id)
            self._line.leave(self._state.line[self._state.waiting[owner_id]])
            self._plan.after.append((index, NotHeld()))
        else:
            self._no(index, ask, Released(None) if is_release and ask.unsure else NotHeld())

    def _release(self, index: int, ask: Ask, operation: Release, number: int) -> None:
        if operation.untold and self._hold(number) not in self._setting.ours:
            self._no(index, ask, NotHeld())  # another process has told somebody of it
            return
        self._touch(operation.owner_id)
        self._untold |= {number} if operation.untold else set()
        self._released.append((number, operation.owner_id))
        self._plan.writes.append(delete(owner_key(operation.owner_id)))
        self._plan.after.append((index, Released(number)))

    def _is_left_behind(self, owner_id: str) -> bool:
        """Tell whether an owner's place is one of this process that nobody waits in any more."""
        ticket = self._state.waiting.get(owner_id)
        if ticket is None or owner_id in self._setting.leases:
            return False
        return self._state.line[ticket].client_id == self._setting.client_id and not any(
            isinstance(op := ask.operation, Acquire) and op.wait and op.owner_id == owner_id for ask in self._asks
        )

    def _cancel(self, index: int, ask: Ask, operation: Cancel, ticket: int | None) -> None:
        number = self._state.held.get(operation.owner_id)
        if operation.keep and number is not None:
            if operation.unwanted:
                self._no(
                    index, ask, self._granted_before(ask, number) if self._is_ours(ask, number) else Cancelled(None)
                )
            else:
                self._acquire_again(index, ask, operation, number)
            return
        if ticket is None or (operation.keep and not self._is_left_behind(operation.owner_id)):
            self._no(index, ask, Cancelled(0 if ask.unsure and number is None else None))
            return
        self._touch(ask.operation.owner_id)
        self._line.leave(self._state.line[ticket])
        self._plan.after.append((index, Cancelled(ticket)))

    # --- the line ----------------------------------------------------------------------------------------------------

    def _serve_line(self) -> None:
        """Give what is free to those who wait longest, whoever they are: everyone helps."""
        if not self._state.line:
            return
        asked = {a.operation.owner_id: i for i, a in enumerate(self._asks) if isinstance(a.operation, Acquire)}
        for waiter in sorted(self._state.line.values(), key=lambda w: w.ticket):
            if self._line.has_left(waiter.ticket):
                continue
            has_slot = waiter.owner_id in self._state.held  # by another way
            if not (has_slot or self._grantable()) or not self._has_room(Acquire(waiter.owner_id)):
                return
            self._line.leave(waiter)
            if not has_slot:
                self._serve(waiter, asked.get(waiter.owner_id))

    def _serve(self, waiter: Waiter, index: int | None) -> None:
        """Grant the next slot to a waiter: to the call that asks for it, and to those who wait here for its owner."""
        owner_id, leases = waiter.owner_id, self._setting.leases
        if index is None:
            mark = None if owner_id in leases else handed_to(waiter.client_id)
            granted = self._grant(owner_id, leases.get(owner_id, PROVISIONAL_S), mark)
        else:
            operation = self._asks[index].operation
            assert isinstance(operation, Acquire)
            self._served.add(index)
            granted = self._grant(owner_id, operation.lease_s)
            self._plan.after.append((index, granted))
        if owner_id in leases:
            self._plan.served.append((owner_id, granted))

    # --- newcomers ---------------------------------------------------------------------------------------------------

    def _settle_new(self, index: int, ask: Ask) -> None:
        operation, state = ask.operation, self._state
        ticket = state.waiting.get(operation.owner_id)
        if isinstance(operation, Stay):
            self._stay(index, ask, ticket)
        elif isinstance(operation, Acquire):
            if (number := state.held.get(operation.owner_id)) is not None:
                self._acquire_again(index, ask, operation, number)
            elif ticket is not None:
                self._acquire_waiting(index, ask, operation, state.line[ticket])
            elif self._line.is_empty and self._grantable():
                self._line.names_last = True
                self._plan.after.append((index, self._grant(operation.owner_id, operation.lease_s)))
            elif operation.wait and state.mark_is_ours:
                self._later(index)
            elif operation.wait:
                self._touch(operation.owner_id)
                self._plan.after.append((index, self._line.join(operation.owner_id)))
            else:
                self._full(index, ask)

    def _full(self, index: int, ask: Ask) -> None:
        """Tell that no slot is free: where this very batch takes the last one, only when it has applied."""
        taken = sum(self._state.tokens[number].holder is None for number in self._plan.tokens)
        answer = Full(len(self._state.held) + taken, self._line.count)
        if taken and ask.fresh:
            self._plan.after.append((index, answer))
        else:
            self._no(index, ask, answer)

    def _acquire_again(self, index: int, ask: Ask, operation: Acquire | Cancel, number: int) -> None:
        token, answer, ours = self._state.tokens[number], self._granted_before(ask, number), self._is_ours(ask, number)
        if operation.lease_s is None and token.ends_at is None and (ours or is_kept(token.mark)):
            self._no(index, ask, answer)
        else:  # a slot handed over becomes a hold of the length asked for; one that is another process's is not given back
            mark = (taken if ours else kept)(self._setting.mark)
            self._hold_anew(number, operation, mark)
            self._plan.after.append((index, replace(answer, mark=mark)))

    def _granted_before(self, ask: Ask, number: int) -> Granted:
        token, version, mark = self._hold(number)
        tried = any(hold[:2] == (token, version) for hold in ask.tried)
        return Granted(token, version, again=not (ask.stood or tried or self._is_handed_to_us(number)), mark=mark)

    def _is_ours(self, ask: Ask, number: int) -> bool:
        """Tell whether a hold was granted to callers of this process, and nobody of another one was told of it."""
        hold = self._hold(number)
        return hold in ask.tried or hold in self._setting.ours or self._is_handed_to_us(number)

    def _is_handed_to_us(self, number: int) -> bool:
        return self._state.tokens[number].mark == handed_to(self._setting.client_id)

    def _hold(self, number: int) -> Hold:
        token = self._state.tokens[number]
        return (number, token.version or 0, token.mark)

    def _acquire_waiting(self, index: int, ask: Ask, operation: Acquire, waiter: Waiter) -> None:
        if not operation.wait:
            self._no(index, ask, Full(len(self._state.held), self._line.count))
        elif waiter.client_id == self._setting.client_id:
            self._plan.at_once.append((index, Queued(waiter.ticket)))
        else:
            self._touch(waiter.owner_id)
            self._line.take_over(waiter)
            self._plan.after.append((index, Queued(waiter.ticket)))

    def _stay(self, index: int, ask: Ask, ticket: int | None) -> None:
        if ticket is None or self._line.has_left(ticket):
            self._no(index, ask, Cancelled(None))
            return
        self._touch(ask.operation.owner_id)
        self._line.stay(self._state.line[ticket])
        self._plan.after.append((index, Stayed()))

    # --- token rows --------------------------------------------------------------------------------------------------

    def _grantable(self) -> bool:
        if not self._released and self._next_free == NOT_LOOKED_FOR:
            self._next_free = next(self._free, None)
        return bool(self._released) or self._next_free is not None

    def _grant(self, owner_id: str, lease_s: int | None, mark: int | None = None) -> Granted:
        """Give the owner a token that is being given back, or else a free one. Without a mark, it is ours to give back."""
        mark = taken(self._setting.mark) if mark is None else mark
        if self._released:
            number, by = self._released.pop(0)
            holders: tuple[Value, ...] = (by,)
        else:
            number, holders = self._take_free(), (FREE, None)
        self._touch(owner_id)
        version = self._next_version(number)
        self._write_token(number, owner_id, version, holders, lease_s, {"held_token": mark})
        values = {"held_token": number, "updated_time": version}
        self._plan.writes.append(insert(owner_key(owner_id), values, absent=True, ttl_s=lease_s))
        return Granted(number, version, mark=mark)

    def _release_to_nobody(self, number: int, owner_id: str) -> None:
        self._line.names_last = True
        self._plan.mark = self._setting.mark
        self._write_token(number, FREE, self._next_version(number), (owner_id,), None, {})

    def _write_token(
        self,
        number: int,
        holder: str,
        version: int,
        holders: tuple[Value, ...],
        lease_s: int | None,
        mark: dict[str, int | None],
    ) -> None:
        before = self._state.tokens[number]
        expect: dict[str, tuple[Value, ...]] = {"holder": holders, "updated_time": (before.version,)}
        if number in self._untold:
            expect["held_token"] = (before.mark,)
        self._set_holder(number, holder, {"updated_time": version, **mark}, expect, lease_s)
        held_by = None if holder == FREE else holder
        self._plan.tokens[number] = Token(held_by, version, self._end_of(lease_s), mark.get("held_token", before.mark))

    def _hold_anew(self, number: int, operation: Acquire | Cancel | Renew, mark: int) -> None:
        """Write a hold again under its version and a new mark, with another lease.

        The owner row is inserted whole: no half of it ends.
        """
        owner_id, lease_s, token = operation.owner_id, operation.lease_s, self._state.tokens[number]
        self._touch(owner_id)
        expect: dict[str, tuple[Value, ...]] = {
            "holder": (owner_id,),
            "updated_time": (token.version,),
            "held_token": (token.mark,),
        }
        self._set_holder(number, owner_id, {"held_token": mark}, expect, lease_s)
        values = {"held_token": number, "updated_time": token.version}
        self._plan.writes.append(insert(owner_key(owner_id), values, ttl_s=lease_s))
        self._plan.tokens[number] = Token(owner_id, token.version, self._end_of(lease_s), mark)

    def _set_holder(
        self,
        number: int,
        holder: str,
        lasting: dict[str, Value],
        expect: dict[str, tuple[Value, ...]],
        lease_s: int | None,
    ) -> None:
        """Write a token row. Its version and its mark outlive a lease."""
        key, writes = token_key(number), self._plan.writes
        if lease_s is None:
            writes.append(update(key, {"holder": holder, **lasting}, expect=expect))
        else:
            writes += [update(key, {"holder": holder}, expect=expect, ttl_s=lease_s), update(key, lasting)]

    # --- small things ------------------------------------------------------------------------------------------------

    def _no(self, index: int, ask: Ask, answer: Answer) -> None:
        """Answer without a write, where the state is new enough to say so."""
        if ask.fresh:
            self._plan.at_once.append((index, answer))
        else:
            self._later(index)

    def _later(self, index: int) -> None:
        """Leave an operation to the next plan, from a newer state."""
        self._put_off(index)
        self._plan.look = True

    def _put_off(self, index: int) -> None:
        """Leave an operation to the next plan, and those that come after it for the same owner too."""
        self._plan.later.append(index)
        self._touch(self._asks[index].operation.owner_id)

    def _touch(self, owner_id: str) -> None:
        self._busy.add(owner_id)

    def _take_free(self) -> int:
        assert self._next_free is not None
        number, self._next_free = self._next_free, NOT_LOOKED_FOR
        return number

    def _free_tokens(self) -> Iterator[int]:
        """Yield the free tokens, from our own place on: two processes that begin at one refuse each other's batches."""
        tokens, numbers = self._state.tokens, self._state.numbers
        start = bisect_left(numbers, self._setting.place)
        return (n for n in chain(islice(numbers, start, None), islice(numbers, start)) if tokens[n].holder is None)

    def _next_version(self, number: int) -> int:
        return max(self._setting.wall_ms, (self._state.tokens[number].version or 0) + 1)

    def _end_of(self, lease_s: int | None) -> float | None:
        return None if lease_s is None else self._setting.now + lease_s
