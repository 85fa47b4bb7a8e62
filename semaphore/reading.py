"""Reading a bucket's partition: for its loop, for listings, for deletion."""

from __future__ import annotations

from ..database import Port, Row, Slice
from .layout import BucketRef
from .rows import SNAPSHOT, TOKENS, waiters_behind
from .state import State, Waiter, from_rows, waiter_from_row

MOST_READINGS = 3  # of a line that grows while it is read


async def read_bucket(
    port: Port, ref: BucketRef, before: State | None, deadline: float, *, serial: bool
) -> State | None:
    """Read the line, then the tokens, so that who is handed a slot between the two shows as a holder.

    Both anew where somebody has queued meanwhile, and serially: what shows a new last ticket need not show its waiter.
    Where that never ends, the last ticket stays the one that the line was read for, and guards whatever is planned.
    Returns None when the deadline comes first. `before` is what was known until now.
    """
    last, head = (0, 0) if before is None else (before.last, before.head)
    for _ in range(MOST_READINGS):
        began_at = port.now()
        line = await _slice(port, ref, waiters_behind(head), deadline, serial=serial) if last > head else []
        rows = None if line is None else await _slice(port, ref, SNAPSHOT, deadline, serial=serial)
        if line is None or rows is None:
            return None
        state = from_rows(rows, ref.tokens, began_at=began_at)
        if state.last == last or state.last <= state.head:
            break
        state.last, last, head, serial = last, state.last, state.head, True
    for waiter in filter(None, map(waiter_from_row, line or ())):
        if waiter.ticket > state.head:
            state.join(waiter)
    state.serial = serial
    return state


async def _slice(port: Port, ref: BucketRef, part: Slice, deadline: float, *, serial: bool) -> list[Row] | None:
    pending = port.begin_read(TOKENS, ref.partition, (part,), serial=serial)
    return pending.result() if await pending.wait(deadline - port.now()) else None


async def look(port: Port, ref: BucketRef, *, serial: bool) -> State:
    """Read a bucket's tokens and single rows; not its line."""
    began_at = port.now()
    rows = await port.read(TOKENS, ref.partition, (SNAPSHOT,), serial=serial)
    return from_rows(rows, ref.tokens, began_at=began_at)


async def waiters(port: Port, ref: BucketRef, head: int, *, serial: bool) -> list[Waiter]:
    """Read who stands in a bucket's line, behind the head, in order."""
    rows = await port.read(TOKENS, ref.partition, (waiters_behind(head),), serial=serial)
    return [waiter for waiter in map(waiter_from_row, rows) if waiter is not None]
