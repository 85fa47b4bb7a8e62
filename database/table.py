"""What the stores must know of a table: its key, its columns and their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn
from uuid import UUID

# A timestamp is an int: milliseconds since the epoch. Cassandra keeps no finer one, and a version must survive the trip.
Value = UUID | str | int | bytes | None
Key = tuple[Value, ...]
Row = Mapping[str, Value]


Takes = Callable[[Any], bool]


class Kind(StrEnum):
    """The CQL types that our tables use."""

    UUID = "uuid"
    TEXT = "text"
    INT = "int"
    BIGINT = "bigint"
    TIMESTAMP = "timestamp"
    BLOB = "blob"

    def takes(self, value: object) -> bool:
        """Tell whether a column of this kind keeps a value, and gives it back as it was, in every store."""
        return TAKES[self](value)


def _takes_int(kind: Kind) -> Takes:
    least, most = RANGES[kind]
    return lambda value: isinstance(value, int) and value is not True and value is not False and least <= value <= most


# A timestamp beyond the years 1 to 9999 would be taken, but Python's datetime, and so the driver, cannot read it back.
RANGES = {
    Kind.INT: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
    Kind.TIMESTAMP: (-62_135_596_800_000, 253_402_300_799_999),
}
TAKES: Mapping[Kind, Takes] = {
    Kind.UUID: lambda value: isinstance(value, UUID),
    Kind.TEXT: lambda value: isinstance(value, str) and (value.isascii() or _is_unicode(value)),
    Kind.BLOB: lambda value: isinstance(value, bytes),
    **{kind: _takes_int(kind) for kind in (Kind.INT, Kind.BIGINT, Kind.TIMESTAMP)},
}


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
    key: tuple[str, ...] = field(init=False, repr=False, compare=False)  # the whole primary key, in its order
    _key_takes: Mapping[str, Takes] = field(init=False, repr=False, compare=False)
    _value_takes: Mapping[str, Takes] = field(init=False, repr=False, compare=False)
    _partition_takes: tuple[Takes, ...] = field(init=False, repr=False, compare=False)
    _row_takes: tuple[Takes, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Frozen, and asked for every value of every batch: found once.
        keys = {column: TAKES[kind] for column, kind in {**self.partition, **self.clustering}.items()}
        object.__setattr__(self, "key", (*self.partition, *self.clustering))
        object.__setattr__(self, "_key_takes", keys)
        object.__setattr__(self, "_value_takes", {column: TAKES[kind] for column, kind in self.values.items()})
        object.__setattr__(self, "_partition_takes", tuple(TAKES[kind] for kind in self.partition.values()))
        object.__setattr__(self, "_row_takes", tuple(TAKES[kind] for kind in self.clustering.values()))

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

    def check(self, column: str, value: Value) -> None:
        """Raise ValueError for a value that a key column does not keep: not one store, and another a different one."""
        takes = self._key_takes.get(column)
        if takes is None or not takes(value):
            raise ValueError(f"{self.name}: the {self.kind(column)} column {column} takes no {value!r}")

    def check_values(self, values: Mapping[str, Value]) -> None:
        """Raise ValueError for a column that is no value column, or a value that it does not keep."""
        known = self._value_takes
        for column, value in values.items():
            takes = known.get(column)
            if takes is None or not (value is None or takes(value)):
                self._refuse_value(column, value)

    def check_choices(self, choices: Mapping[str, tuple[Value, ...]]) -> None:
        """Raise ValueError as `check_values` does, for columns that each may have one of several values."""
        known = self._value_takes
        for column, values in choices.items():
            takes = known.get(column)
            for value in values:
                if takes is None or not (value is None or takes(value)):
                    self._refuse_value(column, value)

    def check_row(self, key: Key) -> None:
        """Raise ValueError for what is not the whole key of a row in its partition."""
        row_takes = self._row_takes
        if len(key) != len(row_takes):
            raise ValueError(f"{self.name}: {key} is not the whole key of a row")
        for takes, value in zip(row_takes, key, strict=True):
            if not takes(value):
                if None in key:
                    raise ValueError(f"{self.name}: {key} is not the whole key of a row")
                self._refuse(self.clustering, key)

    def check_partition(self, partition: Key) -> None:
        """Raise ValueError for what is not the whole key of a partition."""
        if len(partition) != len(self._partition_takes):
            raise ValueError(f"{self.name}: a partition key has {len(self.partition)} parts, not {len(partition)}")
        for takes, value in zip(self._partition_takes, partition, strict=True):
            if not takes(value):
                self._refuse(self.partition, partition)

    def _refuse_value(self, column: str, value: Value) -> NoReturn:
        if column not in self.values:
            raise ValueError(f"{self.name} has no value column {column}")
        raise ValueError(f"{self.name}: the {self.kind(column)} column {column} takes no {value!r}")

    def _refuse(self, columns: Mapping[str, Kind], key: Key) -> None:
        for column, value in zip(columns, key, strict=True):
            self.check(column, value)

    def __hash__(self) -> int:
        return hash(self.name)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
