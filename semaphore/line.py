"""A bucket's line as one plan changes it: who joins, stays and leaves; and the queue and head rows, which tell of it."""

from __future__ import annotations

from msgspec.structs import replace

from ..database import Value, delete, insert, update
from .operations import Queued
from .planned import WAITER_S, Plan, Setting
from .rows import HEAD_KEY, NO_TICKET, QUEUE_KEY, ticket_text, waiter_key, waiting_owner_key
from .state import State, Waiter


class Line:
    """Writes the rows of those who wait. Set `names_last` where nobody may have queued since the state was read."""

    def __init__(self, state: State, setting: Setting, plan: Plan) -> None:
        self._state, self._setting, self._plan = state, setting, plan
        self._left: set[int] = set()  # the tickets that leave in this batch
        self.names_last = self._names_mark = False

    @property
    def is_empty(self) -> bool:
        """Tell whether nobody waits once the batch has applied."""
        return not self._plan.joined and len(self._left) == len(self._state.line)

    @property
    def count(self) -> int:
        """How many wait once the batch has applied."""
        return len(self._state.line) - len(self._left) + len(self._plan.joined)

    def has_left(self, ticket: int) -> bool:
        """Tell whether a ticket leaves in this batch."""
        return ticket in self._left

    def join(self, owner_id: str) -> Queued:
        """Stand at the end of the line. The free mark says that no slot has become free since we saw none."""
        self.names_last = self._names_mark = True
        ticket = (self._state.last if self._plan.last is None else self._plan.last) + 1
        self._plan.last = ticket
        self._insert(Waiter(ticket, self._setting.client_id, owner_id, self._setting.wall_ms), new=True)
        return Queued(ticket)

    def take_over(self, waiter: Waiter) -> None:
        """Keep a place that another client's process stood in for the same owner."""
        old = waiter_key(waiter.ticket, waiter.client_id)
        self._plan.writes.append(delete(old, expect={"holder": (waiter.owner_id,)}))
        self._insert(replace(waiter, client_id=self._setting.client_id), new=False)

    def stay(self, waiter: Waiter) -> None:
        """Write a place again: its rows last longer."""
        key = waiter_key(waiter.ticket, waiter.client_id)
        self._plan.writes += [
            update(key, {"holder": waiter.owner_id}, expect={"holder": (waiter.owner_id,)}, ttl_s=WAITER_S),
            insert(key, {"updated_time": waiter.since_ms}, ttl_s=WAITER_S),
            insert(waiting_owner_key(waiter.owner_id), {"holder": ticket_text(waiter.ticket)}, ttl_s=WAITER_S),
        ]

    def leave(self, waiter: Waiter) -> None:
        """Take a place out of the line."""
        self._left.add(waiter.ticket)
        self._plan.left.append(waiter.ticket)
        key = waiter_key(waiter.ticket, waiter.client_id)
        self._plan.writes.append(delete(key, expect={"holder": (waiter.owner_id,)}))
        self._plan.writes.append(delete(waiting_owner_key(waiter.owner_id)))

    def write_rows(self) -> None:
        """Write the queue row and the head row, where the plan's other writes want them."""
        if self.names_last:
            self._write_queue_row()
        self._write_head_row()

    def _insert(self, waiter: Waiter, *, new: bool) -> None:
        key, values = waiter_key(waiter.ticket, waiter.client_id), _values(waiter)
        ticket = {"holder": ticket_text(waiter.ticket)}
        self._plan.writes.append(insert(key, values, absent=True, ttl_s=WAITER_S))
        self._plan.writes.append(insert(waiting_owner_key(waiter.owner_id), ticket, absent=new, ttl_s=WAITER_S))
        self._plan.joined.append(waiter)

    def _write_queue_row(self) -> None:
        """Name the last ticket, by writing it again or the next one: nobody queued since the state was read."""
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


def _values(waiter: Waiter) -> dict[str, Value]:
    return {"holder": waiter.owner_id, "updated_time": waiter.since_ms}
