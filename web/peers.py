"""How services ask one another: often, and about little. A client for the wide world would cost more than what is asked for.

No proxy, no redirect, no compression; one question after the other over connections that are kept, as h11 reads them.
"""

from __future__ import annotations

import asyncio
import ssl

import h11

from .address import PORTS, Address
from .caller import Answer, bearer
from .callers import AGENT, CONNECT_S, IDLE_S, trusted
from .failures import AnswerLost, CallerClosed, NotSent


class PeerCaller:
    """Asks one service over connections of one asyncio loop. Who waits for an answer bounds that, by being cancelled."""

    def __init__(self, address: Address, *, token: str | None = None, tls_ca_file: str | None = None) -> None:
        self.address = address
        self._headers = [("host", _authority(address)), ("user-agent", AGENT), ("content-type", "application/json")]
        if token is not None:
            self._headers.append(("authorization", bearer(token)))
        self._tls_ca_file = tls_ca_file
        self._context: ssl.SSLContext | None = None
        self._idle: list[_Connection] = []  # the one that was used last comes last
        self._busy: set[_Connection] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    async def open(self) -> None:
        """Prepare for connections. The files of certificates are read in a thread. Raises BadTrust."""
        context = await asyncio.to_thread(trusted, self.address, self._tls_ca_file)
        self._context = context if self.address.is_secure else None

    async def post(self, path: str, body: bytes) -> Answer:
        """Send JSON, and return the answer whatever its status. Raises NotSent, AnswerLost, CallerClosed."""
        connection = self._kept() or await self._connected()
        if self._closed:
            connection.end()
            raise CallerClosed
        self._busy.add(connection)
        try:
            return await connection.ask(self._asked(path, body), body)
        finally:
            self._busy.discard(connection)
            self._keep(connection)

    async def close(self) -> None:
        """Give up the connections, and whatever is waited for on them."""
        self._closed = True
        for connection in (*self._idle, *self._busy):
            connection.end()
        self._idle.clear()

    def _asked(self, path: str, body: bytes) -> h11.Request:
        headers = [*self._headers, ("content-length", str(len(body)))]
        return h11.Request(method="POST", target=f"{self.address.path}{path}", headers=headers)

    async def _connected(self) -> _Connection:
        """Open a connection. Raises NotSent."""
        where, host, loop = self.address, self.address.host, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await loop.create_connection(_Connection, host, where.port, ssl=self._context)
        except (OSError, UnicodeError) as error:  # a TimeoutError is an OSError, and so is what ssl raises
            raise NotSent(f"{NotSent.__doc__} ({type(error).__name__}: {error})") from error
        return connection

    def _kept(self) -> _Connection | None:
        """Return a connection that may be used again; the service is about to close those that were silent for long."""
        oldest = asyncio.get_running_loop().time() - IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free and connection.free_since > oldest:
                return connection
            connection.end()
        return None

    def _keep(self, connection: _Connection) -> None:
        """Keep a connection for the next question, unless it is over or somebody stopped waiting on it."""
        if self._closed or not connection.is_free:
            connection.end()
            return
        self._idle.append(connection)
        while connection.free_since - self._idle[0].free_since > IDLE_S:
            self._idle.pop(0).end()


class _Connection(asyncio.Protocol):
    """One connection, for one question at a time."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT)
        self._answer: asyncio.Future[Answer] | None = None
        self._head: h11.Response | None = None
        self._body = bytearray()
        self.free_since = 0.0

    @property
    def is_free(self) -> bool:
        """Tell whether it may be asked something."""
        return self._http.our_state is self._http.their_state is h11.IDLE and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    async def ask(self, request: h11.Request, body: bytes) -> Answer:
        """Ask, in one piece, and return the answer. Raises AnswerLost."""
        self._answer = asyncio.get_running_loop().create_future()
        events = (request, h11.Data(body), h11.EndOfMessage())
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))
        return await self._answer

    def end(self) -> None:
        """Hang up."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take a piece of the answer; nothing at all is its end."""
        try:
            self._http.receive_data(data)
            self._read()
        except h11.RemoteProtocolError as error:
            self._lose(f"{type(error).__name__}: {error}")
            self.end()

    def eof_received(self) -> None:
        """Take the end, and hang up."""
        self.data_received(b"")

    def connection_lost(self, error: Exception | None) -> None:
        """Leave nobody waiting."""
        self._lose(f"{type(error).__name__}: {error}" if error is not None else "the connection has ended")

    def _read(self) -> None:
        while True:
            match self._http.next_event():
                case h11.Response() as head:
                    self._head = head
                case h11.Data(data=data):
                    self._body += data
                case h11.EndOfMessage():
                    return self._finish()
                case h11.NEED_DATA | h11.PAUSED | h11.ConnectionClosed():
                    return None

    def _finish(self) -> None:
        head, body = self._head, bytes(self._body)
        assert head is not None, "an answer ends after it has begun"
        self._head, self._body = None, bytearray()
        if self._http.our_state is self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self.free_since = asyncio.get_running_loop().time()
        if self._answer is not None and not self._answer.done():
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
            self._answer.set_result(Answer(head.status_code, headers, body))

    def _lose(self, why: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(AnswerLost(f"{AnswerLost.__doc__} ({why})"))


def _authority(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return host if address.port == PORTS[address.scheme] else f"{host}:{address.port}"
