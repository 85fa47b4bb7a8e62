"""A thread beside a client: it begins with the first work, nothing holds up anything else, and nothing is left of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing

import pytest
from eventually import until

from slotkeeper.database.loopthread import LoopThread, Work

NAME = "beside the test"


class Beside:
    """A thread whose work at a key goes on until the test ends it, and what has become of each key."""

    def __init__(self) -> None:
        self.thread: LoopThread[str] = LoopThread(NAME, self._opened)
        self.may_open, self.left = threading.Event(), False
        self.began: list[str] = []
        self.stopped: list[str] = []

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Work[str]]:
        assert await asyncio.to_thread(self.may_open.wait, 20)
        yield self._work
        self.left = True

    async def _work(self, key: str) -> None:
        self.began.append(key)
        if key == "short":
            return
        try:
            await asyncio.Event().wait()
        finally:
            assert not self.left, "what the work needs was closed before it had stopped"
            self.stopped.append(key)


@pytest.fixture
def beside() -> Iterator[Beside]:
    """A thread that opens at once."""
    beside = Beside()
    beside.may_open.set()
    with closing(beside.thread):
        yield beside


def is_there() -> bool:
    """Tell whether the thread lives."""
    return NAME in {thread.name for thread in threading.enumerate()}


def test_thread_begins_with_the_first_work_and_ends_when_it_is_closed(beside: Beside) -> None:
    beside.thread.drop("a")
    assert not is_there()
    beside.thread.add("a")
    until(lambda: beside.began == ["a"])
    assert is_there()
    beside.thread.close()
    beside.thread.close()
    assert not is_there()
    assert (beside.stopped, beside.left) == (["a"], True)


def test_work_that_is_not_answered_holds_up_no_other(beside: Beside) -> None:
    for key in ("a", "b", "short", "c"):
        beside.thread.add(key)
    until(lambda: beside.began == ["a", "b", "short", "c"])
    assert beside.stopped == []


def test_dropped_work_stops_and_the_rest_goes_on(beside: Beside) -> None:
    for key in ("a", "b", "short"):
        beside.thread.add(key)
    until(lambda: beside.began == ["a", "b", "short"])
    for key in ("a", "short", "nothing"):
        beside.thread.drop(key)
    until(lambda: beside.stopped == ["a"])
    beside.thread.close()
    assert beside.stopped == ["a", "b"]


def test_work_waits_until_what_it_needs_is_open_and_may_be_dropped_before() -> None:
    beside = Beside()
    with closing(beside.thread):
        for key in ("a", "b", "c"):
            beside.thread.add(key)
        beside.thread.drop("b")
        assert beside.began == []
        beside.may_open.set()
        until(lambda: beside.began == ["a", "c"])


def test_nothing_begins_once_it_is_closed(beside: Beside) -> None:
    beside.thread.close()
    beside.thread.add("a")
    beside.thread.drop("a")
    assert not is_there()
    assert beside.began == []
