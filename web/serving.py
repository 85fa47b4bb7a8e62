"""Running a service until it is told to stop: then waits end, requests under way are answered, and it returns."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import SlotkeeperError
from .reading import LONGEST_HEAD
from .stopping import Stopping

GRACE_S = 30
LINGER_S = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class CannotListen(SlotkeeperError):
    """The address cannot be listened on. Stop what listens there, or name another one."""


class BadCertificate(SlotkeeperError):
    """The certificate or its key cannot be read. Both are PEM files; the key has no passphrase."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a service shows of itself, and the key to it: PEM files."""

    cert_file: str
    key_file: str

    def context(self) -> ssl.SSLContext:
        """Return what makes connections of it. Raises BadCertificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.cert_file, self.key_file, password=_no_passphrase)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise BadCertificate(f"{self.cert_file} and {self.key_file} cannot be used: {error}") from error
        return context


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound and does not listen yet; port 0 takes a free one. Raises CannotListen."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        sock = socket.socket(family, kind, protocol)  # with its protocol: asyncio sets TCP_NODELAY on no other
    except (OSError, UnicodeError) as error:
        raise CannotListen(f"{host}:{port} cannot be listened on: {error}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except (OSError, OverflowError) as error:
        sock.close()
        raise CannotListen(f"{host}:{port} cannot be listened on: {error}") from error
    return sock


def address_of(sock: socket.socket, *, tls: bool) -> str:
    """Return the URL of what listens on a socket."""
    host, port = sock.getsockname()[:2]
    return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"


class Server(uvicorn.Server):
    """A server that is told to stop by a signal, or by `stop`."""

    def __init__(
        self, app: ASGIApp, stopping: Stopping, *, certificate: Certificate | None = None, grace_s: int = GRACE_S
    ) -> None:
        self._stopping = stopping
        self._context = certificate.context() if certificate is not None else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._announce: Callable[[], None] = lambda: None
        options: dict[str, Any] = {"ssl_context_factory": self._secure} if certificate is not None else {}
        config = uvicorn.Config(
            app,
            http=_protocol(),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=grace_s,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            **options,
        )
        super().__init__(config)

    async def run_on(self, sock: socket.socket, announce: Callable[[], None] = lambda: None) -> None:
        """Answer what comes in on a socket, until told to stop. `announce` is called when the first request may come."""
        self._loop, self._announce = asyncio.get_running_loop(), announce
        await self.serve(sockets=[sock])

    def stop(self) -> None:
        """Begin to stop, from any thread; the second time, do not wait for requests under way."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, and wait for none that does not say goodbye."""
        hanging_up = asyncio.create_task(self._hang_up())
        try:
            await super().shutdown(sockets)
        finally:
            hanging_up.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals stop it. It then has ended as it should: they are not raised again."""
        try:
            before = {number: signal.signal(number, self._signalled) for number in SIGNALS}
        except ValueError:  # not the main thread: whoever runs it there stops it
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.stop()

    def _stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._stopping.set()

    async def _hang_up(self) -> None:
        """End connections that carry no request: one with TLS waits for its peer to end it too, and an idle peer does not."""
        while self._context is not None:
            await asyncio.sleep(LINGER_S)
            connections: list[Any] = list(self.server_state.connections)
            for connection in connections:
                if connection.cycle is None or connection.cycle.response_complete:
                    connection.transport.abort()

    def _secure(self, config: uvicorn.Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        assert self._context is not None
        return self._context


def _protocol() -> type[asyncio.Protocol]:
    """Return what reads HTTP: httptools where it is installed, which takes half the time; else h11."""
    try:
        from .quick import QuickProtocol
    except ImportError:
        return H11Protocol
    return QuickProtocol


def _no_passphrase() -> str:
    raise ValueError("the key wants a passphrase")
