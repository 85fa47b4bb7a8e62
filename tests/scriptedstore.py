"""The real CassandraStore in front of the scripted server: two hosts, so that a request sent again would show."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import cqlserver
from contract.faces import Face
from cqlserver import Request, ScriptedServer

from slotkeeper.database import (
    Batch,
    CassandraSettings,
    DatabaseError,
    Kind,
    Outcome,
    Port,
    Row,
    Slice,
    Table,
    Unavailable,
    Unknown,
    update,
)
from slotkeeper.database.cassandra import CassandraStore

HOSTS = ("127.0.0.1", "127.0.0.2")
DOMAIN = UUID("30000000-0000-0000-0000-000000000001")
HASTY_S = 0.4  # long enough for an answer on loopback, short enough to wait for silence

TOKENS = Table(
    "tokens",
    {"domain": Kind.UUID, "name": Kind.TEXT},
    {"kind": Kind.INT, "id": Kind.INT},
    {"holder": Kind.TEXT, "version": Kind.BIGINT, "seen_at": Kind.TIMESTAMP},
)
SERVED = cqlserver.Table.from_cql(
    """CREATE TABLE slots.tokens (
        domain uuid, name text, kind int, id int, holder text, version bigint, seen_at timestamp,
        PRIMARY KEY ((domain, name), kind, id)
    )"""
)


class Told(NamedTuple):
    """An unknown outcome in a form that compares: the class of its cause, and whether the server said so itself."""

    cause: type[Exception]
    answered: bool


def told(outcome: Outcome) -> object:
    """Return an outcome in a form that compares."""
    return Told(type(outcome.cause), outcome.answered) if isinstance(outcome, Unknown) else outcome


def answered(cause: type[Exception]) -> Told:
    """Spell an unknown outcome that the server admitted."""
    return Told(cause, answered=True)


def silent(cause: type[Exception]) -> Told:
    """Spell an unknown outcome that nobody told us."""
    return Told(cause, answered=False)


def settings(server: ScriptedServer, **changes: Any) -> CassandraSettings:
    """Return the settings that lead to a server, with some of them changed."""
    plain = CassandraSettings(hosts=(server.host,), port=server.port, keyspace="slots")
    return replace(plain, **changes)


@contextmanager
def opened(server: ScriptedServer, **changes: Any) -> Iterator[CassandraStore]:
    """Open a store that is connected to every host, and close it."""
    store = CassandraStore(settings(server, **changes))
    try:
        wait(store._session._initial_connect_futures, 10)
        yield store
    finally:
        store.close()


def grant(*ids: int, name: str | None = None) -> Batch:
    """Make a batch that gives some tokens to `me`: in a partition of its own, unless one is named."""
    expect = {"holder": ("FREE", None), "version": (7,)}
    writes = tuple(update((1, each), {"holder": "me", "version": 8}, expect=expect) for each in ids or (1,))
    return Batch(TOKENS, (DOMAIN, name or str(uuid4())), writes)


@dataclass
class Bench:
    """A server, a store in front of it, and a face. `sent` has what reached the server since the bench was made."""

    server: ScriptedServer
    store: CassandraStore
    face: Face
    _before: int = field(init=False)

    def __post_init__(self) -> None:
        self._before = len(self.server.lwts)

    @property
    def port(self) -> Port:
        """A port over the store."""
        return self.face.port_over(self.store)

    @property
    def sent(self) -> list[Request]:
        """The lightweight transactions that reached the server, whichever of its hosts."""
        return self.server.lwts[self._before :]

    def commit(self, *answers: cqlserver.Scripted, batch: Batch | None = None) -> Outcome:
        """Commit a batch to which the server has these answers."""
        self.server.script(*answers)
        return self.face.run(self.port.commit(batch or grant()))

    def told(self, *answers: cqlserver.Scripted, batch: Batch | None = None) -> object:
        """Commit, and return what the caller learns in a form that compares: an error stands for itself by its class."""
        try:
            outcome = self.commit(*answers, batch=batch)
        except DatabaseError as error:
            return type(error)
        return told(outcome)

    def probe(self) -> None:
        """Read whatever comes of it: the driver learns from it which of its connections are gone."""
        with suppress(Unavailable):
            self.rows()

    def rows(self, *slices: Slice, serial: bool = True) -> list[Row]:
        """Read slices of a partition."""
        return self.face.run(self.port.read(TOKENS, (DOMAIN, "s"), slices or (Slice(),), serial=serial))


def checked(bench: Bench) -> Iterator[Bench]:
    """Lend a bench to a test. Whatever the test does, no transaction may have reached the server twice."""
    yield bench
    sent = [request.statements for request in bench.sent]
    assert all(sent.count(each) == 1 for each in sent)
    assert not bench.server.script_left
