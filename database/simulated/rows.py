"""The verb on the rows of one partition, as Cassandra keeps them: each cell with its own end, and the mark of an insert."""

from __future__ import annotations

from math import floor, inf

from ..batch import Absent, Batch, Slice, Verb, Write
from ..table import Key, Table, Value

Cells = dict[str, tuple[Value, float]]  # a value, and when it ends
NOTHING: tuple[Value, float] = (None, inf)


class Stored:
    """A row: its cells, and until when an insert makes it exist without any. Never changed: a write makes a new one."""

    __slots__ = ("_lasting", "cells", "exists_until", "marked_until")

    def __init__(self, cells: Cells, marked_until: float = -inf) -> None:
        self.cells, self.marked_until, self.exists_until = cells, marked_until, marked_until
        for value, end in cells.values():
            if value is not None and end > self.exists_until:
                self.exists_until = end
        self._lasting: dict[str, Value] | None = None

    def get(self, column: str, now: float) -> Value:
        """Return what a cell shows."""
        value, end = self.cells.get(column, NOTHING)
        return value if end > now else None

    def whole(self, table: Table, key: Key, now: float) -> dict[str, Value]:
        """Return all its columns. What ends some day is looked at each time."""
        if self._lasting is not None:
            return self._lasting
        whole, lasts = dict(zip(table.key, key, strict=True)), True
        for column in table.values:
            value, end = self.cells.get(column, NOTHING)
            whole[column] = value if end > now else None
            lasts = lasts and end == inf
        if lasts:
            self._lasting = whole
        return whole


Rows = dict[Key, Stored]
_INSERT, _DELETE = Verb.INSERT, Verb.DELETE


def holds(rows: Rows, write: Write, now: float) -> bool:
    """Tell whether a write's condition holds."""
    condition = write.condition
    if condition is None:
        return True
    row = rows.get(write.key)
    if isinstance(condition, Absent):
        return row is None or row.exists_until <= now
    cells = {} if row is None else row.cells
    for column, values in condition.columns.items():
        value, end = cells.get(column, NOTHING)
        if (value if end > now else None) not in values:
            return False
    return True


def written(rows: Rows, writes: tuple[Write, ...], now: float) -> Rows:
    """Return the rows after a batch. A TTL counts whole seconds on the server's clock, from the second that has begun."""
    after = dict(rows)
    for write in writes:
        if write.verb is _DELETE:
            after.pop(write.key, None)
            continue
        end = inf if write.ttl_s is None else floor(now) + write.ttl_s
        row = after.get(write.key)
        cells = {} if row is None else dict(row.cells)
        for column, value in write.values.items():
            cells[column] = (value, end)
        marked_until = end if write.verb is _INSERT else -inf if row is None else row.marked_until
        after[write.key] = Stored(cells, marked_until)
    return after


def shown(rows: Rows, batch: Batch, now: float) -> dict[Key, dict[str, Value]]:
    """Return what a refusal shows: each row that carries a condition and exists."""
    guarded = {write.key for write in batch.writes if write.condition is not None}
    return {
        key: row.whole(batch.table, batch.partition + key, now)
        for key in guarded
        if (row := rows.get(key)) is not None and row.exists_until > now
    }


def sliced(rows: Rows, table: Table, partition: Key, part: Slice, now: float) -> list[dict[str, Value]]:
    """Return the rows of a slice, in clustering order."""
    found, ttl_of, ttl = [], part.ttl_of, f"ttl({part.ttl_of})"
    for key in sorted(_within(rows, part)):
        row = rows[key]
        if row.exists_until > now:
            whole = row.whole(table, partition + key, now)
            found.append(whole if ttl_of is None else {**whole, ttl: _left_s(row, ttl_of, now)})
            if len(found) == part.limit:
                break
    return found


def _within(rows: Rows, part: Slice) -> list[Key]:
    prefix, among, after = part.prefix, part.among, part.after
    fixed = len(prefix)
    if fixed == 1:
        first = prefix[0]
        keys = [key for key in rows if key[0] == first]
    else:
        keys = [key for key in rows if key[:fixed] == prefix] if fixed else list(rows)
    if among:
        return [key for key in keys if key[fixed] in among]
    if after is not None:
        return [key for key in keys if key[fixed] > after]  # type: ignore[operator]
    return keys


def _left_s(row: Stored, column: str, now: float) -> int | None:
    value, end = row.cells.get(column, NOTHING)
    return None if value is None or end == inf or end <= now else int(end) - floor(now)
