"""The journal on disk: what it recovers from, and what it does in which order."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from diskjournals import filled, logs, reopened
from eitherface import FACES
from taskstores import Hands, opened

from slotkeeper.database import ForkedError
from slotkeeper.taskstore import Add, JournalFailed, JournalFull, JournalLocked, TaskStore
from slotkeeper.taskstore.disk import DiskJournal, verify
from slotkeeper.taskstore.disk.frame import Kind as FrameKind
from slotkeeper.taskstore.disk.frame import framed

# --- what a crash leaves --------------------------------------------------------------------------------------------


def test_a_torn_tail_is_dropped_and_told_wherever_it_is_torn(where: Path, tmp_path: Path) -> None:
    before = filled(where, 4, segment_bytes=1 << 20, closed=False)
    (log,) = logs(where)
    whole = log.read_bytes()
    last = whole.rindex(b"\xb5SKf")

    for size in range(last, len(whole)):
        copy = tmp_path / f"cut{size}"
        shutil.copytree(where, copy)
        logs(copy)[0].write_bytes(whole[:size])
        tasks, told = reopened(copy)
        assert tasks == before[:-1]
        assert len(told) == (size > last)
        assert not told or f"{size - last} bytes at byte {last}" in told[0]
        assert reopened(copy) == (before[:-1], [])  # told once


def test_ids_that_were_torn_off_were_never_told_and_may_be_given(where: Path) -> None:
    before = filled(where, 4, closed=False)
    log = logs(where)[-1]
    log.write_bytes(log.read_bytes()[:-1])

    with TaskStore(DiskJournal(where)) as store:
        assert store.update("me", adds=[Add("g")])[0].id == before[-1].id


def test_a_group_that_was_torn_with_a_hole_is_dropped_whole_from_the_hole(where: Path) -> None:
    before = filled(where, 4, segment_bytes=1 << 20, closed=False)
    (log,) = logs(where)
    with log.open("ab") as file:  # two records that left together; the disk has the second one only
        first, _ = framed(FrameKind.RECORD, 5, 4, b"x" * 20)
        second, _ = framed(FrameKind.RECORD, 6, 4, b"x" * 20)
        file.write(b"\0" * len(first) + second)

    tasks, told = reopened(where)

    assert tasks == before
    assert "never acknowledged" in told[0]


@pytest.mark.parametrize("closed", [True, False])
def test_zero_bytes_at_the_end_lose_nothing(where: Path, closed: bool) -> None:
    before = filled(where, closed=closed)
    with logs(where)[-1].open("ab") as file:
        file.write(b"\0" * 64)

    tasks, told = reopened(where)

    assert tasks == before
    assert re.search(r"64 bytes|\d+ bytes", told[0])


def test_left_over_working_files_are_told_and_removed(where: Path) -> None:
    before = filled(where)
    for name in ("0000000099.snapshot.working", "0000000099.log.working"):
        (where / name).write_bytes(b"half")

    tasks, told = reopened(where)

    assert tasks == before
    assert len(told) == 2
    assert not list(where.glob("*.working"))


def test_a_crash_between_a_snapshot_and_the_deletion_of_what_it_covers(where: Path, tmp_path: Path) -> None:
    before = filled(where)
    old = tmp_path / "old"
    shutil.copytree(where, old)
    with TaskStore(DiskJournal(where)) as store:
        store.snapshot()
    for path in old.glob("*.log"):
        shutil.copy(path, where)  # as if they had not been deleted yet

    assert reopened(where)[0] == before
    assert not {path.name for path in logs(old)} & {path.name for path in logs(where)}


def test_files_of_others_are_left_alone(where: Path) -> None:
    before = filled(where)
    (where / "notes.txt").write_text("mine")

    tasks, told = reopened(where)

    assert tasks == before
    assert "notes.txt" in told[0]
    assert (where / "notes.txt").read_text() == "mine"


# --- one opener -----------------------------------------------------------------------------------------------------


def test_b4_two_openers_never_meet(where: Path) -> None:
    with TaskStore(DiskJournal(where)) as store:
        store.update("me", adds=[Add("g")])
        with pytest.raises(JournalLocked, match=str(os.getpid())):
            TaskStore(DiskJournal(where)).open()
        child = f"from slotkeeper.taskstore import TaskStore; TaskStore('disk:{where}').open()"
        run = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=60, check=False)
        assert "JournalLocked" in run.stderr
        assert store.update("me", adds=[Add("g")])[0].id == 2


def test_b4_opening_again_at_once_overwrites_nothing(where: Path) -> None:
    for n in range(12):
        with TaskStore(DiskJournal(where)) as store:
            store.update("me", adds=[Add("g", b"%d" % n)])

    assert [task.data for task in reopened(where)[0]] == [b"%d" % n for n in range(12)]


def test_a_forked_child_writes_nothing(where: Path) -> None:
    with TaskStore(DiskJournal(where)) as store:
        store.update("me", adds=[Add("g")])
        pid = os.fork()
        if pid == 0:
            try:
                store.update("child", adds=[Add("g")])
            except ForkedError:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        store.update("me", adds=[Add("g")])

    assert [task.owner for task in reopened(where)[0]] == ["me", "me"]


# --- the clock ------------------------------------------------------------------------------------------------------


def test_b5_a_clock_that_went_back_loses_nothing_and_frees_no_task(where: Path, hands: Hands) -> None:
    with TaskStore(DiskJournal(where), clock=hands.clock()) as store:
        store.update("me", adds=[Add("g", b"1"), Add("g", b"2")])
        claimed = store.claim("alice", "g", 100)
        store.snapshot()
        (third,) = store.update("me", adds=[Add("h", b"3")])
    hands.wall_ns -= 3600 * 1_000_000_000

    with TaskStore(DiskJournal(where), clock=hands.clock()) as store:
        assert len(store.every_task()) == 3
        assert third in store.group("h")
        other = store.claim("bob", "g", 10)
        assert claimed is not None
        assert other is not None
        assert other.data != claimed.data
        assert store.claim("bob", "g", 10) is None
        hands.go_on(101)
        assert store.claim("bob", "g", 10) is not None


# --- no room --------------------------------------------------------------------------------------------------------


@contextmanager
def most_bytes(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("face", FACES)
def test_a_disk_that_is_full_in_the_middle_of_an_append(where: Path, face: str) -> None:
    with opened(face, DiskJournal(where)) as tasks:
        tasks.update("me", adds=[Add("g", b"1")])
        size = logs(where)[0].stat().st_size
        with most_bytes(size + 200):  # room for a part of it
            (error,) = tasks.together(tasks.later("update", "me", adds=[Add("g", b"x" * 5000)]))
        assert isinstance(error, JournalFull)
        assert logs(where)[0].stat().st_size == size
        assert len(tasks.every_task()) == 1
        tasks.update("me", adds=[Add("g", b"2")])

    tasks_, told = reopened(where)
    assert [task.data for task in tasks_] == [b"1", b"2"]
    assert told == []


def test_a_full_disk_fails_a_snapshot_and_nothing_else(where: Path) -> None:
    with TaskStore(DiskJournal(where)) as store:
        store.update("me", adds=[Add("g", bytes(5000))])
        with most_bytes(1000), pytest.raises(JournalFull):
            store.snapshot()
        assert not list(where.glob("*snapshot*"))
        store.update("me", adds=[Add("g", b"2")])
        store.snapshot()

    assert len(reopened(where)[0]) == 2


def test_a_sync_that_fails_makes_certain_that_nothing_was_changed(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TaskStore(DiskJournal(where)) as store:
        store.update("me", adds=[Add("g", b"1")])
        with monkeypatch.context() as patch:
            patch.setattr("slotkeeper.taskstore.disk.journal.os.fdatasync", _fails(1))
            with pytest.raises(JournalFailed, match="keep"):
                store.update("me", adds=[Add("g", b"never")])
        store.update("me", adds=[Add("g", b"2")])
        assert [task.data for task in store.every_task()] == [b"1", b"2"]

    assert [task.data for task in reopened(where)[0]] == [b"1", b"2"]


def test_where_nothing_can_be_made_certain_the_next_one_settles_it(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from slotkeeper.taskstore import OutcomeUnknown

    with TaskStore(DiskJournal(where)) as store:
        with monkeypatch.context() as patch:
            patch.setattr("slotkeeper.taskstore.disk.journal.os.fdatasync", _fails(1))
            patch.setattr("slotkeeper.taskstore.disk.journal.create", _fails(1))
            with pytest.raises(OutcomeUnknown):
                store.update("me", adds=[Add("g", b"never")])
        assert store.every_task() == []
        store.update("me", adds=[Add("g", b"1")])

    assert [task.data for task in reopened(where)[0]] == [b"1"]


def _fails(times: int) -> Callable[..., Any]:
    left = [times]

    def fail(*_: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, "Input/output error")

    return fail


# --- the order of things --------------------------------------------------------------------------------------------


def test_b14_files_and_their_names_are_synced_in_the_right_order(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def noted(name: str) -> None:
        real = getattr(os, name)

        def call(*values: Any) -> Any:
            what = values[0] if isinstance(values[0], Path) else Path(os.readlink(f"/proc/self/fd/{values[0]}"))
            done.append(f"{name} {what.name}")
            return real(*values)

        monkeypatch.setattr(f"slotkeeper.taskstore.disk.files.os.{name}", call)

    for name in ("fsync", "fdatasync", "rename"):
        noted(name)
    with TaskStore(DiskJournal(where)) as store:
        assert done[:3] == [
            "fsync 0000000001.log.working",
            "rename 0000000001.log.working",
            "fsync journal",
        ]
        done.clear()
        store.update("me", adds=[Add("g")])
        assert done == ["fdatasync 0000000001.log"]
        done.clear()
        store.snapshot()
        assert done == [
            "fsync 0000000002.log.working",
            "rename 0000000002.log.working",
            "fsync journal",
            "fdatasync 0000000001.log",
            "fsync 0000000002.snapshot.working",
            "rename 0000000002.snapshot.working",
            "fsync journal",
            "fsync journal",
        ]


def test_b14_what_a_snapshot_covers_is_removed(where: Path) -> None:
    with TaskStore(DiskJournal(where)) as store:
        for n in range(20):
            store.update("me", adds=[Add("g", b"%d" % n)])
            store.snapshot()

    assert sorted(path.name for path in where.iterdir()) == ["0000000021.log", "0000000021.snapshot", "lock"]


def test_b14_a_directory_that_takes_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")

    with pytest.raises(JournalFailed):
        TaskStore(f"disk:{tmp_path}/file").open()


def test_segments_are_rotated_and_read_in_order(where: Path) -> None:
    before = filled(where, 40)

    assert len(logs(where)) >= 8
    assert reopened(where) == (before, [])


# --- crashes --------------------------------------------------------------------------------------------------------


def test_twenty_crashes_lose_nothing_and_leave_nothing_half(where: Path) -> None:
    script = Path(__file__).parents[1] / "bench" / "taskcrash.py"
    command = [sys.executable, str(script), "--rounds", "20", "--longest", "0.15", "--journal", f"disk:{where}"]

    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "20 crashes" in run.stdout
    assert verify(where).is_whole
