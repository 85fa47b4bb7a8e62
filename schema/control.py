"""The control table: what is installed, by whom, and who is changing it. One partition, written by guarded batches only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from uuid import UUID

import msgspec

from ..database import Batch, Key, Kind, Port, Row, Slice, Table, TableMissing, Value, Write, insert, update
from .errors import SchemaConflict
from .statement import Statement, split
from .version import Version

CONTROL = Table(
    "slotkeeper_schema",
    {"scope": Kind.TEXT},
    {"kind": Kind.TEXT, "name": Kind.TEXT},
    {"value": Kind.TEXT, "holder": Kind.TEXT, "description": Kind.TEXT, "updated_time": Kind.TIMESTAMP},
)
PARTITION: Key = ("slotkeeper",)
INSTALLED: Key = ("version", "current")
MIN_COMPATIBLE: Key = ("version", "min_compatible")
CONSISTENCY: Key = ("setting", "consistency")
SEED: Key = ("setting", "table_ids")
LOCK: Key = ("lock", "migration")
DOCTOR: Key = ("scratch", "doctor")  # for the doctor's round trip
HISTORY = "history"
EVERYTHING = (Slice(),)
TO_CHECK = (Slice(("version",)), Slice(("setting",)))


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history: an `update` from one version to another, or an `unlock` of somebody's lock."""

    action: str
    who: str
    at_ms: int
    before: str | None = None
    after: str | None = None
    md5: str | None = None
    broken: str | None = None

    @property
    def key(self) -> Key:
        """The row's key: in the order of time, and never one that another process takes."""
        return (HISTORY, f"{self.at_ms:014d} {self.who}")

    def written(self) -> Write:
        """Return the write that adds the entry, once."""
        told = {"before": self.before, "after": self.after, "md5": self.md5, "broken": self.broken}
        description = msgspec.json.encode({name: value for name, value in told.items() if value is not None}).decode()
        values: dict[str, Value] = {
            "value": self.action,
            "holder": self.who,
            "description": description,
            "updated_time": self.at_ms,
        }
        return insert(self.key, values, absent=True)


@dataclass(frozen=True, slots=True)
class Control:
    """What the control table says. All of it is empty where there is no such table yet."""

    installed: Version | None = None
    min_compatible: Version | None = None
    consistency: str | None = None
    seed: UUID | None = None
    holder: str | None = None
    lock_renewed_ms: int | None = None
    history: tuple[Change, ...] = ()


def batch(*writes: Write) -> Batch:
    """Return a batch on the control table."""
    return Batch(CONTROL, PARTITION, writes)


def statement(dialect: str) -> Statement:
    """Return the statement that creates the control table."""
    (found,) = split((files(__package__) / f"control.{dialect}").read_text(encoding="utf-8"))
    return found


def seeded(seed: UUID) -> Write:
    """Return the write that keeps what the ids of tables are made from, once and for all."""
    return update(SEED, {"value": str(seed)}, expect={"value": (None,)})


def recorded(change: Change, min_compatible: Version, levels: str | None) -> tuple[Write, ...]:
    """Return the writes that record a version: none takes effect unless the version before is still the current one."""
    writes = [
        update(INSTALLED, {"value": change.after, "updated_time": change.at_ms}, expect={"value": (change.before,)}),
        update(MIN_COMPATIBLE, {"value": str(min_compatible), "updated_time": change.at_ms}),
        change.written(),
    ]
    if levels:
        setting: dict[str, Value] = {"value": levels, "updated_time": change.at_ms}
        writes.append(update(CONSISTENCY, setting, expect={"value": (levels, None)}))
    return tuple(writes)


async def look(port: Port, slices: tuple[Slice, ...] = EVERYTHING, *, serial: bool) -> Control:
    """Read the control table, or say that nothing is there."""
    try:
        found = await port.read(CONTROL, PARTITION, slices, serial=serial)
    except TableMissing:
        return Control()
    rows: dict[Key, Row] = {(row["kind"], row["name"]): row for row in found}
    lock = rows.get(LOCK, {})
    return Control(
        _version(rows, INSTALLED),
        _version(rows, MIN_COMPATIBLE),
        _text(rows.get(CONSISTENCY, {}), "value"),
        UUID(seed) if (seed := _text(rows.get(SEED, {}), "value")) else None,
        _text(lock, "holder"),
        _number(lock, "updated_time") if lock.get("holder") else None,
        tuple(_change(row) for (kind, _), row in rows.items() if kind == HISTORY),
    )


def _version(rows: Mapping[Key, Row], key: Key) -> Version | None:
    text = _text(rows.get(key, {}), "value")
    try:
        return Version.parse(text) if text else None
    except ValueError as error:
        raise SchemaConflict(CONTROL.name, (str(error),)) from error


def _change(row: Row) -> Change:
    told = msgspec.json.decode(_text(row, "description") or "{}", type=dict[str, str])
    known = {name: told.get(name) for name in ("before", "after", "md5", "broken")}
    return Change(_text(row, "value") or "", _text(row, "holder") or "", _number(row, "updated_time") or 0, **known)


def _text(row: Row, column: str) -> str | None:
    """Return a text, or None for null and for the empty text: overwriting with '' leaves no tombstone, null would."""
    value = row.get(column)
    return value if isinstance(value, str) and value else None


def _number(row: Row, column: str) -> int | None:
    value = row.get(column)
    return value if isinstance(value, int) else None
