"""What the services share, each part by itself."""

from __future__ import annotations

import asyncio
import pickle
import socket
from contextlib import closing
from pathlib import Path

import pytest
import trustme
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Scope

from slotkeeper.web.problem import Problem
from slotkeeper.web.reading import Gone, Intake
from slotkeeper.web.repeats import Repeats
from slotkeeper.web.serving import BadCertificate, CannotListen, Certificate, address_of, bound
from slotkeeper.web.stopping import Stopping, while_wanted
from slotkeeper.web.tokens import BadTokenFile, TokenNeeded, check_reach, checked_token, read_token

TOKEN = "correct-horse-battery"


def request(*messages: Message, headers: dict[str, str] | None = None) -> Request:
    """Return a request whose client sends these messages, and then nothing any more."""
    left = list(messages)

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    spelled = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    scope: Scope = {"type": "http", "method": "POST", "path": "/", "headers": spelled, "query_string": b""}
    return Request(scope, receive)


def sent(body: bytes, *, more: bool = False) -> Message:
    """Return a piece of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


LEFT: Message = {"type": "http.disconnect"}


# Who may ask


@pytest.mark.parametrize(
    "text", ["", "short", "fifteen-letters", "with a blank in it", "tab\tseparated-token", "ü" * 20]
)
def test_a_token_is_long_and_one_word_of_ascii(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(BadTokenFile, match="at least 16") as of_file:
        read_token(path)
    with pytest.raises(BadTokenFile, match=r"THERE holds no token.* at least 16") as of_variable:
        checked_token(text, "THERE")
    assert not text or text not in f"{of_file.value} {of_variable.value}"


def test_a_token_file_ends_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")

    assert read_token(tmp_path / "token") == TOKEN


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadTokenFile, match=r"nowhere holds no token: No such file"):
        read_token(tmp_path / "nowhere")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1"])
def test_on_loopback_no_token_is_needed(host: str) -> None:
    check_reach(host, {})


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "fe80::1%eth0"])
def test_elsewhere_a_token_is_needed(host: str) -> None:
    check_reach(host, {TOKEN: None})
    with pytest.raises(TokenNeeded, match="a token is needed"):
        check_reach(host, {})


# Where it listens, and what it shows


def test_a_port_that_is_taken_is_told() -> None:
    with closing(bound("127.0.0.1", 0)) as first:
        first.listen()
        port = first.getsockname()[1]
        assert address_of(first, tls=False) == f"http://127.0.0.1:{port}"
        assert address_of(first, tls=True) == f"https://127.0.0.1:{port}"
        with pytest.raises(CannotListen, match=rf"127\.0\.0\.1:{port} cannot be listened on: .*in use"):
            bound("127.0.0.1", port)


def test_a_long_address_is_in_brackets() -> None:
    with closing(bound("::1", 0)) as sock:
        assert address_of(sock, tls=False) == f"http://[::1]:{sock.getsockname()[1]}"


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1", "a" * 300])
def test_an_address_that_is_not_here_is_told(host: str) -> None:
    with pytest.raises(CannotListen, match="cannot be listened on"):
        bound(host, 0)


def test_connections_of_a_service_do_not_wait_to_fill_a_packet() -> None:
    with closing(bound("127.0.0.1", 0)) as sock:
        assert sock.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY on those


def test_a_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    issued, other = (trustme.CA().issue_cert("127.0.0.1") for _ in range(2))
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    other.private_key_pem.write_to_path(tmp_path / "other.pem")

    assert Certificate(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")).context()
    for cert, key in (("cert.pem", "other.pem"), ("key.pem", "key.pem"), ("nowhere.pem", "key.pem")):
        with pytest.raises(BadCertificate, match=f"{cert} and .*{key} cannot be used"):
            Certificate(str(tmp_path / cert), str(tmp_path / key)).context()


# What is sent


async def test_a_body_in_pieces_is_one() -> None:
    assert await Intake(10).body(request(sent(b"abc", more=True), sent(b"def"))) == b"abcdef"


async def test_a_body_that_does_not_come_is_408() -> None:
    with pytest.raises(Problem, match=r"did not come within 0\.01 s") as caught:
        await Intake(10, patience_s=0.01).body(request(sent(b"abc", more=True)))

    assert (caught.value.status, caught.value.headers["connection"]) == (408, "close")


async def test_a_client_that_leaves_before_its_body_is_complete_is_gone() -> None:
    with pytest.raises(Gone):
        await Intake(10).body(request(sent(b"abc", more=True), LEFT))


async def test_an_endless_body_is_not_read_to_its_end() -> None:
    pieces = [sent(b"x" * 10, more=True) for _ in range(100)]

    with pytest.raises(Problem, match="10 bytes") as caught:
        await Intake(10).body(request(*pieces))

    assert (caught.value.status, caught.value.headers["connection"]) == (413, "close")


def test_a_problem_pickles_and_says_when_to_come_back() -> None:
    problem = Problem(503, "busy", "It is busy.")

    again = pickle.loads(pickle.dumps(problem))

    assert (again.status, again.name, str(again)) == (503, "busy", "It is busy.")
    assert again.headers == {"retry-after": "1"}
    assert again.document().type == "urn:slotkeeper:problem:busy"
    assert again.document().name == "busy"


# What takes long


async def test_work_ends_with_its_answer() -> None:
    async def work() -> int:
        return 7

    assert await while_wanted(request(), Stopping(), work()) == 7


@pytest.mark.parametrize("leaves", [True, False])
async def test_work_that_nobody_wants_any_more_is_cancelled(leaves: bool) -> None:
    stopping, cancelled = Stopping(), asyncio.Event()
    if not leaves:
        stopping.set()

    async def work() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return 7

    doing = while_wanted(request(*([sent(b""), LEFT] if leaves else [])), stopping, work())
    if leaves:
        with pytest.raises(Gone):
            await doing
    else:
        assert await doing is None
    assert cancelled.is_set()


async def test_what_goes_wrong_with_work_is_told() -> None:
    async def work() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await while_wanted(request(), Stopping(), work())


# What is sent again


async def ask(repeats: Repeats, key: str, done: list[str]) -> Response:
    """Ask once, or again."""

    async def carry_out() -> Response:
        done.append(key)
        return Response(key.encode() * 600)

    return await repeats.once(request(headers={"idempotency-key": key}), "/r", b"", carry_out)


async def test_old_answers_are_forgotten_when_there_are_too_many_the_oldest_first() -> None:
    repeats, done = Repeats(keep_s=0.0, room_bytes=1_500), list[str]()

    for key in ("a", "b", "c", "b", "a"):
        assert bytes((await ask(repeats, key, done)).body) == key.encode() * 600

    assert done == ["a", "b", "c", "a"]


async def test_no_answer_is_forgotten_too_soon_and_without_room_nothing_is_done() -> None:
    repeats, done = Repeats(keep_s=3600.0, room_bytes=1_500, most_bytes=2_500), list[str]()
    for key in ("a", "b", "c"):
        await ask(repeats, key, done)

    with pytest.raises(Problem, match="Nothing was changed") as caught:
        await ask(repeats, "d", done)

    assert (caught.value.status, caught.value.headers["retry-after"]) == (503, "1")
    for key in ("a", "b", "c"):
        await ask(repeats, key, done)
    assert done == ["a", "b", "c"]


async def _large(size: int) -> Response:
    return Response(b"x" * size)


async def test_what_failed_unforeseen_is_not_remembered() -> None:
    repeats = Repeats()

    async def fail() -> Response:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await repeats.once(request(headers={"idempotency-key": "k"}), "/r", b"", fail)
    assert len(repeats) == 0


async def test_a_repeat_with_another_token_learns_nothing() -> None:
    repeats = Repeats()
    await repeats.once(request(headers={"idempotency-key": "k", "authorization": "a"}), "/r", b"", lambda: _large(1))

    with pytest.raises(Problem, match="another body"):
        await repeats.once(
            request(headers={"idempotency-key": "k", "authorization": "b"}), "/r", b"", lambda: _large(1)
        )


async def test_who_repeats_one_that_was_cancelled_is_the_first_one_then() -> None:
    repeats, begun = Repeats(), asyncio.Event()

    async def never() -> Response:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    first = asyncio.create_task(repeats.once(request(headers={"idempotency-key": "k"}), "/r", b"", never))
    await begun.wait()
    follower = asyncio.create_task(
        repeats.once(request(headers={"idempotency-key": "k"}), "/r", b"", lambda: _large(1))
    )
    await asyncio.sleep(0)
    first.cancel()

    assert (await follower).body == b"x"
    await asyncio.wait([first])
    assert first.cancelled()
