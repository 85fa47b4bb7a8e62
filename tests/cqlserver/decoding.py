"""QUERY, PREPARE, EXECUTE and BATCH bodies decoded to requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cassandra import ConsistencyLevel

from .frames import UNSET, Frame, Opcode, Reader, Unset
from .parser import parse
from .requests import Kind, Purpose, Request, Statement, purpose_of
from .statements import CqlInvalid, Parsed
from .tables import Catalog

_NAMED_VALUES: Final = 0x40
_Raw = Sequence[bytes | Unset | None]


class NotPrepared(LookupError):
    """Nobody ever prepared this id."""

    def __init__(self, prepared_id: bytes) -> None:
        super().__init__(prepared_id)
        self.prepared_id = prepared_id


@dataclass(slots=True)
class Prepared:
    """What clients have prepared: the statements, which all hosts share, and which host knows which of them."""

    statements: dict[bytes, Parsed] = field(default_factory=dict)
    known: dict[str, set[bytes]] = field(default_factory=dict)

    def add(self, host: str, keyspace: str, parsed: Parsed) -> bytes:
        prepared_id = hashlib.md5(f"{keyspace}{parsed.cql}".encode(), usedforsecurity=False).digest()
        self.statements[prepared_id] = parsed
        self.known.setdefault(host, set()).add(prepared_id)
        return prepared_id

    def knows(self, host: str, statement: Statement) -> bool:
        return statement.prepared_id is None or statement.prepared_id in self.known.get(host, ())


@dataclass(slots=True)
class Decoder:
    """Decodes the requests of one connection."""

    catalog: Catalog
    prepared: Prepared
    host: str
    connection: int
    keyspace: str = ""

    def decode(self, frame: Frame, received_at: float) -> Request:
        reader = Reader(frame.body)
        kind, statements, levels = self._content(frame.opcode, reader)
        return Request(
            kind,
            self._purpose(kind, statements),
            tuple(statements),
            *levels,
            keyspace=self.keyspace,
            host=self.host,
            connection=self.connection,
            received_at=received_at,
        )

    def _content(self, opcode: int, reader: Reader) -> tuple[Kind, list[Statement], tuple[str, str | None]]:
        match opcode:
            case Opcode.PREPARE:
                cql = reader.long_string()
                return "prepare", [Statement(cql, parsed=self._parse(cql))], ("", None)
            case Opcode.BATCH:
                return "batch", *self._batch(reader)
            case Opcode.EXECUTE:
                return "execute", *self._single(self._known(reader), reader)
        cql = reader.long_string()
        return "query", *self._single(Statement(cql, parsed=self._parse(cql)), reader)

    def _purpose(self, kind: Kind, statements: Sequence[Statement]) -> Purpose:
        if kind == "prepare":
            return "prepare"
        if not all(self.prepared.knows(self.host, statement) for statement in statements):
            return "unprepared"
        return purpose_of(statements)

    def _parse(self, cql: str) -> Parsed:
        return parse(cql, self.catalog, self.keyspace)

    def _known(self, reader: Reader) -> Statement:
        prepared_id = reader.short_bytes()
        if prepared_id not in self.prepared.statements:
            raise NotPrepared(prepared_id)
        parsed = self.prepared.statements[prepared_id]
        return Statement(parsed.cql, prepared_id=prepared_id, parsed=parsed)

    def _single(self, statement: Statement, reader: Reader) -> tuple[list[Statement], tuple[str, str | None]]:
        consistency = reader.short()
        flags = reader.byte()
        raw = _values(reader, named=bool(flags & _NAMED_VALUES)) if flags & 0x01 else []
        if flags & 0x04:
            reader.integer()  # the page size: every result here is one page
        if flags & 0x08:
            reader.value()
        return [_bound(statement, raw)], (_level(consistency), _serial(flags, reader))

    def _batch(self, reader: Reader) -> tuple[list[Statement], tuple[str, str | None]]:
        reader.byte()  # logged, unlogged or counter: the same for a conditional batch
        statements = [self._member(reader) for _ in range(reader.short())]
        consistency = reader.short()
        return statements, (_level(consistency), _serial(reader.byte(), reader))

    def _member(self, reader: Reader) -> Statement:
        if reader.byte():
            statement = self._known(reader)
        else:
            cql = reader.long_string()
            statement = Statement(cql, parsed=self._parse(cql))
        return _bound(statement, _values(reader))


def _values(reader: Reader, named: bool = False) -> list[bytes | Unset | None]:
    values = []
    for _ in range(reader.short()):
        if named:
            reader.string()
        values.append(reader.value())
    return values


def _bound(statement: Statement, raw: _Raw) -> Statement:
    markers = statement.parsed.markers
    if len(raw) != len(markers):
        raise CqlInvalid(f"there were {len(markers)} markers(?) in CQL but {len(raw)} bound variables")
    values = (
        UNSET if isinstance(data, Unset) else marker.type.decode(data)
        for marker, data in zip(markers, raw, strict=True)
    )
    return Statement(statement.cql, tuple(values), statement.prepared_id, parsed=statement.parsed)


def _serial(flags: int, reader: Reader) -> str | None:
    return _level(reader.short()) if flags & 0x10 else None


def _level(code: int) -> str:
    return str(ConsistencyLevel.value_to_name[code])
