"""Journals on disk as tests fill them, look at them and damage them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from slotkeeper.taskstore import Add, JournalDamaged, Task, TaskStore
from slotkeeper.taskstore.disk import DiskJournal, verify

SMALL = 250  # bytes a segment: three records or so


def filled(where: Path, updates: int = 12, *, segment_bytes: int = SMALL, closed: bool = True) -> list[Task]:
    """Fill a journal; leave it closed, or as a crash would leave it."""
    live = where if closed else where.with_name("live")
    with TaskStore(DiskJournal(live, segment_bytes=segment_bytes)) as store:
        for n in range(updates):
            store.update("me", adds=[Add("g", b"%d" % n)])
        before = store.every_task()
        if not closed:
            shutil.copytree(live, where)
    return before


def reopened(where: Path) -> tuple[list[Task], list[str]]:
    """Open a journal; return its tasks and what was told."""
    with TaskStore(DiskJournal(where)) as store:
        return store.every_task(), list(store.told)


def logs(where: Path) -> list[Path]:
    """Return the segments, in order."""
    return sorted(where.glob("*.log"))


def flip(path: Path, at: int) -> None:
    """Flip the bits of one byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def refused(where: Path) -> str:
    """Open what must be refused, and see to it that nothing was changed by that. Return what was said."""
    before = {path.name: path.read_bytes() for path in where.iterdir() if path.name != "lock"}
    with pytest.raises(JournalDamaged) as error:
        reopened(where)
    assert {path.name: path.read_bytes() for path in where.iterdir() if path.name != "lock"} == before
    verified = verify(where)
    assert not verified.is_whole
    assert list(error.value.findings) == list(verified.damage)
    return str(error.value)
