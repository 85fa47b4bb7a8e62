"""Binding values to prepared statements.

The driver's own binding serves every type and version of the protocol, at 7 microseconds a statement: half of what a batch
of a hundred writes costs a client. Ours knows the six types that our tables use, and asks the driver's types for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

from cassandra.query import PreparedStatement

from ..table import Key, Table, Value
from .cql import Statement

Encode = Callable[[Any], bytes]

_ENCODERS: dict[str, Encode] = {
    "uuid": lambda value: value.bytes,
    "varchar": str.encode,
    "text": str.encode,
    "int": Struct(">i").pack,
    "bigint": Struct(">q").pack,
    "timestamp": Struct(">q").pack,  # an int of milliseconds, as in every Row
    "blob": bytes,
}


@dataclass(frozen=True, slots=True)
class Ready:
    """A prepared statement and how its values are written on the wire: those before the partition's, and those behind."""

    statement: PreparedStatement
    before: tuple[Encode, ...]
    behind: tuple[Encode, ...]

    def values(self, statement: Statement, partition: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of a statement on an encoded partition, by position.

        Raises ValueError for too few or too many: the driver would leave those unset.
        """
        return [*_encoded(self.before, statement.before), *partition, *_encoded(self.behind, statement.behind)]


def ready(prepared: PreparedStatement, statement: Statement, width: int) -> Ready:
    """Find the encoders of a prepared statement's values; the partition's are `width`."""
    encoders = tuple(_encoder(column.type) for column in prepared.column_metadata)
    begin = len(statement.before)
    return Ready(prepared, encoders[:begin], encoders[begin + width :])


def encoded_partition(table: Table, partition: Key) -> list[bytes]:
    """Return a partition's key as it is written on the wire: once for all statements of a batch."""
    return [_ENCODERS[kind](value) for kind, value in zip(table.partition.values(), partition, strict=True)]


def _encoded(encoders: tuple[Encode, ...], values: tuple[Value, ...]) -> list[bytes | None]:
    return [None if value is None else encode(value) for encode, value in zip(encoders, values, strict=True)]


def _encoder(kind: Any) -> Encode:
    found = _ENCODERS.get(kind.typename)
    return found if found is not None else lambda value: kind.serialize(value, 4)
