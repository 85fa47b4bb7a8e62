"""The server: what it listens on, what it answers, and what it has seen."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Condition, Thread
from types import TracebackType
from typing import Self

from . import answers
from .answers import Answer, Applied, Done, Row, Rows, Scripted
from .connection import Connection
from .decoding import Prepared
from .requests import Purpose, Request
from .results import Dialect
from .system import Host, SystemTables, system_tables
from .tables import Catalog, Table

ReadAnswer = Answer | Sequence[Row]
_CLOSING_S = 5.0


class ScriptedServer:
    """A CQL server on loopback that answers as a test says, and records what it was asked.

    One lightweight transaction takes its answer from the script, or else from `on_lwt`, or else is applied. All callables
    run on the server's one thread, one after the other: they must not block (return `Late` instead), and a store behind
    them needs no lock. `hosts` are loopback addresses that share one port, one script and one record; `tls` may
    name a context for each.
    """

    def __init__(
        self,
        tables: Iterable[Table] = (),
        *,
        keyspaces: Iterable[str] = (),
        hosts: Sequence[str | Host] = ("127.0.0.1",),
        dialect: Dialect = "cassandra",
        credentials: tuple[str, str] | None = None,
        tls: ssl.SSLContext | Mapping[str, ssl.SSLContext] | None = None,
        cluster_name: str = "scripted",
    ) -> None:
        self.hosts = [Host(host) if isinstance(host, str) else host for host in hosts]
        self.catalog = Catalog(keyspaces, [*system_tables(), *tables])
        self.system = SystemTables(self.catalog, self.hosts, cluster_name)
        self.prepared = Prepared()
        self.dialect: Dialect = dialect
        self.credentials = credentials
        self.connections: set[Connection] = set()
        self.failures: list[Exception] = []
        self.on_lwt: Callable[[Request], Answer] | None = None
        self.on_read: Callable[[Request], ReadAnswer] | None = None
        self.on_write: Callable[[Request], Answer] | None = None
        self.on_schema: Callable[[Request], Answer] | None = None
        self.on_prepare: Callable[[Request], Answer] | None = None
        self._tls = tls
        self._script: deque[Scripted] = deque()
        self._requests: list[Request] = []
        self._changed = Condition()
        self._listeners: dict[str, asyncio.Server] = {}
        self._parked: dict[str, socket.socket] = {}
        self._numbered = 0
        self._loop: asyncio.AbstractEventLoop
        self._thread: Thread

    # --- life ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        sockets = _bind([host.address for host in self.hosts])
        self.system.port = sockets[0].getsockname()[1]
        self._parked = dict(zip((host.address for host in self.hosts), sockets, strict=True))
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="scripted-cql-server", daemon=True)
        self._thread.start()
        for host in self.hosts:
            self.start(host.address)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for host in self.hosts:
            self.stop(host.address)
        for parked in self._parked.values():
            parked.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING_S)
        self._loop.close()
        if self.failures and error is None:
            raise AssertionError(f"{len(self.failures)} requests failed in the server") from self.failures[0]

    @property
    def host(self) -> str:
        """The first host's address."""
        return self.hosts[0].address

    @property
    def port(self) -> int:
        return self.system.port

    def start(self, host: str) -> None:
        """Let `host` accept connections (again)."""
        if host in self._parked:
            asyncio.run_coroutine_threadsafe(self._listen(host), self._loop).result(_CLOSING_S)

    def stop(self, host: str) -> None:
        """Cut the connections of `host` and refuse new ones; it forgets its prepared statements, as by a restart."""
        if host in self._listeners:
            asyncio.run_coroutine_threadsafe(self._park(host), self._loop).result(_CLOSING_S)
        self.forget_prepared(host)

    def cut(self, host: str | None = None) -> None:
        """Cut the open connections of `host`, or all; it goes on accepting new ones."""
        asyncio.run_coroutine_threadsafe(self._cut(host), self._loop).result(_CLOSING_S)

    def forget_prepared(self, host: str | None = None) -> None:
        """Let `host`, or all, answer 0x2500 until clients prepare their statements again."""
        for each in [host] if host else list(self.prepared.known):
            self.prepared.known.pop(each, None)

    # --- what it answers ----------------------------------------------------------------------------------------

    def script(self, *answers: Scripted) -> None:
        """Add the answers to the next lightweight transactions, in order, whichever host they reach."""
        with self._changed:
            self._script.extend(answers)

    @property
    def script_left(self) -> int:
        """How many answers of the script nobody has asked for yet."""
        with self._changed:
            return len(self._script)

    def forget_script(self) -> None:
        """Drop the answers that nobody has asked for yet."""
        with self._changed:
            self._script.clear()

    def take_answer(self, request: Request, host: Host) -> Scripted:
        """Record the request and say what to answer. Connections call it."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
            if request.purpose == "lwt":
                return self._script.popleft() if self._script else self.on_lwt or Applied()
        match request.purpose:
            case "read":
                return self._read(request)
            case "write":
                return self.on_write or Done()
            case "prepare":
                return self.on_prepare or Done()
            case "schema":
                return self._schema(request)
            case "unprepared":
                return self._unprepared(request)
            case "system" if request.statement.verb == "use":
                return self._use(request.statement.parsed.target)
            case "system":
                return Rows(self.system.read(request.statement, host))
        return Done()

    def _read(self, request: Request) -> Answer:
        answer = self.on_read(request) if self.on_read else Rows()
        return Rows(answer) if isinstance(answer, Sequence) else answer

    def _schema(self, request: Request) -> Answer:
        answer = self.on_schema(request) if self.on_schema else Done()
        if isinstance(answer, Done):
            self._create(request.statement.cql, request.keyspace)
        return answer

    def _create(self, cql: str, keyspace: str) -> None:
        """Follow CREATE KEYSPACE and CREATE TABLE, so that a schema may be applied; other DDL changes nothing."""
        made = re.match(r"\s*create\s+keyspace\s+(?:if\s+not\s+exists\s+)?\"?(\w+)", cql, re.I)
        if made:
            self.catalog.keyspaces[made[1]] = None
        elif re.match(r"\s*create\s+table\b", cql, re.I):
            self.catalog.add(Table.from_cql(cql, keyspace))

    def _unprepared(self, request: Request) -> Answer:
        unknown = (each for each in request.statements if not self.prepared.knows(request.host, each))
        return answers.not_prepared(next(unknown).prepared_id or b"")

    def _use(self, keyspace: str) -> Answer:
        return (
            Done() if keyspace in self.catalog.keyspaces else answers.invalid(f"Keyspace '{keyspace}' does not exist")
        )

    # --- what it has seen ---------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[Request]:
        """All requests so far, in the order in which they came, those of the driver's own included."""
        with self._changed:
            return list(self._requests)

    @property
    def lwts(self) -> list[Request]:
        return self.seen("lwt")

    @property
    def reads(self) -> list[Request]:
        return self.seen("read")

    @property
    def writes(self) -> list[Request]:
        return self.seen("write")

    def seen(self, purpose: Purpose) -> list[Request]:
        return [request for request in self.requests if request.purpose == purpose]

    @property
    def repeated_lwts(self) -> list[Request]:
        """The lightweight transactions whose statements and values had been sent before, to whichever host."""
        lwts = self.lwts
        earlier = [[other.statements for other in lwts[:at]] for at in range(len(lwts))]
        return [request for request, before in zip(lwts, earlier, strict=True) if request.statements in before]

    def wait_for(self, count: int, purpose: Purpose = "lwt", timeout_s: float = 10.0) -> list[Request]:
        """Wait until that many requests of the purpose have come, and return them."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.seen(purpose)) >= count, timeout_s)
        assert came, f"{len(self.seen(purpose))} of {count} {purpose} requests came within {timeout_s} s"
        return self.seen(purpose)

    # --- on the server's thread ---------------------------------------------------------------------------------

    async def _listen(self, host: str) -> None:
        node = next(each for each in self.hosts if each.address == host)
        tls = self._tls[host] if isinstance(self._tls, Mapping) else self._tls
        self._listeners[host] = await self._loop.create_server(
            lambda: self._connection(node), sock=self._parked.pop(host), ssl=tls, start_serving=False
        )
        await self._listeners[host].start_serving()

    def is_listening(self, host: Host) -> bool:
        return host.address in self._listeners

    def _connection(self, host: Host) -> Connection:
        self._numbered += 1
        return Connection(self, host, self._numbered)

    async def _park(self, host: str) -> None:
        """Close the listening socket and hold its port by one that does not listen: connecting to that is refused."""
        self._listeners.pop(host).close()
        await self._cut(host)
        self._parked[host] = _bound(host, self.port)

    async def _cut(self, host: str | None) -> None:
        for connection in list(self.connections):
            if host in (None, connection.host.address):
                connection.cut()
        # The transports close their sockets in the next rounds of the loop, TLS in a later one than plain TCP.
        for _ in range(5):
            await asyncio.sleep(0)


def _bound(host: str, port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def _bind(hosts: Sequence[str], attempts: int = 20) -> list[socket.socket]:
    """Bind one port on all hosts; a port that is free on the first may be taken on another."""
    for _ in range(attempts):
        bound = [_bound(hosts[0], 0)]
        with suppress(OSError):
            for host in hosts[1:]:
                bound.append(_bound(host, bound[0].getsockname()[1]))
            return bound
        for sock in bound:
            sock.close()
    raise OSError(f"no port is free on all of {hosts}")
