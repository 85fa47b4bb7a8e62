"""Statements, understood just far enough: what they touch, what they guard on, and what type each marker has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from .tables import Column, Table


class CqlInvalid(ValueError):
    """The statement names something that does not exist."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The place of a bound value."""

    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: object


@dataclass(frozen=True, slots=True)
class Several:
    """A list or tuple of terms."""

    terms: tuple[Term, ...]


Term = Marker | Constant | Several


@dataclass(frozen=True, slots=True)
class Relation:
    """A comparison of one column (or of a tuple of columns) with a term."""

    columns: tuple[str, ...]
    operator: str
    term: Term


NO_TABLE: Final = Table("", "", {})


@dataclass(slots=True)
class Parsed:
    """A statement's content. `exists` is True for IF EXISTS, False for IF NOT EXISTS."""

    cql: str
    verb: str
    table: Table = NO_TABLE
    markers: list[Column] = field(default_factory=list)
    assignments: dict[str, Term] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    where: list[Relation] = field(default_factory=list)
    conditions: list[Relation] = field(default_factory=list)
    exists: bool | None = None
    ttl: Term | None = None
    limit: Term | None = None
    selection: list[Column] = field(default_factory=list)
    target: str = ""

    @property
    def is_conditional(self) -> bool:
        return self.exists is not None or bool(self.conditions)

    @property
    def key_terms(self) -> dict[str, Term]:
        """The terms that name the row: an INSERT's values, or the equalities of a WHERE clause."""
        named = self.assignments if self.verb == "insert" else {}
        named = named | {relation.columns[0]: relation.term for relation in self.where if relation.operator == "="}
        return {name: named[name] for name in self.table.primary_key if name in named}

    @property
    def pk_indexes(self) -> list[int]:
        """The markers that make up the partition key, for a client that routes by it; empty if any part is no marker."""
        terms = [self.key_terms.get(name) for name in self.table.partition_key]
        indexes = [term.index for term in terms if isinstance(term, Marker)]
        return indexes if len(indexes) == len(terms) else []
