"""Reading a bucket's partition outside its loop: for listings, for deletion."""

from __future__ import annotations

from ..database import Port
from .layout import BucketRef
from .rows import SNAPSHOT, TOKENS, waiters_behind
from .state import State, Waiter, from_rows, waiter_from_row


async def look(port: Port, ref: BucketRef, *, serial: bool) -> State:
    """Read a bucket's tokens and single rows; not its line."""
    began_at = port.now()
    rows = await port.read(TOKENS, ref.partition, (SNAPSHOT,), serial=serial)
    return from_rows(rows, ref.tokens, began_at=began_at)


async def waiters(port: Port, ref: BucketRef, head: int, *, serial: bool) -> list[Waiter]:
    """Read who stands in a bucket's line, behind the head, in order."""
    rows = await port.read(TOKENS, ref.partition, (waiters_behind(head),), serial=serial)
    return [waiter for waiter in map(waiter_from_row, rows) if waiter is not None]
