"""Writes and slices as CQL text with their values in order.

Values are bound by position: by name, `SET v = ? IF v = ?` would get one value twice.
"""

from __future__ import annotations

from msgspec import Struct

from ..batch import Absent, Batch, Condition, Expect, Slice, Verb, Write
from ..table import Key, Table, Value

_INSERT = Verb.INSERT  # asked for every write: a global is found faster than an enum's member


class Statement(Struct, frozen=True):
    """A text to prepare and the values to bind: `before` the partition's, which come between, and `behind` them.

    One text serves every write of the same form, and one partition all writes of a batch.
    """

    text: str
    before: tuple[Value, ...]
    behind: tuple[Value, ...]


def batch_statements(keyspace: str, batch: Batch) -> list[Statement]:
    """Render the writes of a batch."""
    table, statements = batch.table, list[Statement]()
    texts = _texts.setdefault((keyspace, table.name, table.key), {})
    for write in batch.writes:
        shape = (write.verb, tuple(write.values), _guard_shape(write.condition), write.ttl_s is None)
        text = texts.get(shape)
        if text is None:
            text = texts[shape] = _write_text(_place(keyspace, table), table, write)
        statements.append(Statement(text, *_write_values(write)))
    return statements


# A batch has a hundred writes of five forms: spelling each anew would take longer than all the rest.
_texts: dict[tuple[str, str, tuple[str, ...]], dict[tuple[object, ...], str]] = {}


def slice_statement(keyspace: str, table: Table, partition: Key, part: Slice) -> Statement:
    """Render the reading of one slice. Raises ValueError for a slice, or a partition, that the table cannot have."""
    part.check(table, partition)
    where, bound = _where(table, part.prefix), part.prefix
    if part.among:
        marks = ", ".join("?" * len(part.among))
        where, bound = f"{where} AND {_next_column(table, part)} IN ({marks})", (*bound, *part.among)
    if part.after is not None:
        where, bound = f"{where} AND {_next_column(table, part)} > ?", (*bound, part.after)
    # Each column by name: a prepared SELECT * would keep the columns it saw first.
    columns = (*table.columns, *([f"TTL({part.ttl_of})"] if part.ttl_of else []))
    text = f"SELECT {', '.join(columns)} FROM {_place(keyspace, table)} WHERE {where}"
    if part.limit is None:
        return Statement(text, (), bound)
    return Statement(f"{text} LIMIT ?", (), (*bound, part.limit))


def _place(keyspace: str, table: Table) -> str:
    """Name a table with its keyspace: the server warns of prepared statements that depend on a session's."""
    quoted = keyspace if keyspace.islower() else f'"{keyspace}"'
    return f"{quoted}.{table.name}"


def _next_column(table: Table, part: Slice) -> str:
    return list(table.clustering)[len(part.prefix)]


def _write_text(place: str, table: Table, write: Write) -> str:
    ttl = "" if write.ttl_s is None else " USING TTL ?"
    where = " AND ".join(f"{column} = ?" for column in table.key)
    match write.verb:
        case Verb.INSERT:
            columns = (*table.key, *write.values)
            guard = " IF NOT EXISTS" if isinstance(write.condition, Absent) else ""
            marks = ", ".join("?" * len(columns))
            return f"INSERT INTO {place} ({', '.join(columns)}) VALUES ({marks}){guard}{ttl}"
        case Verb.UPDATE:
            sets = ", ".join(f"{column} = ?" for column in write.values)
            return f"UPDATE {place}{ttl} SET {sets} WHERE {where}{_guard(write)}"
        case Verb.DELETE:
            return f"DELETE FROM {place} WHERE {where}{_guard(write)}"


def _write_values(write: Write) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Return the values of a write in the order of its text's marks: before the partition's, and behind them."""
    values, ttl = write.values.values(), () if write.ttl_s is None else (write.ttl_s,)
    if write.verb is _INSERT:
        return (), (*write.key, *values, *ttl)
    condition = write.condition
    if not isinstance(condition, Expect):
        return (*ttl, *values), write.key
    guarded = [value for column in condition.columns.values() for value in column if value is not None]
    return (*ttl, *values), (*write.key, *guarded)


def _where(table: Table, clustering: Key) -> str:
    return " AND ".join(f"{column} = ?" for column in table.key[: len(table.partition) + len(clustering)])


def _guard(write: Write) -> str:
    if not isinstance(write.condition, Expect):
        return ""
    return " IF " + " AND ".join(_term(column, values) for column, values in write.condition.columns.items())


def _guard_shape(condition: Condition) -> object:
    """Return what of a guard its text depends on: the columns, and where a null stands among their values."""
    if not isinstance(condition, Expect):
        return condition
    shape: list[object] = []
    for column, values in condition.columns.items():
        shape.append(column)
        shape += [value is None for value in values]
    return tuple(shape)


def _term(column: str, values: tuple[Value, ...]) -> str:
    # A null inside a bound list arrives as empty bytes, so null is written out.
    marks = ["null" if value is None else "?" for value in values]
    return f"{column} = {marks[0]}" if len(marks) == 1 else f"{column} IN ({', '.join(marks)})"
