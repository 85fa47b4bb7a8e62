"""One connection of a client: frames in, answers out."""

from __future__ import annotations

import asyncio
import socket
import struct
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from . import answers, results
from .answers import Answer, Applied, CutAfter, CutBefore, Done, ErrorFrame, Late, Refused, Rows, Scripted, Silence
from .decoding import Decoder, NotPrepared
from .frames import VERSION, Frame, Opcode, response, string, string_multimap, take_frames, value
from .lexer import CqlSyntaxError
from .requests import Request
from .statements import CqlInvalid
from .system import Host

if TYPE_CHECKING:
    from .server import ScriptedServer

_AUTHENTICATOR: Final = "org.apache.cassandra.auth.PasswordAuthenticator"
_SUPPORTED: Final = {"CQL_VERSION": ["3.4.7"], "COMPRESSION": [], "PROTOCOL_VERSIONS": ["4/v4"]}
_REQUESTS: Final = (Opcode.QUERY, Opcode.PREPARE, Opcode.EXECUTE, Opcode.BATCH)
# How often a late answer looks at its event: a thread that waited for it could not be stopped with the server.
_POLL_S: Final = 0.002


class Connection(asyncio.Protocol):
    """Speaks the protocol on one connection; what to answer, the server decides."""

    def __init__(self, server: ScriptedServer, host: Host, number: int) -> None:
        self.host = host
        self._server = server
        self._decoder = Decoder(server.catalog, server.prepared, host.address, number)
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    # --- the transport's side -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections.add(self)
        if not self._server.is_listening(self.host):
            self.cut()  # accepted in the last moment before the host stopped, and missed by its cut

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for frame in take_frames(self._buffer):
            if self._transport is None:
                return
            self._handle(frame)

    def cut(self, reset: bool = False) -> None:
        """Close the connection at once: by FIN, or by RST."""
        if self._transport is None:
            return
        if reset:
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
        self._transport = None

    def _send(self, stream: int, opcode: Opcode, body: bytes) -> None:
        if self._transport is not None:
            self._transport.write(response(stream, opcode, body))

    # --- requests -----------------------------------------------------------------------------------------------

    def _handle(self, frame: Frame) -> None:
        try:
            self._dispatch(frame)
        except CqlSyntaxError as error:
            self._send_error(frame.stream, answers.syntax_error(str(error)))
        except CqlInvalid as error:
            self._send_error(frame.stream, answers.invalid(str(error)))
        except NotPrepared as error:
            self._send_error(frame.stream, answers.not_prepared(error.prepared_id))
        except Exception as error:
            self._failed(frame.stream, error)

    def _failed(self, stream: int, error: Exception) -> None:
        """Give a mistake of the test's own script to the test as well: the client alone might swallow it."""
        self._server.failures.append(error)
        self._send_error(stream, answers.server_error(repr(error)))

    def _dispatch(self, frame: Frame) -> None:
        if frame.version != VERSION:
            message = f"Invalid or unsupported protocol version ({frame.version}); supported versions are (4/v4)"
            self._send_error(frame.stream, answers.protocol_error(message))
        elif frame.opcode in _REQUESTS:
            request = self._decoder.decode(frame, monotonic())
            self._answer(frame.stream, request, self._server.take_answer(request, self.host))
        else:
            self._shake_hands(frame)

    def _shake_hands(self, frame: Frame) -> None:
        match frame.opcode:
            case Opcode.OPTIONS:
                self._send(frame.stream, Opcode.SUPPORTED, string_multimap(_SUPPORTED))
            case Opcode.STARTUP if self._server.credentials:
                self._send(frame.stream, Opcode.AUTHENTICATE, string(_AUTHENTICATOR))
            case Opcode.STARTUP | Opcode.REGISTER:
                self._send(frame.stream, Opcode.READY, b"")
            case Opcode.AUTH_RESPONSE:
                self._authenticate(frame)
            case _:
                self._send_error(frame.stream, answers.protocol_error(f"Unknown opcode {frame.opcode}"))

    def _authenticate(self, frame: Frame) -> None:
        user, password = self._server.credentials or ("", "")
        if frame.body == value(f"\0{user}\0{password}".encode()):
            self._send(frame.stream, Opcode.AUTH_SUCCESS, value(b""))
        else:
            self._send_error(frame.stream, answers.bad_credentials())

    # --- answers ------------------------------------------------------------------------------------------------

    def _answer(self, stream: int, request: Request, scripted: Scripted) -> None:
        answer: Answer = scripted(request) if callable(scripted) else scripted
        match answer:
            case Silence():
                return
            case CutBefore(reset):
                self.cut(reset)
            case CutAfter(effect, reset):
                if effect is not None:
                    effect(request)
                self.cut(reset)
            case Late():
                self._later(stream, request, answer)
            case ErrorFrame():
                self._send_error(stream, answer)
            case _:
                self._send(stream, Opcode.RESULT, self._result(request, answer))

    def _later(self, stream: int, request: Request, late: Late) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(late.after, (int, float)):
            loop.call_later(late.after, self._answer_late, stream, request, late.answer)
        elif late.after.is_set():
            self._answer_late(stream, request, late.answer)
        else:
            loop.call_later(_POLL_S, self._later, stream, request, late)

    def _answer_late(self, stream: int, request: Request, answer: Scripted) -> None:
        try:
            self._answer(stream, request, answer)
        except Exception as error:
            self._failed(stream, error)

    def _send_error(self, stream: int, answer: ErrorFrame) -> None:
        self._send(stream, Opcode.ERROR, results.error(answer))

    def _result(self, request: Request, answer: Done | Applied | Refused | Rows) -> bytes:
        parsed = request.statement.parsed if request.statements else None
        match answer:
            case Applied() | Refused():
                return results.lwt(request, answer, self._server.dialect)
            case Rows(content) if parsed is not None:
                return results.rows(parsed.table, parsed.selection, content)
        if parsed is not None and parsed.verb == "use":
            self._decoder.keyspace = parsed.target
            return results.set_keyspace(parsed.target)
        if parsed is not None and request.kind == "prepare":
            prepared_id = self._server.prepared.add(self.host.address, self._decoder.keyspace, parsed)
            return results.prepared(prepared_id, parsed)
        return results.VOID
