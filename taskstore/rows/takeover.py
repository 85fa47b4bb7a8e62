"""Taking a journal over: the next epoch, first in the store's row, then in the segment that is being written."""

from __future__ import annotations

from dataclasses import dataclass

from ...database import Port, Row, Slice
from ..errors import Fenced
from .guard import Guard, Lost, created
from .tables import JOURNAL, SEGMENT_HEAD, STORE_ROW, STORES, number

FIRST_SEGMENT = 1
SEGMENT_NAMES = ("epoch", "version")


@dataclass(frozen=True, slots=True)
class Span:
    """A segment's commits: those behind `since`, up to `last`."""

    since: int
    last: int


@dataclass(slots=True)
class Taken:
    """A journal that is ours: the guards of its row and of its last segment, and which commits each segment has."""

    store: Guard
    segment: Guard
    number: int
    spans: dict[int, Span]


async def take_over(port: Port, store: str, writer: str, deadline: float) -> Taken:
    """Take a journal over from whoever has it. Raises Fenced when somebody took it from us, Unsettled, DatabaseError."""
    guard = await _next_epoch(port, store, writer, deadline)
    epoch, first = number(guard.shown, "epoch") or 0, number(guard.shown, "first_segment") or FIRST_SEGMENT
    segment, spans, last = first, dict[int, Span](), 0
    while True:
        row = await head_of(port, store, segment)
        if row is None:
            row = await created(port, JOURNAL, (store, segment), SEGMENT_HEAD, new_head(epoch, last), deadline)
            row = new_head(epoch, last) if row is None else await head_of(port, store, segment) or {}
        last = number(row, "last") or 0
        spans[segment] = Span(number(row, "since") or 0, last)
        following = number(row, "following")
        if following is not None:
            segment = following
        elif (number(row, "epoch") or 0) > epoch:
            raise Fenced
        elif (taken := await _taken(port, store, segment, row, epoch, deadline)) is not None:
            return Taken(guard, taken, segment, spans)


def new_head(epoch: int, last: int) -> Row:
    """Return the head row of a segment that begins behind a commit."""
    return {"epoch": epoch, "version": 0, "last": last, "since": last}


async def head_of(port: Port, store: str, segment: int) -> Row | None:
    """Read a segment's head row: after this, all commits up to its last are visible to plain reads."""
    rows = await port.read(JOURNAL, (store, segment), (Slice(SEGMENT_HEAD),), serial=True)
    return rows[0] if rows and rows[0].get("epoch") is not None else None


def segment_guard(port: Port, store: str, segment: int, row: Row) -> Guard:
    """Return the guard of a segment whose head row was read."""
    return Guard(port, JOURNAL, (store, segment), SEGMENT_HEAD, row, SEGMENT_NAMES, "version")


async def _next_epoch(port: Port, store: str, writer: str, deadline: float) -> Guard:
    while True:
        rows = await port.read(STORES, (store,), (Slice(STORE_ROW),), serial=True)
        row: Row = rows[0] if rows else {}
        guard = Guard(port, STORES, (store,), STORE_ROW, row, ("epoch", "writer", "version"), "version")
        first = number(row, "first_segment") or FIRST_SEGMENT
        epoch = 1 + (number(row, "epoch") or 0)
        try:
            await guard.change({"epoch": epoch, "writer": writer, "first_segment": first}, (), deadline)
        except Lost:
            continue  # somebody else opens it in this moment: the later one gets it
        return guard


async def _taken(port: Port, store: str, segment: int, row: Row, epoch: int, deadline: float) -> Guard | None:
    """Put our epoch in a segment's head row; None when its writer has changed it meanwhile."""
    guard = segment_guard(port, store, segment, row)
    if number(row, "epoch") == epoch:
        return guard  # we have just made it
    try:
        await guard.change({"epoch": epoch}, (), deadline)
    except Lost:
        return None
    return guard
