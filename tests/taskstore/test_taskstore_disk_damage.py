"""A journal on disk that is damaged: refused, told of, and repaired without what cannot be read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from diskjournals import SMALL, filled, flip, logs, refused, reopened

from slotkeeper.taskstore import Add, JournalFailed, JournalLocked, TaskStore
from slotkeeper.taskstore.disk import DiskJournal, repair, verify
from slotkeeper.taskstore.disk.frame import OVERHEAD

# --- damage ---------------------------------------------------------------------------------------------------------


def test_no_flipped_byte_of_a_closed_journal_goes_unnoticed(where: Path, tmp_path: Path) -> None:
    before = filled(where, 6)
    with TaskStore(DiskJournal(where, segment_bytes=SMALL)) as store:
        store.snapshot()
        before += store.update("me", adds=[Add("g", b"after")])
    for path in sorted(where.iterdir()):
        if path.name == "lock":
            continue
        for at in range(path.stat().st_size):
            copy = tmp_path / "copy"
            shutil.copytree(where, copy)
            flip(copy / path.name, at)
            verified = verify(copy)
            if verified.is_whole:  # nothing lost: only an end mark, or what a later segment has given up, is hurt
                assert reopened(copy)[0] == before, (path.name, at)
            shutil.rmtree(copy)


def test_a_flipped_byte_of_what_was_acknowledged_is_refused(where: Path) -> None:
    filled(where, closed=False)
    first = logs(where)[0]
    flip(first, first.read_bytes().index(b"\xb5SKf", 10) + OVERHEAD + 3)

    said = refused(where)

    assert first.name in said
    assert "records 1 to" in said
    assert "acknowledged" in said


def test_a_flipped_byte_in_an_unclosed_last_segment_is_refused_where_later_records_show_it(where: Path) -> None:
    filled(where, 5, segment_bytes=1 << 20, closed=False)
    (log,) = logs(where)
    marks = [found.start() for found in re.finditer(b"\xb5SKf", log.read_bytes())]
    flip(log, marks[3] + OVERHEAD + 2)  # the third of five records

    assert "records 3 to 4 had been acknowledged" in refused(where)


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_missing_segment_is_refused(where: Path, which: int) -> None:
    filled(where)
    missing = logs(where)[which]
    missing.unlink()

    assert missing.name in refused(where)


def test_a_segment_of_another_journal_is_refused(where: Path, tmp_path: Path) -> None:
    filled(where)
    filled(tmp_path / "other")
    shutil.copy(logs(tmp_path / "other")[1], logs(where)[1])

    assert "not of this one" in refused(where)


def test_a_journal_without_any_file_left_is_refused(where: Path) -> None:
    filled(where)
    for path in logs(where):
        path.unlink()

    assert "no file of it is left" in refused(where)


@pytest.mark.parametrize(("size", "says"), [(0, "empty"), (1, "head"), (0.5, "from byte"), (-1, "from byte")])
def test_an_empty_or_torn_snapshot_is_refused(where: Path, size: float, says: str) -> None:
    filled(where)
    with TaskStore(DiskJournal(where)) as store:
        store.snapshot()
    (snapshot,) = where.glob("*.snapshot")
    data = snapshot.read_bytes()
    snapshot.write_bytes(data[: int(len(data) * size) if 0 < size < 1 else int(size)])

    said = refused(where)

    assert snapshot.name in said
    assert says in said


def test_a_snapshot_cut_at_any_place_is_refused(where: Path) -> None:
    filled(where)
    with TaskStore(DiskJournal(where)) as store:
        store.snapshot()
    (snapshot,) = where.glob("*.snapshot")
    data = snapshot.read_bytes()

    for size in range(len(data)):
        snapshot.write_bytes(data[:size])
        assert not verify(where).is_whole


def test_a_missing_snapshot_is_refused(where: Path) -> None:
    filled(where)
    with TaskStore(DiskJournal(where)) as store:
        store.snapshot()
    for snapshot in where.glob("*.snapshot"):
        snapshot.unlink()

    assert "0000000001.log is missing" in refused(where)


# --- repair ---------------------------------------------------------------------------------------------------------


def test_a_repair_keeps_what_can_be_read_and_says_what_it_drops(where: Path) -> None:
    before = filled(where)
    gone = logs(where)[1]
    lost = re.findall(rb"A\d|g\xa2me.*", gone.read_bytes())
    assert lost is not None
    files = {path.name: path.read_bytes() for path in where.iterdir() if path.name != "lock"}
    flip(gone, gone.read_bytes().index(b"\xb5SKf", 10) + OVERHEAD + 3)
    damaged = {path.name: path.read_bytes() for path in where.iterdir() if path.name != "lock"}

    repaired = repair(where)

    assert repaired is not None
    assert {path.name: path.read_bytes() for path in Path(repaired.aside).iterdir()} == damaged != files
    assert any(gone.name in each for each in repaired.dropped)
    tasks, told = reopened(where)
    assert len(tasks) == len(before) - 1 == repaired.tasks
    assert all(task in before for task in tasks)
    assert told == []
    assert repair(where) is None
    with TaskStore(DiskJournal(where)) as store:
        assert store.update("me", adds=[Add("g")])[0].id > before[-1].id


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_repair_does_without_a_missing_segment(where: Path, which: int) -> None:
    before = filled(where)
    logs(where)[which].unlink()

    repaired = repair(where)

    assert repaired is not None
    tasks, _ = reopened(where)
    assert 0 < len(tasks) < len(before) or which == -1
    assert all(task in before for task in tasks)


def test_a_repair_does_without_the_snapshot(where: Path) -> None:
    filled(where)
    with TaskStore(DiskJournal(where)) as store:
        store.snapshot()
        (new,) = store.update("me", adds=[Add("g", b"new")])
    next(iter(where.glob("*.snapshot"))).write_bytes(b"")

    assert repair(where) is not None
    assert new in reopened(where)[0]


# --- verify ---------------------------------------------------------------------------------------------------------


def test_verify_tells_what_is_there_and_changes_nothing(where: Path) -> None:
    before = filled(where)
    files = {path.name: path.stat() for path in where.iterdir()}

    verified = verify(where)

    assert (verified.tasks, verified.records, verified.sequence) == (len(before),) * 3
    assert verified.segments == len(logs(where))
    assert verified.is_whole
    assert verified.told == ()
    assert {path.name: path.stat().st_mtime_ns for path in where.iterdir()} == {
        n: s.st_mtime_ns for n, s in files.items()
    }


def test_verify_and_repair_wait_for_nobody(where: Path) -> None:
    with TaskStore(DiskJournal(where)) as store:
        store.update("me", adds=[Add("g")])
        for look in (verify, repair):
            with pytest.raises(JournalLocked):
                look(where)


def test_verifying_what_is_not_there_is_told(where: Path) -> None:
    with pytest.raises(JournalFailed):
        verify(where)
