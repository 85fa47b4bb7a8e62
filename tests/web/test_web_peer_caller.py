"""How services ask one another: what comes of a question, and which connections are used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from eventually import soon
from scriptedservice import Script, scripted

from slotkeeper.web import peers
from slotkeeper.web.address import Address
from slotkeeper.web.failures import AnswerLost, BadToken, BadTrust, CallerClosed, NotSent
from slotkeeper.web.peers import PeerCaller

pytestmark = pytest.mark.anyio


@pytest.fixture
def script() -> Iterator[Script]:
    """A service that does what a test says."""
    with scripted() as running:
        yield running


@asynccontextmanager
async def calling(url: str, **options: Any) -> AsyncIterator[PeerCaller]:
    """Open a caller."""
    caller = PeerCaller(Address.parse(url), **options)
    await caller.open()
    try:
        yield caller
    finally:
        await caller.close()


@asynccontextmanager
async def saying(*said: bytes, then_hang_up: bool = False) -> AsyncIterator[tuple[str, list[asyncio.StreamWriter]]]:
    """Run a service that says these bytes, one piece for each question, whatever it is asked. Yield its connections."""
    opened: list[asyncio.StreamWriter] = []
    talking: list[asyncio.Task[None]] = []
    left = list(said)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        while left and await reader.read(65536):
            writer.write(left.pop(0))
            if then_hang_up:
                break
        while not then_hang_up and await reader.read(65536):
            pass
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.append(asyncio.ensure_future(talk(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", opened
    await asyncio.gather(*talking)


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


async def test_a_question_arrives_whole_and_so_does_the_answer(script: Script) -> None:
    script.then(409, {"a": [1]}, x_more="b")

    async with calling(script.url + "/below/", token="s3cr3t") as caller:
        answer = await caller.post("/api/peer", b'{"q": 1}')

    (asked,) = script.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/below/api/peer", b'{"q": 1}')
    assert (asked.headers["authorization"], asked.headers["content-type"]) == ("Bearer s3cr3t", "application/json")
    assert asked.headers["host"] == script.url.removeprefix("http://")
    assert (answer.status, answer.body, answer.headers["x-more"]) == (409, b'{"a": [1]}', "b")
    assert "s3cr3t" not in repr(caller)


async def test_a_connection_is_used_again() -> None:
    async with saying(OK, OK) as (url, opened), calling(url) as caller:
        assert [(await caller.post("/", b"{}")).body for _ in range(2)] == [b"{}", b"{}"]
        assert len(opened) == 1


async def test_a_connection_that_was_silent_for_long_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with saying(OK, OK) as (url, opened), calling(url) as caller:
        await caller.post("/", b"{}")
        monkeypatch.setattr(peers, "IDLE_S", 0.0)
        await caller.post("/", b"{}")
        assert len(opened) == 2


async def test_a_connection_that_the_service_has_closed_is_not() -> None:
    async with saying(OK, OK, then_hang_up=True) as (url, opened), calling(url) as caller:
        await caller.post("/", b"{}")
        await soon(lambda: not any(each.is_free for each in caller._idle))
        await caller.post("/", b"{}")
        assert len(opened) == 2


async def test_questions_at_once_have_connections_of_their_own() -> None:
    async with saying(OK, OK) as (url, opened), calling(url) as caller:
        await asyncio.gather(caller.post("/", b"{}"), caller.post("/", b"{}"))
        assert len(opened) == 2


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}",
    ],
    ids=["in chunks", "after a hint", "until the end"],
)
async def test_an_answer_is_read_as_http_has_it(said: bytes) -> None:
    async with saying(said, then_hang_up=True) as (url, _), calling(url) as caller:
        assert (await caller.post("/", b"{}")).body == b"{}"


@pytest.mark.parametrize(
    "said",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", b"SSH-2.0\r\n\r\n"],
    ids=["nothing", "half", "else"],
)
async def test_an_answer_that_is_none_is_lost(said: bytes) -> None:
    async with saying(said, then_hang_up=True) as (url, _), calling(url) as caller:
        with pytest.raises(AnswerLost, match="may have been carried out"):
            await caller.post("/", b"{}")


async def test_where_nobody_listens_nothing_was_sent() -> None:
    async with saying() as (url, _):
        pass
    async with calling(url) as caller:
        with pytest.raises(NotSent, match="Nothing was changed"):
            await caller.post("/", b"{}")


async def test_who_stops_waiting_leaves_no_answer_to_the_next(script: Script) -> None:
    script.then_wait().then(200, "mine")

    async with calling(script.url) as caller:
        waiting = asyncio.ensure_future(caller.post("/", b"{}"))
        await soon(lambda: script.asked)
        waiting.cancel()
        await asyncio.wait((waiting,))
        assert (await caller.post("/", b"{}")).body == b'"mine"'


async def test_closing_ends_what_is_waited_for(script: Script) -> None:
    script.then_wait()
    async with calling(script.url) as caller:
        waiting = asyncio.ensure_future(caller.post("/", b"{}"))
        await soon(lambda: script.asked)
        await caller.close()
        with pytest.raises(AnswerLost):
            await asyncio.wait_for(waiting, 10)
        with pytest.raises(CallerClosed):
            await caller.post("/", b"{}")


@pytest.mark.parametrize(
    ("options", "error"), [({"token": "a b"}, BadToken), ({"tls_ca_file": "/none"}, BadTrust)], ids=["token", "trust"]
)
async def test_what_cannot_be_used_is_told(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        async with calling("http://127.0.0.1:1", **options):
            pass
