"""Both callers: what comes of a request, sorted by whether the service can have it."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trustme
from blockbuster import blockbuster_ctx
from eventually import soon, until
from scriptedservice import Script

from slotkeeper.database import drive
from slotkeeper.web.address import Address
from slotkeeper.web.caller import Answer
from slotkeeper.web.callers import LoopCaller, ThreadsCaller
from slotkeeper.web.failures import AnswerLost, BadTrust, CallerClosed, CallError, NotSent, Unsendable

Request = Callable[..., Answer]


@contextmanager
def calling(face: str, url: str, **options: Any) -> Iterator[Request]:
    """Open a caller; what it is asked for runs to its end."""
    if face == "threads":
        caller = ThreadsCaller(Address.parse(url), **options)
        try:
            yield lambda *values, **named: drive(caller.request(*values, **{"timeout_s": 5, **named}))
        finally:
            drive(caller.close())
        return
    with asyncio.Runner() as runner, blockbuster_ctx():
        other = LoopCaller(Address.parse(url), **options)
        runner.run(other.open())
        try:
            yield lambda *values, **named: runner.run(other.request(*values, **{"timeout_s": 5, **named}))
        finally:
            runner.run(other.close())


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_request_arrives_whole_and_so_does_the_answer(face: str, script: Script) -> None:
    script.then(409, {"a": [1]}, retry_after="7")

    with calling(face, script.url + "/below/", token="secret") as request:
        answer = request("POST", "/%2E%2E/a%2Fb", body=b"{}", params=[("q", "ä &")], headers={"x-key": "k"})

    (asked,) = script.asked
    assert (asked.method, asked.path) == ("POST", "/below/%2E%2E/a%2Fb?q=%C3%A4%20%26".replace("%20", "+"))
    assert asked.headers["authorization"] == "Bearer secret"
    assert (asked.headers["x-key"], asked.headers["content-type"], asked.body) == ("k", "application/json", b"{}")
    assert (answer.status, answer.body, answer.retry_after_s, answer.is_problem) == (409, b'{"a": [1]}', 7.0, False)


@pytest.mark.parametrize("said", ["", "soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_retry_after_that_is_no_number_is_none(said: str) -> None:
    assert Answer(503, {"retry-after": said}).retry_after_s is None


def test_where_nobody_listens_nothing_was_sent(face: str) -> None:
    with (
        calling(face, f"http://127.0.0.1:{free_port()}") as request,
        pytest.raises(NotSent, match="Nothing was changed"),
    ):
        request("GET", "/")


def test_an_unknown_host_is_nothing_sent(face: str) -> None:
    with calling(face, "http://no-such-host.invalid") as request, pytest.raises(NotSent):
        request("GET", "/")


@pytest.mark.parametrize("loss", [Script.then_hang_up, Script.then_stop_short])
def test_a_lost_answer_may_have_been_carried_out(face: str, script: Script, loss: Callable[[Script], Script]) -> None:
    loss(script)

    with calling(face, script.url) as request, pytest.raises(AnswerLost, match="may have been carried out"):
        request("GET", "/")
    assert len(script.asked) == 1


def test_a_path_that_no_request_can_have_is_not_sent(face: str, script: Script) -> None:
    with calling(face, script.url) as request, pytest.raises(Unsendable, match="too long"):
        request("GET", "/" + "a" * 70_000)
    assert script.asked == []


def test_silence_ends_in_time_and_is_a_lost_answer(face: str, script: Script) -> None:
    script.then_wait()

    with calling(face, script.url) as request, pytest.raises(AnswerLost, match="ReadTimeout"):
        request("GET", "/", timeout_s=0.05)


def test_the_token_is_nowhere_to_be_seen(face: str, script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    script.then_hang_up()
    caller = (ThreadsCaller if face == "threads" else LoopCaller)(Address.parse(script.url), token="s3cr3t")

    with calling(face, script.url, token="s3cr3t") as request, pytest.raises(AnswerLost) as lost:
        request("GET", "/")

    assert "s3cr3t" not in repr(caller) + repr(lost.value) + caplog.text
    assert script.asked[0].headers["authorization"] == "Bearer s3cr3t"
    if isinstance(caller, ThreadsCaller):
        drive(caller.close())


def test_no_proxy_stands_before_this_host(face: str, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    script.then(200)

    with calling(face, script.url) as request:
        assert request("GET", "/").status == 200


def test_a_proxy_of_the_environment_is_asked_for_other_hosts(
    face: str, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", script.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    script.then(200)

    with calling(face, "http://tasks.invalid:8048") as request:
        assert request("GET", "/x").status == 200
    assert script.asked[0].path == "http://tasks.invalid:8048/x"


def test_a_file_of_no_certificates_is_told(face: str, tmp_path: Any) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for url, path in [("https://h", "ca.pem"), ("https://h", "absent.pem"), ("http://h", "ca.pem")]:
        with pytest.raises(BadTrust, match="certificates"), calling(face, url, tls_ca_file=str(tmp_path / path)):
            pass


def test_tls_is_checked_against_the_file(face: str, tmp_path: Any) -> None:
    ca, other = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    with tls_server(ca) as url:
        with calling(face, url, tls_ca_file=str(tmp_path / "ca.pem")) as request:
            assert request("GET", "/").body == b"hello"
        with (
            calling(face, url, tls_ca_file=str(tmp_path / "other.pem")) as request,
            pytest.raises(NotSent, match="CERT"),
        ):
            request("GET", "/")


@contextmanager
def tls_server(ca: trustme.CA) -> Iterator[str]:
    """Answer two connections, of which the second may fail."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):
                client, _ = server.accept()
                with client:
                    try:
                        with context.wrap_socket(client, server_side=True) as secure:
                            secure.recv(1 << 16)
                            secure.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://localhost:{server.getsockname()[1]}"
        thread.join()


def test_closing_wakes_a_thread_that_waits(script: Script) -> None:
    script.then_wait()
    caller = ThreadsCaller(Address.parse(script.url))
    ended: list[CallError] = []

    def wait() -> None:
        with pytest.raises(AnswerLost) as lost:
            drive(caller.request("GET", "/", timeout_s=60))
        ended.append(lost.value)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: script.asked)
    drive(caller.close())
    thread.join(10)

    assert len(ended) == 1
    with pytest.raises(CallerClosed):
        drive(caller.request("GET", "/", timeout_s=1))


async def test_closing_wakes_a_task_that_waits(script: Script) -> None:
    script.then_wait()
    caller = LoopCaller(Address.parse(script.url))
    await caller.open()
    waiting = asyncio.ensure_future(caller.request("GET", "/", timeout_s=60))
    await soon(lambda: script.asked)

    await caller.close()

    with pytest.raises(AnswerLost):
        await asyncio.wait_for(waiting, 10)
    with pytest.raises(CallerClosed):
        await caller.request("GET", "/", timeout_s=1)


def test_threads_share_a_caller(script: Script) -> None:
    for _ in range(40):
        script.then(200, [1])
    caller = ThreadsCaller(Address.parse(script.url))
    answers: list[int] = []

    def ask() -> None:
        for _ in range(5):
            core: Coroutine[Any, Any, Answer] = caller.request("GET", "/", timeout_s=20)
            answers.append(drive(core).status)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drive(caller.close())

    assert answers == [200] * 40
