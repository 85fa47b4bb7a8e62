"""A client of the task service: what it asks, how it reads what it is told, and how it ends."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from eventually import soon, until
from hypothesis import given, settings
from hypothesis import strategies as st
from scriptedservice import Script
from servedtasks import ServedTasks, served

from slotkeeper.database import Unavailable
from slotkeeper.taskstore import (
    Add,
    Fenced,
    JournalFailed,
    JournalFull,
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    UpdateError,
)
from slotkeeper.taskstore.remote import (
    AccessDenied,
    AsyncTaskClient,
    BadAddress,
    BadAnswer,
    BadToken,
    ForkedClient,
    ServiceUnreachable,
    TaskClient,
    new_client_id,
)
from slotkeeper.taskstore.remote import core as remote_core

TOKEN = "a token of 16 signs".replace(" ", "-")
LONG_S = 20.0
NOTHING: dict[str, Any] = {"tasks": None, "error": None}


@pytest.fixture(scope="module")
def service() -> Iterator[ServedTasks]:
    """A service that wants a token."""
    with served(token=TOKEN) as running:
        yield running


@pytest.fixture
def client(script: Script) -> Iterator[TaskClient]:
    """A client of the script."""
    with TaskClient(script.url, timeout_s=5) as opened:
        yield opened


# --- what is asked --------------------------------------------------------------------------------------------------------


def test_a_change_is_repeated_under_its_key_and_the_next_has_another(client: TaskClient, script: Script) -> None:
    script.then(200, {"status": "ok"}).then_hang_up().then_hang_up().then(200, NOTHING).then(200, NOTHING)

    client.update("me", adds=[Add("g")])
    client.update("me", adds=[Add("g")])

    learning, *asked = script.asked
    assert (learning.method, learning.path) == ("GET", "/healthz")
    first, again, third, other = [(each.headers["idempotency-key"], each.body) for each in asked]
    assert first == again == third
    assert (other[0] != first[0], other[1]) == (True, first[1])


def test_a_long_wait_is_asked_for_in_slices(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_core, "SLICE_S", 0.1)
    script.then(200, {"status": "ok"})
    for _ in range(100):
        script.then(200, NOTHING)

    with TaskClient(script.url) as client:
        assert client.claim("me", ["g", "h"], 30, wait_s=0.35) is None

    slices = [each.json["wait"] for each in script.asked[1:]]
    assert len(slices) > 3
    assert max(slices) == 100
    assert len({each.headers["idempotency-key"] for each in script.asked[1:]}) == len(slices)
    assert slices[-1] < 100


@pytest.mark.parametrize("answers", [1, 3])
def test_a_busy_service_is_asked_again_when_it_says_when(client: TaskClient, script: Script, answers: int) -> None:
    for _ in range(answers):
        script.then_problem(503, "journal-failed", retry_after="0")
    script.then(200, ["g"])

    assert client.groups() == ["g"]
    assert len(script.asked) == answers + 1


def test_a_service_that_names_a_time_behind_ours_is_not_waited_for(client: TaskClient, script: Script) -> None:
    script.then_problem(503, "store-busy", "too much to do", retry_after="60")

    with pytest.raises(StoreBusy, match="too much to do"):
        client.groups()


def test_a_proxy_that_lost_the_service_tells_nothing(client: TaskClient, script: Script) -> None:
    script.then(200).then(502, b"<html>", content_type="text/html").then(504, b"").then(200, NOTHING)

    client.update("me", adds=[Add("g")])

    assert len({each.headers["idempotency-key"] for each in script.asked[1:]}) == 1


# --- what is told ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "name", "error"),
    [
        (503, "fenced", Fenced),
        (503, "journal-full", JournalFull),
        (503, "journal-failed", JournalFailed),
        (503, "store-busy", StoreBusy),
        (503, "store-closed", StoreClosed),
        (503, "unavailable", Unavailable),
        (504, "outcome-unknown", OutcomeUnknown),
        (401, "token", AccessDenied),
        (403, "web-page", AccessDenied),
        (413, "body-too-large", UpdateError),
        (422, "idempotency-key", UpdateError),
        (404, "not-found", BadAnswer),
        (405, "method-not-allowed", BadAnswer),
        (500, "unexpected", OutcomeUnknown),
    ],
)
def test_what_the_service_says_is_raised_here(
    client: TaskClient, script: Script, status: int, name: str, error: type[Exception]
) -> None:
    script.then(200).then_problem(status, name, "told so")

    with pytest.raises(error) as told:
        client.update("me", adds=[Add("g")])

    assert type(told.value) is error
    assert status in (404, 405, 500) or "told so" in str(told.value)
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)


@pytest.mark.parametrize(("status", "has_bugs"), [(409, False), (422, True)])
def test_a_refusal_has_all_its_lists(client: TaskClient, script: Script, status: int, has_bugs: bool) -> None:
    lists = {"changes": [1], "deletes": [2], "depends": [3], "owned": [4], "bugs": ["no"] if has_bugs else []}
    script.then(200).then(status, {"tasks": None, "error": lists})

    with pytest.raises(UpdateError) as refused:
        client.update("me", adds=[Add("g")])

    error = refused.value
    assert (error.changes, error.deletes, error.depends, error.owned) == ((1,), (2,), (3,), (4,))
    assert error.has_bugs is has_bugs


@pytest.mark.parametrize("body", [b"<html>", b'{"a": 1}', b"[1]", b""])
def test_what_is_no_task_service_is_told(client: TaskClient, script: Script, body: bytes) -> None:
    script.then(200, body).then(301, body).then(418, body)

    for _ in range(3):
        with pytest.raises(BadAnswer, match="no task service"):
            client.groups()


def test_a_change_that_was_not_refused_and_cannot_be_read_is_unknown(client: TaskClient, script: Script) -> None:
    script.then(200).then(200, b"<html>").then(200, {"tasks": []}).then(302, b"")

    with pytest.raises(OutcomeUnknown):
        client.update("me", adds=[Add("g")])
    with pytest.raises(OutcomeUnknown):
        client.renew("me", 1, 5)
    with pytest.raises(BadAnswer):
        client.update("me", adds=[Add("g")])


def test_a_wrong_token_is_denied_and_not_shown(service: ServedTasks) -> None:
    for token in (None, "another-token-of-16"):
        with TaskClient(service.url, token=token) as stranger, pytest.raises(AccessDenied) as denied:
            stranger.update("me", adds=[Add("g")])
        assert "token" in str(denied.value)
        assert "another" not in str(denied.value) + repr(stranger)
    with TaskClient(service.url, token=TOKEN) as known:
        assert known.update("me", adds=[Add("tokens")])[0].group == "tokens"


@pytest.mark.parametrize("kind", [TaskClient, AsyncTaskClient])
def test_what_is_wrong_with_url_and_token_is_told_at_once(kind: Callable[..., Any]) -> None:
    with pytest.raises(BadAddress):
        kind("localhost")
    with pytest.raises(BadToken):
        kind(token="a\nb")


def test_where_no_service_is_nothing_was_changed() -> None:
    with served() as gone:
        url = gone.url
    with TaskClient(url, timeout_s=0.2) as client, pytest.raises(ServiceUnreachable) as unreachable:
        client.update("me", adds=[Add("g")])

    assert isinstance(unreachable.value, StoreBusy)
    assert "Nothing was changed" in str(unreachable.value)


# --- round trips ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    group=st.text(min_size=1).filter(lambda text: text.isprintable())
    | st.sampled_from([".", "..", "/", "a/../b", "%2F"]),
    owner=st.text() | st.integers(-(2**64), 2**65).map(str) | st.sampled_from(["-0", "007", "+1", "1 "]),
    data=st.binary() | st.text().map(str.encode),
    after_s=st.sampled_from([0.0, 0.0005, 5.0, 1e9]),
)
def test_whatever_a_store_takes_the_wire_takes(
    service: ServedTasks, group: str, owner: str, data: bytes, after_s: float
) -> None:
    with TaskClient(service.url, token=TOKEN) as client:
        (added,) = client.update(owner, adds=[Add(group, data, after_s=after_s)])

        assert (added.group, added.owner, added.data) == (group, owner, data)
        assert added in client.group(group, owned=True)
        assert client.tasks([added.id, 0, -1, 2**70, added.id]) == [added, None, None, None, added]
        client.update(owner, deletes=[added.id])
        assert client.task(added.id) is None


@pytest.mark.parametrize("name", ["", "\ud800", "nobody has this", 5])
def test_a_group_that_cannot_be_is_empty(service: ServedTasks, name: Any) -> None:
    with TaskClient(service.url, token=TOKEN) as client:
        assert client.group(name) == []


@pytest.mark.parametrize("length", [40_000, 70_000])
def test_a_name_that_is_too_long_to_ask_for_is_told_at_once(service: ServedTasks, length: int) -> None:
    with TaskClient(service.url, token=TOKEN, timeout_s=60) as client, pytest.raises(UpdateError, match="too long"):
        client.group("ä" * length)


def test_a_service_that_lets_nobody_wait_long_is_asked_more_often() -> None:
    with served(most_wait_s=0.1) as short, TaskClient(short.url) as client:
        began = time.monotonic()

        assert client.claim("me", "g", 5, wait_s=0.5) is None

        assert time.monotonic() - began > 0.5
        with pytest.raises(UpdateError, match="names no group"):
            client.claim("me", [], 5, wait_s=0.5)


@pytest.mark.parametrize("owner", [5, None, "\ud800"])
def test_an_owner_that_is_no_text_is_a_bug(service: ServedTasks, owner: Any) -> None:
    with TaskClient(service.url, token=TOKEN) as client:
        for call in (
            lambda: client.update(owner, adds=[Add("g")]),
            lambda: client.claim(owner, "g", 5),
            lambda: client.renew(owner, 1, 5),
            lambda: client.release(owner, 1),
        ):
            with pytest.raises(UpdateError, match="an owner is a string"):
                call()


def test_many_ids_are_several_looks(service: ServedTasks) -> None:
    with TaskClient(service.url, token=TOKEN) as client:
        added = client.update("me", adds=[Add("many") for _ in range(2_100)])

        assert client.tasks([task.id for task in added]) == added
        client.update("me", deletes=[task.id for task in added])


def test_ids_of_clients_are_64_bits_and_different() -> None:
    ids = {new_client_id() for _ in range(1_000)}

    assert len(ids) == 1_000
    assert all(0 <= int(each) < 2**64 for each in ids)
    assert max(map(int, ids)) > 2**60


# --- how it ends ----------------------------------------------------------------------------------------------------------


def test_closed_twice_and_opened_again(service: ServedTasks) -> None:
    client = TaskClient(service.url, token=TOKEN)
    with pytest.raises(StoreClosed):
        client.groups()
    client.open().close()
    client.close()
    with pytest.raises(StoreClosed):
        client.tasks([])
    assert "not open" in repr(client)

    with client:
        client.groups()
        assert client.is_open
        assert repr(client) == f"<TaskClient {service.url} open>"


def test_closing_ends_a_threads_wait(service: ServedTasks) -> None:
    client = TaskClient(service.url, token=TOKEN).open()
    with TaskClient(service.url, token=TOKEN) as other, ThreadPoolExecutor(1) as threads:
        claim = threads.submit(client.claim, "me", "closing", 10, wait_s=LONG_S)
        until(lambda: other.stats().waiting == 1)

        client.close()

        assert isinstance(claim.exception(5), StoreClosed)
        until(lambda: other.stats().waiting == 0)


async def test_closing_ends_a_tasks_wait(service: ServedTasks) -> None:
    client = await AsyncTaskClient(service.url, token=TOKEN).open()
    claim = asyncio.ensure_future(client.claim("me", "closing", 10, wait_s=LONG_S))
    with TaskClient(service.url, token=TOKEN) as other:
        await soon(lambda: other.stats().waiting == 1)

        await client.close()
        await client.close()

        with pytest.raises(StoreClosed):
            await asyncio.wait_for(claim, 5)
        await soon(lambda: other.stats().waiting == 0)


async def test_who_is_cancelled_leaves_the_line_and_takes_no_task(service: ServedTasks) -> None:
    async with AsyncTaskClient(service.url, token=TOKEN) as client:
        claim = asyncio.ensure_future(client.claim("gone", "cancelled", 600, wait_s=LONG_S))
        with TaskClient(service.url, token=TOKEN) as other:
            await soon(lambda: other.stats().waiting == 1)
            claim.cancel()
            await asyncio.wait([claim])
            await soon(lambda: other.stats().waiting == 0)

        assert claim.cancelled()
        (task,) = await client.update("me", adds=[Add("cancelled")])
        assert await client.group("cancelled") == [task]


async def test_the_asyncio_face_never_blocks_the_loop(service: ServedTasks) -> None:
    with blockbuster_ctx():
        async with AsyncTaskClient(service.url, token=TOKEN) as client:
            (added,) = await client.update("me", adds=[Add("loop", b"\xff")])
            claimed = await client.claim("me", "loop", 60, wait_s=1)
            assert claimed is not None
            renewed = await client.renew("me", claimed, 60)
            released = await client.release("me", renewed, error="no")
            assert [await client.task(added.id), await client.task(released.id)] == [None, released]
            assert await client.every_task()
            assert "loop" in await client.groups()
            assert (await client.stats()).groups["loop"].size == 1
            await client.snapshot()
            await client.flush()
            await client.update("me", deletes=[released.id])


def test_threads_share_a_client(service: ServedTasks) -> None:
    with TaskClient(service.url, token=TOKEN) as client, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: client.update(f"w{n}", adds=[Add("shared", b"%d" % n)]), range(64)))
        claimed = list(threads.map(lambda n: client.claim(f"w{n}", "shared", 60), range(64)))

        assert {task.data for task in claimed if task} == {b"%d" % n for n in range(64)}


def test_a_forked_child_is_told_and_harms_nobody(service: ServedTasks) -> None:
    with TaskClient(service.url, token=TOKEN) as client:
        client.groups()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: this child only looks
            child = os.fork()
        if child == 0:
            code = 1
            try:
                client.groups()
            except ForkedClient:
                client.close()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        assert isinstance(client.groups(), list)
