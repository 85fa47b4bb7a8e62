"""What a client asked for, decoded to Python values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from .frames import UNSET
from .statements import Constant, Marker, Parsed, Relation, Term

Kind = Literal["query", "execute", "batch", "prepare"]
Purpose = Literal["lwt", "read", "write", "schema", "system", "prepare", "unprepared"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a WHERE or IF clause, its value resolved: a tuple for IN and for tuples of columns."""

    columns: tuple[str, ...]
    operator: str
    value: object

    @property
    def column(self) -> str:
        return self.columns[0]

    def holds(self, row: dict[str, object]) -> bool:
        """Whether the equality or IN is true of `row`; a missing column counts as null."""
        seen = row.get(self.column)
        if self.operator == "=":
            return seen == self.value
        if self.operator == "in" and isinstance(self.value, (tuple, list)):
            return seen in self.value
        raise ValueError(f"this server compares by = and IN, not by {self.operator}")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement with its bound values: None is null, UNSET was left out."""

    cql: str
    values: tuple[object, ...] = ()
    prepared_id: bytes | None = None
    parsed: Parsed = field(compare=False, repr=False, kw_only=True)

    @property
    def verb(self) -> str:
        return self.parsed.verb

    @property
    def table(self) -> str:
        return self.parsed.table.name

    @property
    def is_conditional(self) -> bool:
        return self.parsed.is_conditional

    @property
    def exists(self) -> bool | None:
        """True for IF EXISTS, False for IF NOT EXISTS, None for neither."""
        return self.parsed.exists

    @property
    def key(self) -> dict[str, object]:
        """The primary key columns that the statement names."""
        return {name: self._value(term) for name, term in self.parsed.key_terms.items()}

    @property
    def sets(self) -> dict[str, object]:
        """The columns that it writes, without the key and without those that are UNSET; deleted ones are None."""
        written = {name: self._value(term) for name, term in self.parsed.assignments.items()}
        written |= dict.fromkeys(self.parsed.deleted)
        key = self.parsed.table.primary_key
        return {name: value for name, value in written.items() if value is not UNSET and name not in key}

    @property
    def conditions(self) -> list[Condition]:
        return self._resolve(self.parsed.conditions)

    @property
    def where(self) -> list[Condition]:
        return self._resolve(self.parsed.where)

    @property
    def ttl(self) -> object:
        return None if self.parsed.ttl is None else self._value(self.parsed.ttl)

    @property
    def limit(self) -> object:
        return None if self.parsed.limit is None else self._value(self.parsed.limit)

    def _resolve(self, relations: Iterable[Relation]) -> list[Condition]:
        return [Condition(relation.columns, relation.operator, self._value(relation.term)) for relation in relations]

    def _value(self, term: Term) -> object:
        match term:
            case Marker(index):
                return self.values[index]
            case Constant(value):
                return value
            case _:
                return tuple(self._value(inner) for inner in term.terms)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client. Consistency levels are their names; `received_at` is monotonic time."""

    kind: Kind
    purpose: Purpose
    statements: tuple[Statement, ...]
    consistency: str = ""
    serial_consistency: str | None = None
    keyspace: str = ""
    host: str = ""
    connection: int = 0
    received_at: float = field(default=0.0, compare=False)

    @property
    def statement(self) -> Statement:
        """The first statement: the only one of all requests but batches."""
        return self.statements[0]

    @property
    def is_serial(self) -> bool:
        """Whether a read takes part in Paxos."""
        return self.consistency in ("SERIAL", "LOCAL_SERIAL")

    @property
    def guards_existence(self) -> bool:
        return any(statement.exists is not None for statement in self.statements)

    @property
    def guarded(self) -> list[Statement]:
        return [statement for statement in self.statements if statement.is_conditional]


def purpose_of(statements: Iterable[Statement]) -> Purpose:
    """Sort a request by what it does: any condition makes the whole batch a lightweight transaction."""
    members = list(statements)
    first = members[0].parsed if members else None
    if any(member.is_conditional for member in members):
        return "lwt"
    if first is None or first.verb in ("insert", "update", "delete"):
        return "write"
    if first.verb != "select":
        return "system" if first.verb == "use" else "schema"
    return "system" if first.table.keyspace.startswith("system") else "read"
