"""The heart: from what is known of a bucket and what callers ask, one guarded batch. Pure: no I/O, no clock, no chance.

What each write guards, and why, is docs/protocol.md; in short: a token row names its holder and its version, a direct grant
and a release to nobody name the last ticket, an enqueue the free mark too, and a slot goes to the head of the line first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from ..database import Value, Write, delete, insert, update
from ..database.batch import MOST_WRITES
from ..owner import FREE
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
from .rows import (
    HEAD_KEY,
    NO_TICKET,
    QUEUE_KEY,
    owner_key,
    ticket_text,
    token_key,
    waiter_key,
    waiting_owner_key,
)
from .state import State, Token, Waiter

PROVISIONAL_S = 5  # how long a slot handed to another process waits for it to confirm
WAITER_S = 30  # how long a waiter that nobody renews keeps its place
MOST_BYTES = 64 * 1024
NOT_LOOKED_FOR = -1
ROOM = 8  # the writes that one more operation may take, the queue and head rows included


@dataclass(frozen=True, slots=True)
class Ask:
    """An operation as its bucket sees it. `fresh`: the state was read after it came, so that it may be told No.

    `unsure`: an earlier attempt of it may have applied; `tried` has the tokens and versions that such attempts wrote.
    `stood`: it has stood in line, so a slot that its owner holds was handed to it.
    """

    operation: Operation
    fresh: bool = True
    unsure: bool = False
    tried: frozenset[tuple[int, int]] = frozenset()
    stood: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """What a plan takes from its surroundings: who plans, the clocks, the next random mark, where to take tokens from."""

    client_id: str
    now: float
    wall_ms: int
    mark: int
    place: int = 0
    leases: Mapping[str, int | None] = field(default_factory=dict)  # of the owners that wait in this process


@dataclass(slots=True)
class Plan:
    """A batch's writes, what they make of the state, and what each operation is answered.

    `at_once` needs no write; `after` holds when the batch applied; `later` has the operations left for the next plan, and
    `look` tells that some of those need a newer state first.
    """

    writes: list[Write] = field(default_factory=list)
    tokens: dict[int, Token] = field(default_factory=dict)
    joined: list[Waiter] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    last: int | None = None
    mark: int | None = None
    head: int | None = None
    at_once: list[tuple[int, Answer]] = field(default_factory=list)
    after: list[tuple[int, Answer]] = field(default_factory=list)
    served: list[tuple[str, Granted]] = field(default_factory=list)  # owners that waited in this process
    later: list[int] = field(default_factory=list)
    look: bool = False

    def apply(self, state: State) -> None:
        """Make the state what the applied batch made of the partition."""
        for ticket in self.left:
            state.leave(ticket)
        for number, token in self.tokens.items():
            state.put(number, token)
        for waiter in self.joined:
            state.join(waiter)
        state.last = state.last if self.last is None else self.last
        if self.mark is not None:
            state.mark, state.mark_is_ours = self.mark, True
        state.head = state.head if self.head is None else self.head


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
        self._free = self._free_tokens()
        self._next_free: int | None = NOT_LOOKED_FOR
        self._left: set[int] = set()  # the tickets that leave the line in this batch
        self._names_last = self._names_mark = False
        self._bytes = 0
        self._served: set[int] = set()  # acquires that were answered by serving the line

    def run(self) -> Plan:
        """Give back first, then serve the line, then the newcomers."""
        self._each((Cancel, Release, Renew), self._settle_old)
        self._serve_line()
        self._each((Stay, Acquire), self._settle_new)
        for number, owner_id in self._released:
            self._release_to_nobody(number, owner_id)
        self._write_queue_row()
        self._write_head_row()
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
        pending = 2 * len(self._released) + 2
        return len(self._plan.writes) + pending + ROOM <= MOST_WRITES and self._bytes <= MOST_BYTES

    # --- giving back, renewing, leaving the line ---------------------------------------------------------------------

    def _settle_old(self, index: int, ask: Ask) -> None:
        operation, state = ask.operation, self._state
        if isinstance(operation, Cancel):
            self._cancel(index, ask, operation, state.waiting.get(operation.owner_id))
            return
        number = state.held.get(operation.owner_id)
        if number is None and isinstance(operation, Release) and self._is_left_behind(operation.owner_id):
            self._touch(operation.owner_id)
            self._dequeue(state.line[state.waiting[operation.owner_id]])
            self._plan.after.append((index, NotHeld()))
        elif number is None:
            gone = Released(None) if isinstance(operation, Release) and ask.unsure else NotHeld()
            self._no(index, ask, gone)
        elif (fence := state.tokens[number].version or 0) != (getattr(operation, "fence", None) or fence):
            self._no(index, ask, Stale(number, fence))
        elif isinstance(operation, Release):
            self._touch(operation.owner_id)
            self._released.append((number, operation.owner_id))
            self._plan.writes.append(delete(owner_key(operation.owner_id)))
            self._plan.after.append((index, Released(number)))
        elif isinstance(operation, Renew):
            self._hold_anew(number, operation.owner_id, operation.lease_s)
            self._plan.after.append((index, Renewed(number, fence)))

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
                self._no(index, ask, self._granted_before(ask, number))
            else:
                self._acquire_again(index, ask, operation, number)
            return
        if ticket is None or (operation.keep and not self._is_left_behind(operation.owner_id)):
            self._no(index, ask, Cancelled(0 if ask.unsure and number is None else None))
            return
        self._touch(ask.operation.owner_id)
        self._dequeue(self._state.line[ticket])
        self._plan.after.append((index, Cancelled(ticket)))

    # --- the line ----------------------------------------------------------------------------------------------------

    def _serve_line(self) -> None:
        """Give what is free to those who wait longest, whoever they are: everyone helps."""
        if not self._state.line:
            return
        asked = {a.operation.owner_id: i for i, a in enumerate(self._asks) if isinstance(a.operation, Acquire)}
        for waiter in sorted(self._state.line.values(), key=lambda w: w.ticket):
            if waiter.ticket in self._left:
                continue
            has_slot = waiter.owner_id in self._state.held  # by another way
            if not (has_slot or self._grantable()) or not self._has_room(Acquire(waiter.owner_id)):
                return
            self._dequeue(waiter)
            if not has_slot:
                self._serve(waiter, asked.get(waiter.owner_id))

    def _serve(self, waiter: Waiter, index: int | None) -> None:
        """Grant the next slot to a waiter: to the call that asks for it, and to those who wait here for its owner."""
        owner_id, leases = waiter.owner_id, self._setting.leases
        if index is None:
            granted = self._grant(owner_id, leases.get(owner_id, PROVISIONAL_S))
        else:
            operation = self._asks[index].operation
            assert isinstance(operation, Acquire)
            self._served.add(index)
            granted = self._grant(owner_id, operation.lease_s)
            self._plan.after.append((index, granted))
        if owner_id in leases:
            self._plan.served.append((owner_id, granted))

    def _dequeue(self, waiter: Waiter) -> None:
        self._left.add(waiter.ticket)
        self._plan.left.append(waiter.ticket)
        key = waiter_key(waiter.ticket, waiter.client_id)
        self._plan.writes.append(delete(key, expect={"holder": (waiter.owner_id,)}))
        self._plan.writes.append(delete(waiting_owner_key(waiter.owner_id)))

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
            elif self._line_is_empty() and self._grantable():
                self._names_last = True
                self._plan.after.append((index, self._grant(operation.owner_id, operation.lease_s)))
            elif operation.wait and state.mark_is_ours:
                self._later(index)
            elif operation.wait:
                self._plan.after.append((index, self._enqueue(operation.owner_id)))
            else:
                self._full(index, ask)

    def _full(self, index: int, ask: Ask) -> None:
        """Tell that no slot is free: where this very batch takes the last one, only when it has applied."""
        taken = sum(self._state.tokens[number].holder is None for number in self._plan.tokens)
        answer = Full(len(self._state.held) + taken, self._waiting_count())
        if taken and ask.fresh:
            self._plan.after.append((index, answer))
        else:
            self._no(index, ask, answer)

    def _acquire_again(self, index: int, ask: Ask, operation: Acquire | Cancel, number: int) -> None:
        token = self._state.tokens[number]
        answer = self._granted_before(ask, number)
        if operation.lease_s is None and token.ends_at is None:
            self._no(index, ask, answer)
        else:  # a slot handed over for a few seconds becomes a hold of the length asked for
            self._hold_anew(number, operation.owner_id, operation.lease_s)
            self._plan.after.append((index, answer))

    def _granted_before(self, ask: Ask, number: int) -> Granted:
        version = self._state.tokens[number].version or 0
        return Granted(number, version, again=not ask.stood and (number, version) not in ask.tried)

    def _acquire_waiting(self, index: int, ask: Ask, operation: Acquire, waiter: Waiter) -> None:
        if not operation.wait:
            self._no(index, ask, Full(len(self._state.held), self._waiting_count()))
        elif waiter.client_id == self._setting.client_id:
            self._plan.at_once.append((index, Queued(waiter.ticket)))
        else:
            self._take_over(waiter)
            self._plan.after.append((index, Queued(waiter.ticket)))

    def _enqueue(self, owner_id: str) -> Queued:
        """Stand at the end of the line. The free mark says that no slot has become free since we saw none."""
        self._names_last = self._names_mark = True
        self._touch(owner_id)
        ticket = (self._state.last if self._plan.last is None else self._plan.last) + 1
        self._plan.last = ticket
        self._insert_waiter(Waiter(ticket, self._setting.client_id, owner_id, self._setting.wall_ms), new=True)
        return Queued(ticket)

    def _take_over(self, waiter: Waiter) -> None:
        """Keep a place that another client's process stood in for the same owner."""
        self._touch(waiter.owner_id)
        old = waiter_key(waiter.ticket, waiter.client_id)
        self._plan.writes.append(delete(old, expect={"holder": (waiter.owner_id,)}))
        self._insert_waiter(replace(waiter, client_id=self._setting.client_id), new=False)

    def _stay(self, index: int, ask: Ask, ticket: int | None) -> None:
        if ticket is None or ticket in self._left:
            self._no(index, ask, Cancelled(None))
            return
        waiter = self._state.line[ticket]
        self._touch(waiter.owner_id)
        key = waiter_key(ticket, waiter.client_id)
        self._plan.writes += [
            update(key, {"holder": waiter.owner_id}, expect={"holder": (waiter.owner_id,)}, ttl_s=WAITER_S),
            insert(key, {"updated_time": waiter.since_ms}, ttl_s=WAITER_S),
            insert(waiting_owner_key(waiter.owner_id), {"holder": ticket_text(ticket)}, ttl_s=WAITER_S),
        ]
        self._plan.after.append((index, Stayed()))

    def _insert_waiter(self, waiter: Waiter, *, new: bool) -> None:
        key, values = waiter_key(waiter.ticket, waiter.client_id), _waiter_values(waiter)
        ticket = {"holder": ticket_text(waiter.ticket)}
        self._plan.writes.append(insert(key, values, absent=True, ttl_s=WAITER_S))
        self._plan.writes.append(insert(waiting_owner_key(waiter.owner_id), ticket, absent=new, ttl_s=WAITER_S))
        self._plan.joined.append(waiter)

    # --- token rows --------------------------------------------------------------------------------------------------

    def _grantable(self) -> bool:
        if not self._released and self._next_free == NOT_LOOKED_FOR:
            self._next_free = next(self._free, None)
        return bool(self._released) or self._next_free is not None

    def _grant(self, owner_id: str, lease_s: int | None) -> Granted:
        """Give the owner a token that is being given back, or else a free one."""
        if self._released:
            number, by = self._released.pop(0)
            holders: tuple[Value, ...] = (by,)
        else:
            number, holders = self._take_free(), (FREE, None)
        self._touch(owner_id)
        version = self._next_version(number)
        self._write_token(number, owner_id, version, holders, lease_s)
        values = {"held_token": number, "updated_time": version}
        self._plan.writes.append(insert(owner_key(owner_id), values, absent=True, ttl_s=lease_s))
        return Granted(number, version)

    def _release_to_nobody(self, number: int, owner_id: str) -> None:
        self._names_last = True
        self._plan.mark = self._setting.mark
        self._write_token(number, FREE, self._next_version(number), (owner_id,), None)

    def _write_token(
        self, number: int, holder: str, version: int, holders: tuple[Value, ...], lease_s: int | None
    ) -> None:
        key, expect = token_key(number), {"holder": holders, "updated_time": (self._state.tokens[number].version,)}
        if lease_s is None:
            self._plan.writes.append(update(key, {"holder": holder, "updated_time": version}, expect=expect))
        else:  # the version outlives the lease
            self._plan.writes.append(update(key, {"holder": holder}, expect=expect, ttl_s=lease_s))
            self._plan.writes.append(update(key, {"updated_time": version}))
        nobody = holder == FREE
        mark = self._state.tokens[number].mark
        self._plan.tokens[number] = Token(None if nobody else holder, version, self._end_of(lease_s), mark)

    def _hold_anew(self, number: int, owner_id: str, lease_s: int | None) -> None:
        """Write a hold again under its version and a new mark, with another lease.

        The owner row is inserted whole: no half of it ends.
        """
        self._touch(owner_id)
        key, token, mark = token_key(number), self._state.tokens[number], {"held_token": self._setting.mark}
        expect = {"holder": (owner_id,), "updated_time": (token.version,), "held_token": (token.mark,)}
        if lease_s is None:
            self._plan.writes.append(update(key, {"holder": owner_id, **mark}, expect=expect))
        else:  # the mark outlives the lease
            self._plan.writes.append(update(key, {"holder": owner_id}, expect=expect, ttl_s=lease_s))
            self._plan.writes.append(update(key, mark))
        values = {"held_token": number, "updated_time": token.version}
        self._plan.writes.append(insert(owner_key(owner_id), values, ttl_s=lease_s))
        self._plan.tokens[number] = Token(owner_id, token.version, self._end_of(lease_s), self._setting.mark)

    # --- the queue and head rows -------------------------------------------------------------------------------------

    def _write_queue_row(self) -> None:
        """Name the last ticket, by writing it again or the next one: nobody queued since the state was read."""
        if not self._names_last:
            return
        state, values = self._state, {"holder": ticket_text(self._plan.last or self._state.last)}
        seen: tuple[Value, ...] = (NO_TICKET, None) if state.last == 0 else (ticket_text(state.last),)
        expect: dict[str, tuple[Value, ...]] = {"holder": seen}
        if self._names_mark:
            expect["held_token"] = (state.mark,)
        marked = {} if self._plan.mark is None else {"held_token": self._plan.mark}
        self._plan.writes.append(update(QUEUE_KEY, {**values, **marked}, expect=expect))

    def _write_head_row(self) -> None:
        """Move the head to the last of those who left from the front, so that nobody reads their tombstones again."""
        for ticket in sorted(self._state.line) if self._left else ():
            if ticket not in self._left:
                break
            self._plan.head = ticket
        if self._plan.head is not None:
            self._plan.writes.append(update(HEAD_KEY, {"holder": ticket_text(self._plan.head)}))

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

    def _line_is_empty(self) -> bool:
        return not self._plan.joined and len(self._left) == len(self._state.line)

    def _waiting_count(self) -> int:
        return len(self._state.line) - len(self._plan.left) + len(self._plan.joined)

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


def _waiter_values(waiter: Waiter) -> dict[str, Value]:
    return {"holder": waiter.owner_id, "updated_time": waiter.since_ms}
