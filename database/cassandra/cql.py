"""Writes and slices as CQL text with their values in order.

Values are bound by position: by name, `SET v = ? IF v = ?` would get one value twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..batch import Absent, Expect, Slice, Verb, Write
from ..table import Key, Table, Value


@dataclass(frozen=True, slots=True)
class Statement:
    """A text to prepare and the values to bind. One text serves every write of the same form."""

    text: str
    values: tuple[Value, ...]


def write_statement(table: Table, partition: Key, write: Write) -> Statement:
    """Render one write of a batch."""
    match write.verb:
        case Verb.INSERT:
            return _insert(table, partition, write)
        case Verb.UPDATE:
            return _update(table, partition, write)
        case Verb.DELETE:
            where, bound = _where(table, partition, write.key)
            guard, guard_values = _guard(write)
            return Statement(f"DELETE FROM {table.name} WHERE {where}{guard}", (*bound, *guard_values))


def slice_statement(table: Table, partition: Key, part: Slice) -> Statement:
    """Render the reading of one slice. Raises ValueError for a slice that the table cannot have."""
    part.check(table, partition)
    where, bound = _where(table, partition, part.prefix)
    if part.among:
        marks = ", ".join("?" * len(part.among))
        where, bound = f"{where} AND {_next_column(table, part)} IN ({marks})", (*bound, *part.among)
    if part.after is not None:
        where, bound = f"{where} AND {_next_column(table, part)} > ?", (*bound, part.after)
    # Each column by name: a prepared SELECT * would keep the columns it saw first.
    columns = (*table.columns, *([f"TTL({part.ttl_of})"] if part.ttl_of else []))
    text = f"SELECT {', '.join(columns)} FROM {table.name} WHERE {where}"
    return Statement(text, bound) if part.limit is None else Statement(f"{text} LIMIT ?", (*bound, part.limit))


def _next_column(table: Table, part: Slice) -> str:
    return list(table.clustering)[len(part.prefix)]


def _insert(table: Table, partition: Key, write: Write) -> Statement:
    columns = (*table.key, *write.values)
    text = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    guard = " IF NOT EXISTS" if isinstance(write.condition, Absent) else ""
    ttl, ttl_values = _ttl(write)
    return Statement(f"{text}{guard}{ttl}", (*partition, *write.key, *write.values.values(), *ttl_values))


def _update(table: Table, partition: Key, write: Write) -> Statement:
    ttl, ttl_values = _ttl(write)
    where, bound = _where(table, partition, write.key)
    guard, guard_values = _guard(write)
    return Statement(
        f"UPDATE {table.name}{ttl} SET {', '.join(f'{column} = ?' for column in write.values)} WHERE {where}{guard}",
        (*ttl_values, *write.values.values(), *bound, *guard_values),
    )


def _where(table: Table, partition: Key, clustering: Iterable[Value]) -> tuple[str, tuple[Value, ...]]:
    bound = (*partition, *clustering)
    return " AND ".join(f"{column} = ?" for column in table.key[: len(bound)]), bound


def _ttl(write: Write) -> tuple[str, tuple[int, ...]]:
    return ("", ()) if write.ttl_s is None else (" USING TTL ?", (write.ttl_s,))


def _guard(write: Write) -> tuple[str, tuple[Value, ...]]:
    if not isinstance(write.condition, Expect):
        return "", ()
    columns = write.condition.columns
    terms = " AND ".join(_term(column, values) for column, values in columns.items())
    return f" IF {terms}", tuple(v for values in _listed(columns) for v in values)


def _listed(columns: Mapping[str, tuple[Value, ...]]) -> Iterable[tuple[Value, ...]]:
    return (tuple(v for v in values if v is not None) for values in columns.values())


def _term(column: str, values: tuple[Value, ...]) -> str:
    # A null inside a bound list arrives as empty bytes, so null is written out.
    marks = ["null" if value is None else "?" for value in values]
    return f"{column} = {marks[0]}" if len(marks) == 1 else f"{column} IN ({', '.join(marks)})"
