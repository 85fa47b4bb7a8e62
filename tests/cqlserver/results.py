"""Results as Cassandra and ScyllaDB lay them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from .answers import Applied, ErrorFrame, Refused, Row
from .frames import integer, short, short_bytes, string, value
from .requests import Request, Statement
from .statements import Parsed
from .tables import BOOLEAN, Column, Table

Dialect = Literal["cassandra", "scylla"]

VOID: Final = integer(1)
_GLOBAL_TABLE: Final = 1
_APPLIED: Final = Column("[applied]", BOOLEAN)


def error(answer: ErrorFrame) -> bytes:
    return integer(answer.code) + string(answer.message) + answer.details


def set_keyspace(keyspace: str) -> bytes:
    return integer(3) + string(keyspace)


def rows(table: Table, columns: Sequence[Column], content: Sequence[Row]) -> bytes:
    """Encode a result set: a column that a row lacks is null, one that the result lacks is left out."""
    _check_names(table, columns, content)
    cells = (column.type.encode(row.get(column.name)) for row in content for column in columns)
    return integer(2) + _metadata(table, columns) + integer(len(content)) + b"".join(map(value, cells))


def _check_names(table: Table, columns: Sequence[Column], content: Sequence[Row]) -> None:
    """Refuse names that exist nowhere: a misspelt one in a test's script would read as null."""
    known = {*table.columns, *(column.name for column in columns)}
    # Of functions, a store may offer more than the statement asks for.
    unknown = {name for row in content for name in row if "(" not in name} - known
    if unknown:
        raise ValueError(f"table {table.name} has no columns {sorted(unknown)}")


def prepared(prepared_id: bytes, parsed: Parsed) -> bytes:
    """Encode the answer to PREPARE: the markers, which of them are the partition key, and a read's columns."""
    specs = _specs(parsed.table, parsed.markers)
    indexes = parsed.pk_indexes
    key = integer(len(indexes)) + b"".join(map(short, indexes))
    markers = integer(_GLOBAL_TABLE) + integer(len(parsed.markers)) + key + specs
    return integer(4) + short_bytes(prepared_id) + markers + _metadata(parsed.table, parsed.selection)


def _metadata(table: Table, columns: Sequence[Column]) -> bytes:
    return integer(_GLOBAL_TABLE) + integer(len(columns)) + _specs(table, columns)


def _specs(table: Table, columns: Sequence[Column]) -> bytes:
    specs = (string(column.name) + column.type.option for column in columns)
    return string(table.keyspace) + string(table.name) + b"".join(specs)


def lwt(request: Request, answer: Applied | Refused, dialect: Dialect) -> bytes:
    """Encode the outcome of a conditional statement or batch, in the form that this kind of server gives it."""
    table = request.statement.parsed.table
    known = [_completed(row, request) for row in answer.rows]
    applied = isinstance(answer, Applied)
    if dialect == "scylla":
        shown = [_row_of(statement, known) for statement in request.statements]
    else:
        shown = [] if applied else _in_clustering_order(table, known)
    columns = _lwt_columns(request) if shown else []
    marked: list[Row] = [{_APPLIED.name: applied, **row} for row in shown or [{}]]
    return rows(table, [_APPLIED, *columns], marked)


def _lwt_columns(request: Request) -> list[Column]:
    """The columns after `[applied]`: all when any statement asks for existence, else those with a condition.

    Only a batch repeats the primary key: a single statement's row is clear without it.
    """
    table = request.statement.parsed.table
    key = table.primary_key if request.kind == "batch" else ()
    guarded = (name for statement in request.statements for name in _condition_columns(statement))
    names = table.select_order if request.guards_existence else dict.fromkeys((*key, *guarded))
    return [table.column(name) for name in names]


def _condition_columns(statement: Statement) -> Iterable[str]:
    return (name for relation in statement.parsed.conditions for name in relation.columns)


def _completed(row: Row, request: Request) -> Row:
    """Fill in the key as far as only one can be meant: all rows of a batch share the partition key."""
    table = request.statement.parsed.table
    first = request.statement.key
    shared = (
        first if len(request.statements) == 1 else {name: first[name] for name in table.partition_key if name in first}
    )
    return {**shared, **row}


def _row_of(statement: Statement, known: Sequence[Row]) -> Row:
    key: Mapping[str, Any] = statement.key
    found = (row for row in known if all(row.get(name) == key.get(name) for name in statement.parsed.table.primary_key))
    return next(found, {})


def _in_clustering_order(table: Table, content: Sequence[Row]) -> list[Row]:
    if len(content) < 2:
        return list(content)
    return sorted(content, key=lambda row: tuple(row[name] for name in table.clustering_key))
