"""The two callers over httpx2: one that blocks and never suspends, and one for an asyncio loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import httpx2

from .address import Address
from .caller import Answer, Params, bearer
from .failures import AnswerLost, BadTrust, CallerClosed, NotSent, Unsendable

AGENT = "slotkeeper"
CONNECT_S = 5.0
LEAVE_S = 1.0  # for threads that were woken to leave their connections
IDLE_S = 4.0  # less than servers let a silent connection live: one that they are about to close is not used again
LIMITS = httpx2.Limits(
    max_keepalive_connections=20, keepalive_expiry=IDLE_S
)  # callers bound the connections, by being many
NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)


class _Calling:
    """What both callers are given, and how they read what comes of a request."""

    def __init__(self, address: Address, *, token: str | None = None, tls_ca_file: str | None = None) -> None:
        self.address = address
        self._headers = {"user-agent": AGENT, "accept": "application/json"}
        if token is not None:
            self._headers["authorization"] = bearer(token)
        self._tls_ca_file = tls_ca_file
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    @property
    def is_closed(self) -> bool:
        """Tell whether it asks no more."""
        return self._closed

    def now(self) -> float:
        """Return seconds on the monotonic clock."""
        return time.monotonic()

    def _options(self) -> dict[str, Any]:
        return {
            "headers": self._headers,
            "verify": trusted(self.address, self._tls_ca_file),
            "trust_env": not self.address.is_loopback,  # a proxy leads elsewhere from there
            "limits": LIMITS,
        }

    def _asked(
        self, path: str, body: bytes | None, params: Params, headers: Mapping[str, str] | None, timeout_s: float
    ) -> dict[str, Any]:
        if self._closed:
            raise CallerClosed
        content = {} if body is None else {"content-type": "application/json"}
        return {
            "url": f"{self.address}{path}",
            "content": body,
            "params": list(params) or None,
            "headers": {**content, **(headers or {})},
            "timeout": httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S)),
        }


class ThreadsCaller(_Calling):
    """Asks over connections that threads share. Its methods never suspend."""

    def __init__(self, address: Address, *, token: str | None = None, tls_ca_file: str | None = None) -> None:
        super().__init__(address, token=token, tls_ca_file=tls_ca_file)
        self._client = httpx2.Client(**self._options())
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._asking, self._changed = 0, threading.Condition()

    async def sleep(self, seconds: float) -> None:
        """Block this thread for a while."""
        time.sleep(seconds)  # noqa: ASYNC251 - this port never suspends, and no loop runs it

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Params = (),
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Answer:
        """See Caller.request."""
        asked = self._asked(path, body, params, headers, timeout_s)
        asked["extensions"], deadline = {"trace": self._keep}, self.now() + timeout_s
        with self._counted(), _sorted(), self._client.stream(method, **asked) as response:
            return _answer(response, self._bounded(response.iter_bytes(), deadline))

    async def close(self) -> None:
        """See Caller.close. A thread that waits on a connection is woken: closing alone would leave it waiting."""
        self._closed = True
        with self._changed:
            for each in list(self._sockets):
                with suppress(OSError):  # it is closed already
                    each.shutdown(socket.SHUT_RDWR)
            # A descriptor is closed when nobody reads from it: its number may be somebody else's by then.
            self._changed.wait_for(lambda: self._asking == 0, LEAVE_S)
        self._client.close()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._changed:
            self._asking += 1
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify_all()

    def _keep(self, event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self._changed:
                self._sockets.add(info["return_value"].get_extra_info("socket"))

    def _bounded(self, chunks: Iterable[bytes], deadline: float) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            _in_time(self.now(), deadline)


class LoopCaller(_Calling):
    """Asks over connections of one asyncio loop. Nothing here blocks it."""

    _client: httpx2.AsyncClient

    async def open(self) -> None:
        """Prepare the connections. The files of certificates are read in a thread."""
        self._client = await asyncio.to_thread(lambda: httpx2.AsyncClient(**self._options()))

    async def sleep(self, seconds: float) -> None:
        """Let the loop go on for a while."""
        await asyncio.sleep(seconds)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Params = (),
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Answer:
        """See Caller.request. Who is cancelled meanwhile takes nothing back: what was sent may be carried out."""
        asked = self._asked(path, body, params, headers, timeout_s)
        deadline, chunks = self.now() + timeout_s, list[bytes]()
        with _sorted():
            async with self._client.stream(method, **asked) as response:
                async for chunk in response.aiter_bytes():
                    chunks.append(chunk)
                    _in_time(self.now(), deadline)
                return _answer(response, chunks)

    async def close(self) -> None:
        """See Caller.close."""
        self._closed = True
        await self._client.aclose()


def trusted(address: Address, tls_ca_file: str | None) -> ssl.SSLContext:
    """Return whom to trust. Raises BadTrust."""
    if not address.is_secure:
        if tls_ca_file is not None:
            raise BadTrust(f"{address} is not encrypted: certificates to trust are for an https:// address.")
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and is asked by nobody
    try:
        return ssl.create_default_context(cafile=tls_ca_file)
    except OSError as error:  # also what ssl raises
        raise BadTrust(f"{tls_ca_file} cannot be read ({error.strerror or error}). {BadTrust.__doc__}") from error


@contextmanager
def _sorted() -> Iterator[None]:
    """Sort what goes wrong by the one question that matters: whether the service can have it."""
    try:
        yield
    except NEVER_SENT as error:
        raise NotSent(f"{NotSent.__doc__} ({_told(error)})") from error
    except (httpx2.InvalidURL, httpx2.LocalProtocolError) as error:
        raise Unsendable(f"{Unsendable.__doc__} ({_told(error)})") from error
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise AnswerLost(f"{AnswerLost.__doc__} ({_told(error)})") from error


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _answer(response: httpx2.Response, chunks: Iterable[bytes]) -> Answer:
    return Answer(response.status_code, dict(response.headers), b"".join(chunks))


def _in_time(now: float, deadline: float) -> None:
    if now > deadline:
        raise httpx2.ReadTimeout("the answer came too slowly")
