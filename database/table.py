"""What the stores must know of a table: its key, its columns and their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

# A timestamp is an int: milliseconds since the epoch. Cassandra keeps no finer one, and a version must survive the trip.
Value = UUID | str | int | bytes | None
Key = tuple[Value, ...]
Row = Mapping[str, Value]


class Kind(StrEnum):
    """The CQL types that our tables use."""

    UUID = "uuid"
    TEXT = "text"
    INT = "int"
    BIGINT = "bigint"
    TIMESTAMP = "timestamp"
    BLOB = "blob"


@dataclass(frozen=True, slots=True)
class Layout:
    """A table as the database has it. `columns` has all of them, with their types as the database spells them.

    The embedded store knows no partitions: there the whole key is the partition, and a table has no id.
    """

    partition: tuple[str, ...]
    clustering: tuple[str, ...]
    columns: Mapping[str, str]
    id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the verb sees it: `partition` and `clustering` columns make the key, `values` are the rest."""

    name: str
    partition: Mapping[str, Kind]
    clustering: Mapping[str, Kind]
    values: Mapping[str, Kind]

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the whole primary key, in its order."""
        return (*self.partition, *self.clustering)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column: the key, then the values."""
        return (*self.key, *self.values)

    def kind(self, column: str) -> Kind:
        """Tell the kind of a column. Raises KeyError for a column that the table has not."""
        for columns in (self.partition, self.clustering, self.values):
            if column in columns:
                return columns[column]
        raise KeyError(f"table {self.name} has no column {column}")

    def __hash__(self) -> int:
        return hash(self.name)
