"""The opportunistic store: answers at once, writes down soon, and says how far behind it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import until
from taskstores import FailingJournal, opened

from slotkeeper.taskstore import Add, Fenced, JournalFailed, MemoryJournal, StoreBusy, TaskStore
from slotkeeper.taskstore.behind import RESERVED
from slotkeeper.taskstore.journal import Unsettled
from slotkeeper.taskstore.record import decode


def test_flush_waits_until_all_is_written(face: str) -> None:
    journal = MemoryJournal(keep=True)
    with opened(face, journal, strict=False) as tasks:
        tasks.update("me", adds=[Add("g", b"1")])
        tasks.flush()

        assert any(task.data == b"1" for written in journal.written for task in decode(written).came)
        stats = tasks.stats()
        assert (stats.strict, stats.behind, stats.behind_s, stats.lag_s) == (False, 0, 0.0, 0.1)


def test_closing_writes_everything_down(face: str) -> None:
    journal = MemoryJournal(keep=True)
    for n in range(20):
        with opened(face, journal, strict=False) as tasks:
            tasks.update("me", adds=[Add("g", b"%d" % n)])

    with opened(face, journal) as tasks:
        assert {task.data for task in tasks.group("g")} == {b"%d" % n for n in range(20)}


def test_the_lag_is_bounded_and_told(face: str) -> None:
    journal = FailingJournal()
    with opened(face, journal, strict=False, lag_s=0.05, timeout_s=0.4) as tasks:
        journal.failures = [JournalFailed("no disk")] * 1000
        tasks.update("me", adds=[Add("g")])
        until(lambda: tasks.store._opened().behind.oldest_s() > 0.05)

        (error,) = tasks.together(tasks.later("update", "me", adds=[Add("g")]))
        assert isinstance(error, JournalFailed | StoreBusy)
        (error,) = tasks.together(tasks.later("flush"))
        assert isinstance(error, JournalFailed)

        journal.failures = []
        tasks.flush()
        assert tasks.update("me", adds=[Add("g")])
        assert tasks.stats().failure == ""


def test_closing_tells_what_could_not_be_written(face: str) -> None:
    journal = FailingJournal()
    with opened(face, journal, strict=False, timeout_s=0.3) as tasks:
        journal.failures = [JournalFailed("no disk")] * 1000
        tasks.update("me", adds=[Add("g")])

        with pytest.raises(JournalFailed):
            tasks.close()


def test_ids_that_a_crash_forgot_never_come_back(face: str) -> None:
    journal = FailingJournal()
    crashed = FailingJournal()
    with opened(face, journal, strict=False) as tasks:
        crashed.written = list(journal.written)  # what is durable so far
        (lost,) = tasks.update("me", adds=[Add("g", b"lost")])

    with opened(face, crashed, strict=False) as tasks:
        assert tasks.update("me", adds=[Add("g")])[0].id > lost.id

    with opened(face, journal) as tasks:  # and a strict store goes on from there
        assert tasks.update("me", adds=[Add("g")])[0].id > RESERVED


def test_ids_are_reserved_ahead_however_many_are_given_out(face: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slotkeeper.taskstore.behind.RESERVED", 8)
    journal, crashed = FailingJournal(), FailingJournal()
    with opened(face, journal, strict=False) as tasks:
        for _ in range(30):
            crashed.written = list(journal.written)  # durable before the next answer
            (last,) = tasks.update("me", adds=[Add("g")])

    with opened(face, crashed, strict=False) as tasks:
        assert tasks.update("me", adds=[Add("g")])[0].id > last.id


def test_what_was_left_open_is_settled(face: str) -> None:
    journal = FailingJournal()
    with opened(face, journal, strict=False) as tasks:
        journal.failures, journal.settled = [Unsettled()], [Unsettled(), False]
        tasks.update("me", adds=[Add("g", b"1")])
        tasks.flush()

    with opened(face, journal) as tasks:
        assert [task.data for task in tasks.group("g")] == [b"1"]


def test_a_fenced_store_answers_no_more(face: str) -> None:
    journal = FailingJournal()
    with opened(face, journal, strict=False) as tasks:
        journal.failures = [Fenced()]
        tasks.update("me", adds=[Add("g")])
        until(lambda: isinstance(tasks.together(tasks.later("groups"))[0], Fenced))


def test_a_snapshot_covers_what_was_only_answered(face: str) -> None:
    journal = MemoryJournal(keep=True)
    with opened(face, journal, strict=False) as tasks:
        tasks.update("me", adds=[Add("g", b"%d" % n) for n in range(3)])
        tasks.update("me", deletes=[2])
        tasks.snapshot()
        assert journal.written == []

    with opened(face, journal) as tasks:
        assert [task.id for task in tasks.every_task()] == [1, 3]


def test_many_callers_are_answered_for_long() -> None:
    with TaskStore(MemoryJournal(keep=True), strict=False) as store, ThreadPoolExecutor(8) as threads:

        def work(name: str) -> int:
            return len([store.update(name, adds=[Add("g")]) for _ in range(500)])

        assert sum(threads.map(work, "abcdefgh")) == 4_000
        store.flush()
        assert store.stats().size == 4_000
