"""What a test declares: tables, their columns and the CQL types of those."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from uuid import UUID

from cassandra.cqltypes import ListType, MapType, SetType
from cassandra.protocol import ResultMessage

from . import frames

_SIMPLE: Final[dict[str, tuple[int, Any]]] = {
    codec.typename: (code, codec) for code, codec in ResultMessage.type_codes.items() if hasattr(codec, "typename")
}
_SIMPLE["text"] = (0x0D, _SIMPLE["text"][1])  # version 4 calls both text and varchar 0x0D
_COLLECTIONS: Final[dict[str, tuple[int, Any]]] = {
    "list": (0x20, ListType),
    "map": (0x21, MapType),
    "set": (0x22, SetType),
}


@dataclass(frozen=True, slots=True)
class CqlType:
    """A CQL type: how it is written, how its values are coded, and how the protocol names it."""

    text: str
    codec: Any = field(compare=False, repr=False)
    option: bytes = field(compare=False, repr=False)

    def encode(self, value: object) -> bytes | None:
        return None if value is None else bytes(self.codec.to_binary(value, frames.VERSION))

    def decode(self, data: bytes | None) -> object:
        decoded: object = self.codec.from_binary(data, frames.VERSION)
        return decoded


@cache
def cql_type(text: str) -> CqlType:
    """Parse `int`, `text`, `list<int>`, `frozen<map<text, uuid>>` and the like."""
    text = text.replace(" ", "").lower()
    outer, _, inner = text.partition("<")
    if outer == "frozen":
        return cql_type(inner.removesuffix(">"))
    if inner:
        return _collection(text, outer, [cql_type(part) for part in _split(inner.removesuffix(">"))])
    code, codec = _SIMPLE[outer]
    return CqlType(text, codec, frames.short(code))


def _collection(text: str, outer: str, parts: Sequence[CqlType]) -> CqlType:
    code, codec = _COLLECTIONS[outer]
    options = b"".join(part.option for part in parts)
    return CqlType(text, codec.apply_parameters([part.codec for part in parts]), frames.short(code) + options)


def _split(inner: str) -> list[str]:
    """Split at the commas that stand outside of angle brackets."""
    return re.findall(r"(?:[^,<]|<[^>]*>+)+", inner)


INT: Final = cql_type("int")
BIGINT: Final = cql_type("bigint")
BOOLEAN: Final = cql_type("boolean")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result, or a marker of a statement: its name and type, and the function that makes it."""

    name: str
    type: CqlType
    function: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the server knows it: `columns` maps names to CQL types, the keys name some of them in order."""

    keyspace: str
    name: str
    columns: Mapping[str, str]
    partition_key: Sequence[str] = ()
    clustering_key: Sequence[str] = ()
    id: UUID | None = None

    @classmethod
    def from_cql(cls, text: str, keyspace: str = "") -> Table:
        """Read a CREATE TABLE statement; `keyspace` is for a name that has none."""
        body = re.sub(r"--[^\n]*|//[^\n]*", "", text).replace('"', "")
        found = re.search(r"create\s+table\s+(?:if\s+not\s+exists\s+)?(?:(\w+)\.)?(\w+)\s*\((.*)\)", body, re.S | re.I)
        if found is None:
            raise ValueError(f"not a CREATE TABLE statement: {text[:80]!r}")
        columns, partition, clustering = _columns(_inside(found[3]))
        own_id = re.search(r"\bid\s*=\s*([0-9a-fA-F-]{36})", body)
        return cls(found[1] or keyspace, found[2], columns, partition, clustering, UUID(own_id[1]) if own_id else None)

    @property
    def primary_key(self) -> tuple[str, ...]:
        return (*self.partition_key, *self.clustering_key)

    @property
    def select_order(self) -> tuple[str, ...]:
        """All columns in the order of `SELECT *`: the primary key, then the others by name."""
        return (*self.primary_key, *sorted(set(self.columns) - set(self.primary_key)))

    def column(self, name: str) -> Column:
        return Column(name, cql_type(self.columns[name]))

    def kind(self, name: str) -> tuple[str, int]:
        """Say what `system_schema.columns` says of a column: its kind, and its position in the key."""
        if name in self.partition_key:
            return "partition_key", list(self.partition_key).index(name)
        if name in self.clustering_key:
            return "clustering", list(self.clustering_key).index(name)
        return "regular", -1


def _inside(text: str) -> str:
    """Cut what follows the parenthesis that closes the column list (a WITH clause may hold others)."""
    depth = 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return text[:at]
    return text


def _columns(body: str) -> tuple[dict[str, str], list[str], list[str]]:
    columns: dict[str, str] = {}
    partition: list[str] = []
    clustering: list[str] = []
    for part in re.findall(r"(?:[^,(<]|\((?:[^()]|\([^()]*\))*\)|<[^>]*>+)+", body):
        key = re.match(r"\s*primary\s+key\s*\(\s*(?:\(([^)]*)\)|(\w+))(.*)\)", part, re.S | re.I)
        if key:
            partition, clustering = _words(key[1] or key[2]), _words(key[3])
        elif part.strip():
            name, kind = part.split(None, 1)
            columns[name.lower()], is_key = re.subn(r"\s+primary\s+key\s*$|\s+static\s*$", "", kind.strip(), flags=re.I)
            partition = [name.lower()] if is_key and "key" in kind.lower() else partition
    return columns, partition, clustering


def _words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\w+", text)]


class Catalog:
    """The keyspaces and tables that exist on the server."""

    def __init__(self, keyspaces: Iterable[str], tables: Iterable[Table]) -> None:
        self.keyspaces = dict.fromkeys(keyspaces)
        self._tables: dict[tuple[str, str], Table] = {}
        for table in tables:
            self.add(table)

    @property
    def tables(self) -> list[Table]:
        return list(self._tables.values())

    def add(self, table: Table) -> None:
        """Add a table, unless there is one of its name."""
        self.keyspaces[table.keyspace] = None
        self._tables.setdefault((table.keyspace, table.name), table)

    def find(self, keyspace: str, name: str) -> Table | None:
        return self._tables.get((keyspace, name))
