"""Whether a schema and a program fit: checked when a client starts, and before anything is changed."""

from __future__ import annotations

from dataclasses import dataclass

from ..database import BlockingPort, Consistency, Kind, Layout, Port, Store, Table, drive
from .control import TO_CHECK, Change, Control, look
from .errors import ConsistencyMismatch, SchemaConflict, SchemaMissing, SchemaTooNew, SchemaTooOld
from .manifest import Migrations, shipped
from .version import Version

SQL_TYPES = {
    Kind.UUID: "text",
    Kind.TEXT: "text",
    Kind.INT: "integer",
    Kind.BIGINT: "integer",
    Kind.TIMESTAMP: "integer",
    Kind.BLOB: "blob",
}
SQL_ONLY = {"marker_until": "integer", "expiry": "text"}


@dataclass(frozen=True, slots=True)
class Status:
    """What is installed and what this program expects. `locked_by` is changing it now."""

    installed: Version | None
    min_compatible: Version | None
    expected: Version
    consistency: str | None
    locked_by: str | None
    lock_renewed_ms: int | None
    history: tuple[Change, ...]

    @property
    def state(self) -> str:
        """One of missing, older, current, newer (works with this program), too new."""
        if self.installed is None:
            return "missing"
        if self.installed == self.expected:
            return "current"
        if self.installed < self.expected:
            return "older"
        return "newer" if (self.min_compatible or self.installed) <= self.expected else "too new"


async def check(port: Port, consistency: Consistency | None, *, migrations: Migrations | None = None) -> None:
    """Raise unless a client of this program may work here: SchemaMissing, SchemaTooOld, SchemaTooNew, ConsistencyMismatch.

    One read of one partition; nothing is changed. `consistency` is the store's own.
    """
    control = await look(port, TO_CHECK, serial=False)
    expected = (migrations or shipped()).newest
    if control.installed is None:
        raise SchemaMissing(None, expected)
    if control.installed < expected:
        raise SchemaTooOld(control.installed, expected)
    check_not_too_new(control, expected)
    check_consistency(control, consistency)


def status(store: Store, *, migrations: Migrations | None = None) -> Status:
    """Tell what is installed, what is expected, who is changing it, and what was done before. Changes nothing."""
    control = drive(look(BlockingPort(store), serial=True))
    return Status(
        control.installed,
        control.min_compatible,
        (migrations or shipped()).newest,
        control.consistency,
        control.holder,
        control.lock_renewed_ms,
        control.history,
    )


def check_not_too_new(control: Control, expected: Version) -> None:
    """Raise SchemaTooNew where the installed version says that it is not for a program this old."""
    if control.installed is not None and (control.min_compatible or control.installed) > expected:
        raise SchemaTooNew(control.installed, expected)


def check_consistency(control: Control, consistency: Consistency | None) -> None:
    """Raise ConsistencyMismatch where the keyspace is kept at another pair of levels."""
    if control.consistency and consistency and control.consistency != pair(consistency):
        raise ConsistencyMismatch(control.consistency, pair(consistency))


def pair(consistency: Consistency) -> str:
    """Spell both levels."""
    return f"{consistency.value}/{consistency.serial}"


def check_layout(table: Table, layout: Layout | None, dialect: str) -> None:
    """Raise SchemaConflict unless a table of the database can serve as the one declared.

    A further value column does no harm: each column is read and written by its name, and versions only ever add.
    """
    if found := _differences(table, layout, dialect):
        raise SchemaConflict(table.name, tuple(found))


def _differences(table: Table, layout: Layout | None, dialect: str) -> list[str]:
    if layout is None:
        return ["it is missing"]
    found = [
        f"{column} is {layout.columns.get(column, 'missing')}, not {kind}"
        for column, kind in _declared(table, dialect).items()
        if layout.columns.get(column) != kind
    ]
    declared = (tuple(table.partition), tuple(table.clustering)) if dialect == "cql" else (table.key, ())
    if (layout.partition, layout.clustering) != declared:
        found.append(f"its key is {_key(layout.partition, layout.clustering)}, not {_key(*declared)}")
    return found


def _declared(table: Table, dialect: str) -> dict[str, str]:
    kinds = {column: table.kind(column) for column in table.columns}
    if dialect == "cql":
        return {column: kind.value for column, kind in kinds.items()}
    return {**{column: SQL_TYPES[kind] for column, kind in kinds.items()}, **SQL_ONLY}


def _key(partition: tuple[str, ...], clustering: tuple[str, ...]) -> str:
    inner = ", ".join(partition)
    return f"({', '.join((f'({inner})', *clustering))})"
