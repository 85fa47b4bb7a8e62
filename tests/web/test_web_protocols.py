"""Both ways to read HTTP: with httptools, and with h11 where that is not installed. The same of both."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from slotkeeper.web.reading import LONGEST_HEAD
from slotkeeper.web.serving import Server, bound
from slotkeeper.web.stopping import Stopping

PROTOCOLS = ["QuickProtocol", "H11Protocol"]
ABSENT = "httptools", "slotkeeper.web.quick", "uvicorn.protocols.http.httptools_impl"
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is installed."""
    if request.param == "H11Protocol":
        monkeypatch.setitem(sys.modules, "httptools", None)
        for name in ABSENT[1:]:
            monkeypatch.delitem(sys.modules, name, raising=False)
    return str(request.param)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what came in."""
    request = Request(scope, receive)
    said = f"{request.method} {request.url.path} {request.url.query} {(await request.body()).decode()}"
    await Response(said)(scope, receive, send)


@asynccontextmanager
async def talking(protocol: str) -> AsyncIterator[Line]:
    """Open a connection to a server that has read HTTP so from its beginning."""
    server, began = Server(echo, Stopping(), grace_s=1), asyncio.Event()
    with bound("127.0.0.1", 0) as sock:
        serving = asyncio.ensure_future(server.run_on(sock, began.set))
        await asyncio.wait_for(began.wait(), 10)
        assert server.config.http_protocol_class.__name__ == protocol
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()
            server.stop()
            await asyncio.wait_for(serving, 10)


async def answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Read an answer."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
    return int(head.split(" ")[1]), (await reader.readexactly(length)).decode()


async def test_requests_follow_one_another_over_one_connection(protocol: str) -> None:
    async with talking(protocol) as (reader, writer):
        for body in ("one", "two"):
            writer.write(f"POST /%61/b?c=%20 HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n{body}".encode())
            assert await answer(reader) == (200, f"POST /a/b c=%20 {body}")


async def test_a_head_may_come_in_pieces_and_a_body_in_chunks(protocol: str) -> None:
    async with talking(protocol) as (reader, writer):
        for piece in (
            b"POST / HTT",
            b"P/1.1\r\nhost: x\r\ntransfer-en",
            b"coding: chunked\r\n\r\n2\r\non",
            b"\r\n0\r\n\r\n",
        ):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        assert await answer(reader) == (200, "POST /  on")


async def test_a_path_may_be_long(protocol: str) -> None:
    path = "/" + "a" * (LONGEST_HEAD - 1000)
    async with talking(protocol) as (reader, writer):
        writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert await answer(reader) == (200, f"GET {path}  ")


@pytest.mark.parametrize(
    "head", ["GET /{} HTTP/1.1\r\nhost: x\r\n", "GET / HTTP/1.1\r\nx-long: {}"], ids=["path", "header"]
)
async def test_a_head_without_an_end_is_refused(protocol: str, head: str) -> None:
    async with talking(protocol) as (reader, writer):
        for piece in (head.split("{}")[0], *["a" * 1000] * (2 * LONGEST_HEAD // 1000)):
            writer.write(piece.encode())
            await asyncio.sleep(0)
        try:
            assert (await answer(reader))[0] in (400, 431)
            await asyncio.wait_for(reader.read(), 10)
        except ConnectionResetError:
            pass  # what was sent after the answer


async def test_what_is_no_request_is_refused(protocol: str) -> None:
    async with talking(protocol) as (reader, writer):
        writer.write(b"SSH-2.0-else\r\n\r\n")
        assert (await answer(reader))[0] == 400
        await asyncio.wait_for(reader.read(), 10)  # to the end
