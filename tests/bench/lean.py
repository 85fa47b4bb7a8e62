"""A lean HTTP/1.1 client: on two cores, a client that works as hard as the service would be measured in its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

LENGTH = b"content-length: "


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes


class Connection(asyncio.Protocol):
    """A connection that is kept alive, for one question at a time."""

    _transport: asyncio.Transport
    _answer: asyncio.Future[Answer]

    def __init__(self) -> None:
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take a piece of the answer."""
        self._got += data
        answer = _whole(self._got)
        if answer is not None:
            self._got = b""
            self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        """Leave nobody waiting."""
        if not self._answer.done():
            self._answer.set_exception(ConnectionError("the service has hung up"))

    async def ask(self, question: bytes, statuses: Collection[int] = (200,)) -> Answer:
        """Ask, and return the answer, which has one of these statuses."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(question)
        answer = await self._answer
        assert answer.status in statuses, f"{answer.status} for {question!r}: {answer.body!r}"
        return answer

    def close(self) -> None:
        """Hang up."""
        self._transport.close()


@asynccontextmanager
async def connections(url: str, count: int) -> AsyncIterator[list[Connection]]:
    """Open so many connections to a service on this host."""
    to, loop = urlsplit(url), asyncio.get_running_loop()
    assert to.hostname is not None
    assert to.port is not None
    opened = [(await loop.create_connection(Connection, to.hostname, to.port))[1] for _ in range(count)]
    try:
        yield opened
    finally:
        for each in opened:
            each.close()


def question(method: str, path: str, body: bytes = b"") -> bytes:
    """Spell a request, with a body of JSON if there is one."""
    content = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nhost: bench\r\n{content}\r\n".encode() + body


def _whole(got: bytes) -> Answer | None:
    head, end, body = got.partition(b"\r\n\r\n")
    if not end:
        return None
    at = head.find(LENGTH)
    length = 0 if at < 0 else int(head[at + len(LENGTH) :].partition(b"\r\n")[0])
    return Answer(int(head[9:12]), body) if len(body) >= length else None
