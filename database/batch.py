"""The one verb: guarded writes to one partition, applied all or none.

    Write   = one row's key, the values to set (or its deletion), a TTL, and what must hold of the row
    Batch   = one table, one partition, some writes, at least one of them guarded
    Outcome = Applied | Refused(the rows seen) | Unknown(cause)

A write without a condition rides along: it applies when the batch does. Every condition sees the state before the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from .table import Key, Row, Table, Value

MOST_WRITES = 150  # a larger batch costs every replica more than it saves: spec, section 1.3
MOST_TTL_S = 20 * 365 * 24 * 3600  # Cassandra's own bound
ASKS = "an insert may ask for Absent, an update for Expect"


class Verb(StrEnum):
    """How a write touches its row. An insert also makes the row exist by itself, whatever its values become."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


_INSERT, _UPDATE = Verb.INSERT, Verb.UPDATE  # asked for every write: a global is found faster than an enum's member


class Absent(Struct, frozen=True):
    """The row must not exist."""


ABSENT = Absent()


class Expect(Struct, frozen=True):
    """Each named column must equal one of its values. None is null, and what a missing row shows."""

    columns: Mapping[str, tuple[Value, ...]]

    def met_by(self, row: Row | None) -> bool:
        """Tell whether a row (None: a missing one) meets the condition."""
        seen = row or {}
        return all(seen.get(column) in values for column, values in self.columns.items())


Condition = Absent | Expect | None


class Write(Struct, frozen=True):
    """One write to the row at `key` (its clustering values). `ttl_s` covers the values set here, and an insert's row."""

    verb: Verb
    key: Key
    values: Mapping[str, Value] = {}
    condition: Condition = None
    ttl_s: int | None = None

    def __post_init__(self) -> None:
        verb, condition, ttl_s = self.verb, self.condition, self.ttl_s
        if verb is _UPDATE and not self.values:
            raise ValueError(f"an update of {self.key} sets nothing: CQL has no such statement")
        if isinstance(condition, Expect):
            if verb is _INSERT:
                raise ValueError(f"insert of {self.key}: {ASKS}")
            if not condition.columns:
                raise ValueError(f"a condition on {self.key} that names no column: leave it out")
        elif condition is not None and verb is _UPDATE:
            raise ValueError(f"update of {self.key}: {ASKS}")
        if verb is not _INSERT and verb is not _UPDATE:
            self._check_deletion()
        if ttl_s is not None and not (isinstance(ttl_s, int) and 1 <= ttl_s <= MOST_TTL_S):
            raise ValueError(f"a TTL is a whole number of seconds, at least one and at most 20 years, not {ttl_s!r}")

    def _check_deletion(self) -> None:
        if self.values or self.ttl_s is not None or isinstance(self.condition, Absent):
            raise ValueError(f"a deletion of {self.key} takes no values, no TTL, and no Absent")


def insert(key: Key, values: Mapping[str, Value], *, absent: bool = False, ttl_s: int | None = None) -> Write:
    """Write a whole row; with `absent`, only where there is none."""
    return Write(_INSERT, key, values, ABSENT if absent else None, ttl_s)


def update(
    key: Key,
    values: Mapping[str, Value],
    *,
    expect: Mapping[str, tuple[Value, ...]] | None = None,
    ttl_s: int | None = None,
) -> Write:
    """Set values of a row (a missing one comes into being); with `expect`, only where the columns hold one of these."""
    return Write(_UPDATE, key, values, Expect(expect) if expect is not None else None, ttl_s)


def delete(key: Key, *, expect: Mapping[str, tuple[Value, ...]] | None = None) -> Write:
    """Delete a row; with `expect`, only where the columns hold one of these."""
    return Write(Verb.DELETE, key, {}, Expect(expect) if expect is not None else None)


class Batch(Struct, frozen=True):
    """Writes to one partition of one table, at least one of them guarded."""

    table: Table
    partition: Key
    writes: tuple[Write, ...]

    def __post_init__(self) -> None:
        table, writes = self.table, self.writes
        table.check_partition(self.partition)
        if all(write.condition is None for write in writes):
            raise ValueError(f"{table.name}: a batch without a guard: nobody could tell whether it was late")
        if len(writes) > MOST_WRITES:
            raise ValueError(f"{table.name}: {len(writes)} writes in one batch, at most {MOST_WRITES}")
        for write in writes:
            _check_columns(table, write)
        if len({write.key for write in writes}) < len(writes):
            _check_rows(table, writes)


def _check_columns(table: Table, write: Write) -> None:
    """Refuse what is not the whole key of a row, a column that is no value column, and a value that one does not keep."""
    table.check_row(write.key)
    table.check_values(write.values)
    if isinstance(write.condition, Expect):
        table.check_choices(write.condition.columns)


def _check_rows(table: Table, writes: tuple[Write, ...]) -> None:
    rows: dict[Key, list[Write]] = {}
    for write in writes:
        rows.setdefault(write.key, []).append(write)
    for key, of_row in rows.items():
        if len(of_row) > 1:
            _check_row(table, key, of_row)


def _check_row(table: Table, key: Key, writes: list[Write]) -> None:
    """Refuse what CQL refuses or leaves open of several writes to one row, and two ways of life for it.

    In Cassandra a row's deletion takes with it whatever else the batch writes to the row, in any order. Of two inserts the
    one with the TTL would decide when the row ends.
    """
    if len({type(write.condition) for write in writes if write.condition is not None}) > 1:
        raise ValueError(f"{table.name}: two kinds of condition on the row {key}")
    columns = [column for write in writes for column in write.values]
    if twice := {column for column in columns if columns.count(column) > 1}:
        raise ValueError(f"{table.name}: {', '.join(sorted(twice))} of the row {key} is set twice in one batch")
    if len({write.verb is Verb.DELETE for write in writes}) > 1:
        raise ValueError(f"{table.name}: the row {key} is deleted and written in one batch")
    if len({write.ttl_s for write in writes if write.verb is Verb.INSERT}) > 1:
        raise ValueError(f"{table.name}: the row {key} is inserted twice, with different TTLs")


class Slice(Struct, frozen=True):
    """Some rows of one partition, in clustering order, read at one moment.

    `prefix` fixes the first clustering columns; the next one is one of `among`, or greater than `after`; `limit` bounds
    the rows. With `ttl_of`, each row also has `ttl(column)`: the seconds that this cell still lives, None for ever.
    """

    prefix: Key = ()
    among: tuple[Value, ...] = ()
    after: Value = None
    limit: int | None = None
    ttl_of: str | None = None

    def __post_init__(self) -> None:
        if self.among and self.after is not None:
            raise ValueError("a slice has `among` or `after`, not both")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"a slice of at most {self.limit} rows: leave it out")

    def check(self, table: Table, partition: Key) -> None:
        """Raise ValueError where the table has no such keys, or no cell of its own to tell the TTL of."""
        table.check_partition(partition)
        bounds: list[tuple[Value, ...]] = [(value,) for value in self.prefix]
        if self.among or self.after is not None:
            bounds.append(self.among or (self.after,))
        if len(bounds) > len(table.clustering):
            raise ValueError(f"{table.name}: {self} bounds more columns than the key of a row has")
        for column, values in zip(table.clustering, bounds, strict=False):
            for value in values:
                table.check(column, value)
        if self.ttl_of is not None and self.ttl_of not in table.values:
            raise ValueError(f"{table.name} has no value column {self.ttl_of}")


class Applied(Struct, frozen=True):
    """The whole batch took effect."""


class Refused(Struct, frozen=True):
    """Nothing took effect.

    `rows` has, by clustering key, each row that exists and carried a condition, with the columns of the conditions at least.
    A row that a condition names and that is not here does not exist.
    """

    rows: Mapping[Key, Row]


class Unknown(Struct, frozen=True):
    """The database did not say. The batch may have applied, may still apply, or never.

    `answered` tells whether the server itself said so; after its silence the attempt may still be on its way.
    """

    cause: Exception
    answered: bool = True


Outcome = Applied | Refused | Unknown
