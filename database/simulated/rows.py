"""The verb on the rows of one partition, as Cassandra keeps them: each cell with its own end, and the mark of an insert."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import floor, inf
from typing import NamedTuple

from ..batch import Absent, Batch, Slice, Verb, Write
from ..table import Key, Table, Value

Cells = dict[str, tuple[Value, float]]  # a value, and when it ends


class Stored(NamedTuple):
    """A row: its cells, and until when an insert makes it exist without any. Never changed: a write makes a new one."""

    cells: Cells
    marked_until: float = -inf

    def get(self, column: str, now: float) -> Value:
        """Return what a cell shows."""
        value, end = self.cells.get(column, (None, inf))
        return value if end > now else None

    def exists(self, now: float) -> bool:
        """Tell whether there is such a row."""
        if self.marked_until > now:
            return True
        return any(end > now and value is not None for value, end in self.cells.values())


Rows = dict[Key, Stored]


def holds(rows: Rows, write: Write, now: float) -> bool:
    """Tell whether a write's condition holds."""
    condition = write.condition
    if condition is None:
        return True
    row = rows.get(write.key)
    if isinstance(condition, Absent):
        return row is None or not row.exists(now)
    if row is None:
        return all(None in values for values in condition.columns.values())
    return all(row.get(column, now) in values for column, values in condition.columns.items())


def written(rows: Rows, writes: tuple[Write, ...], now: float) -> Rows:
    """Return the rows after a batch. A TTL counts whole seconds on the server's clock, from the second that has begun."""
    after = dict(rows)
    for write in writes:
        if write.verb is Verb.DELETE:
            after.pop(write.key, None)
        else:
            end = inf if write.ttl_s is None else floor(now) + write.ttl_s
            cells, marked_until = after.get(write.key, Stored({}))
            cells = {**cells, **{column: (value, end) for column, value in write.values.items()}}
            after[write.key] = Stored(cells, end if write.verb is Verb.INSERT else marked_until)
    return after


def shown(rows: Rows, batch: Batch, now: float) -> dict[Key, dict[str, Value]]:
    """Return what a refusal shows: each row that carries a condition and exists."""
    guarded = {write.key for write in batch.writes if write.condition is not None}
    return {
        key: _whole(batch.table, batch.partition, key, row, now)
        for key in guarded
        if (row := rows.get(key)) is not None and row.exists(now)
    }


def sliced(rows: Rows, table: Table, partition: Key, part: Slice, now: float) -> Iterator[dict[str, Value]]:
    """Return the rows of a slice, in clustering order."""
    left = inf if part.limit is None else part.limit
    for key in sorted(_within(rows, part)):
        row = rows[key]
        if left and row.exists(now):
            left -= 1
            whole = _whole(table, partition, key, row, now)
            if part.ttl_of is not None:
                whole[f"ttl({part.ttl_of})"] = _left_s(row, part.ttl_of, now)
            yield whole


def _within(rows: Rows, part: Slice) -> list[Key]:
    fixed, among, after = len(part.prefix), part.among, part.after
    keys = [key for key in rows if key[:fixed] == part.prefix] if fixed else list(rows)
    if among:
        return [key for key in keys if key[fixed] in among]
    if after is not None:
        return [key for key in keys if key[fixed] > after]  # type: ignore[operator]
    return keys


def _whole(table: Table, partition: Key, key: Key, row: Stored, now: float) -> dict[str, Value]:
    whole: dict[str, Value] = dict(zip(table.key, partition + key, strict=True))
    for column in table.values:
        whole[column] = row.get(column, now)
    return whole


def _left_s(row: Stored, column: str, now: float) -> int | None:
    value, end = row.cells.get(column, (None, inf))
    return None if value is None or end == inf or end <= now else int(end) - floor(now)


def ends(writes: tuple[Write, ...], now: float) -> Mapping[float, None]:
    """Return when something that these writes set comes to its end."""
    return dict.fromkeys(floor(now) + write.ttl_s for write in writes if write.ttl_s is not None)
