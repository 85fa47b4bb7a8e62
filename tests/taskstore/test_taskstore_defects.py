"""The reference's defects, B1 to B16, each as what a store does instead. Those of files: test_taskstore_disk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from taskstores import FailingJournal, Hands, Place, Tasks, opened

from slotkeeper.taskstore import Add, Change, JournalFailed, MemoryJournal, StoreClosed, TaskStore, UpdateError

Reopen = Callable[..., Tasks]


def test_b1_ids_go_on_after_a_restart_without_a_snapshot(open_tasks: Reopen) -> None:
    tasks = open_tasks()
    tasks.update("me", adds=[Add("g", b"%d" % n) for n in range(3)])
    tasks.update("me", deletes=[3])

    tasks = open_tasks()
    (new,) = tasks.update("me", adds=[Add("g", b"new")])

    assert new.id == 4
    assert [task.data for task in tasks.every_task()] == [b"0", b"1", b"new"]


@pytest.mark.parametrize("callers", [1, 8])
def test_b2_an_opportunistic_store_never_hangs(callers: int) -> None:
    with (
        TaskStore(MemoryJournal(keep=True), strict=False, timeout_s=5) as store,
        ThreadPoolExecutor(callers) as threads,
    ):

        def work(n: int) -> None:
            for _ in range(3_000 // callers):
                store.update(f"w{n}", adds=[Add("g")])

        list(threads.map(work, range(callers)))
        assert store.stats().size == 3_000 // callers * callers


def test_b3_a_snapshot_loses_nothing(open_tasks: Reopen) -> None:
    tasks = open_tasks()
    tasks.update("me", adds=[Add("g", b"%d" % n) for n in range(1_000)])
    tasks.snapshot()

    assert len(open_tasks().every_task()) == 1_000


def test_b3_the_snapshot_that_comes_by_itself_loses_nothing(
    open_tasks: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotkeeper.taskstore.snapshots.FEWEST_RECORDS", 50)
    tasks = open_tasks()
    for n in range(230):
        tasks.update("me", adds=[Add("g", b"%d" % n)])
        if n % 3 == 0:
            tasks.update("me", deletes=[task.id for task in tasks.group("g", 1)])
    before = tasks.every_task()

    assert open_tasks().every_task() == before


def test_b6_the_number_of_tasks_is_a_count(tasks: Tasks) -> None:
    tasks.update("me", adds=[Add("g"), Add("g"), Add("h")])
    tasks.update("me", changes=[Change(1)], deletes=[2])

    stats = tasks.stats()
    assert (stats.size, stats.last_id) == (2, 4)


def test_b7_every_task_is_shown_during_and_after_a_snapshot(tasks: Tasks) -> None:
    tasks.update("me", adds=[Add("g") for _ in range(2_000)])

    calls = [tasks.later("snapshot")]
    for n in range(1, 21):
        calls += [tasks.later("update", "me", adds=[Add("g")], deletes=[n]), tasks.later("every_task")]
    results = tasks.together(*calls)

    assert all(len(shown) == 2_000 for shown in results[2::2])
    assert len(tasks.every_task()) == 2_000
    assert {task.id for task in tasks.every_task()} == set(range(21, 2_021))


def test_b8_changes_during_a_snapshot_are_in_it_or_behind_it(open_tasks: Reopen) -> None:
    tasks = open_tasks()
    tasks.update("me", adds=[Add("g", b"%d" % n) for n in range(500)])
    for turn in range(5):
        calls = [tasks.later("claim", f"w{n}", "g", 100) for n in range(10)]
        results = tasks.together(tasks.later("snapshot"), *calls, tasks.later("update", "me", adds=[Add("h")]))
        assert not [result for result in results if isinstance(result, Exception)], turn
    before = tasks.every_task()

    assert open_tasks().every_task() == before


def test_b9_a_failed_claim_leaves_the_task_to_claims_and_listings(face: str) -> None:
    journal = FailingJournal()
    with opened(face, journal) as tasks:
        (task,) = tasks.update("me", adds=[Add("g")])
        journal.failures = [JournalFailed()]

        (error,) = tasks.together(tasks.later("claim", "w", "g", 10))

        assert isinstance(error, JournalFailed)
        assert tasks.group("g") == [task]
        assert tasks.groups() == ["g"]
        assert tasks.claim("w", "g", 10) is not None
        tasks.update("w", deletes=[task.id + 2])
        assert tasks.groups() == []


def test_b10_a_closed_store_raises_and_does_not_die(tasks: Tasks) -> None:
    tasks.close()

    for name in ("snapshot", "stats", "groups"):
        (error,) = tasks.together(tasks.later(name))
        assert isinstance(error, StoreClosed)
    assert not tasks.store.is_open
    assert "not open" in repr(tasks.store)


def test_b11_owners_are_whole_strings(tasks: Tasks) -> None:
    owners = ["1", "257", str(2**63), "ä" * 300, "", "1 "]
    tasks.update("me", adds=[Add("g") for _ in owners])
    claimed = [tasks.claim(owner, "g", 60) for owner in owners]

    assert [task.owner for task in claimed] == owners
    with pytest.raises(UpdateError) as refused:
        tasks.update("1", deletes=[task.id for task in claimed])
    assert len(refused.value.owned) == len(owners) - 1


def test_b12_many_snapshots_in_quick_succession_are_fine(open_tasks: Reopen) -> None:
    tasks = open_tasks()
    for n in range(30):
        tasks.update("me", adds=[Add("g", b"%d" % n)])
        tasks.snapshot()

    assert len(open_tasks().every_task()) == 30


@pytest.mark.parametrize("doubled", [{"changes": [Change(1), Change(1)]}, {"changes": [Change(1)], "deletes": [1]}])
def test_b13_an_id_named_twice_splits_no_task(tasks: Tasks, doubled: dict[str, object]) -> None:
    (task,) = tasks.update("me", adds=[Add("g")])

    with pytest.raises(UpdateError, match="2 times"):
        tasks.update("me", **doubled)

    assert tasks.every_task() == [task]


def test_b13_a_change_without_an_id_adds_nothing(tasks: Tasks) -> None:
    with pytest.raises(UpdateError) as refused:
        tasks.update("me", changes=[Change(0), Change(-1)])

    assert refused.value.changes == (0, -1)


def test_b15_what_a_snapshot_covers_is_not_applied_again(face: str, place: Place) -> None:
    for turn in range(3):
        with opened(face, place.journal(), strict=False) as tasks:
            tasks.update("me", adds=[Add("g", b"%d" % turn)])
            tasks.claim("w", "g", 60)
            tasks.snapshot()
            tasks.update("me", adds=[Add("h")])

    with opened(face, place.journal()) as tasks:
        shown = tasks.every_task()
        assert len({task.id for task in shown}) == len(shown) == 6
        claims = [tasks.claim("w", ["g", "h"], 0.0) for _ in range(20)]
        assert all(isinstance(claim.id, int) for claim in claims)  # no ghost comes up


def test_b16_closing_drops_nothing_that_was_answered(face: str, place: Place) -> None:
    for n in range(10):
        with opened(face, place.journal(), strict=False) as tasks:
            tasks.update("me", adds=[Add("g", b"%d" % n)])

    with opened(face, place.journal()) as tasks:
        assert len(tasks.group("g")) == 10


def test_what_is_in_memory_is_what_is_in_the_journal(open_tasks: Reopen, hands: Hands) -> None:
    tasks = open_tasks(most_attempts=2)
    tasks.update("me", adds=[Add("g", b"%d" % n, key=f"k{n}") for n in range(20)])
    for n in range(40):
        claimed = tasks.claim(f"w{n}", "g", 5)
        if claimed is not None and n % 4 == 0:
            tasks.release(f"w{n}", claimed, error="no")
        hands.go_on(1)
    before = tasks.every_task(), tasks.stats()

    tasks = open_tasks(most_attempts=2)

    assert (tasks.every_task(), tasks.stats()) == before
