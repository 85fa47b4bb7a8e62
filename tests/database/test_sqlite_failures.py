"""The embedded store when its disk is full, its file is damaged or no store, or there is none: told, and nothing lost."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract import children
from contract.children import said, step, total, whole
from contract.lamps import shape

from slotkeeper.database import (
    Applied,
    DatabaseError,
    StoreDamaged,
    StoreFull,
    Unavailable,
)
from slotkeeper.database.sqlite import SqliteStore

IN_A_FULL_DISK = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=400k tmpfs "$0" && exec "$@"')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lamps.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    shape(store)
    yield store
    store.close()


# A full disk


def test_full_file_is_told_and_loses_nothing(store: SqliteStore) -> None:
    store.shape("PRAGMA max_page_count = 30")
    number = next(number for number in range(1, 1000) if children.named(store, number) != "Applied")

    with pytest.raises(StoreFull, match=r"lamps\.db is full.*make room"):
        step(store, number)
    assert whole(store) == number - 1
    store.shape("PRAGMA max_page_count = 3000")
    assert step(store, number) == Applied()
    assert whole(store) == number


def test_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    if subprocess.run([*IN_A_FULL_DISK, tmp_path, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("a small disk needs Linux's user namespaces: unshare -rm")

    failed, then, again = said(children.fill, tmp_path / "lamps.db", before=(*IN_A_FULL_DISK, str(tmp_path))).split()

    assert failed == "StoreFull"
    assert int(then) > 1
    assert again == then


def test_file_that_may_not_grow_loses_nothing_and_goes_on_when_it_may(path: Path) -> None:
    failed, behind, again, left = said(children.overflow, path, 200_000).split()

    assert failed in ("StoreFull", "Unavailable", "Unknown")
    assert behind == "1"
    assert (again, left) == ("Applied", "0")


# A damaged file, and no file


def test_file_that_is_no_database_is_told_and_not_written(path: Path) -> None:
    path.write_text("Dear diary,\n" * 1000)

    _assert_refused(path, StoreDamaged, "no SQLite file")


def test_file_with_a_broken_header_is_told_and_not_written(store: SqliteStore, path: Path) -> None:
    assert step(store, 1) == Applied()
    store.close()
    _overwrite(path, 0, b"\xff" * 40)

    _assert_refused(path, StoreDamaged, "damaged")


def test_damage_inside_is_told_where_it_is_met_and_nothing_is_written(store: SqliteStore, path: Path) -> None:
    for number in range(1, 20):
        assert step(store, number) == Applied()
    store.close()
    for page in range(1, path.stat().st_size // 4096):  # all but the first, which names the tables
        _overwrite(path, page * 4096, b"\xff" * 64)
    before = path.read_bytes()

    damaged = SqliteStore(path)
    for use in (lambda: step(damaged, 20), lambda: total(damaged)):
        with pytest.raises(StoreDamaged, match=r"lamps\.db is damaged.*restore a copy"):
            use()
    damaged.close()

    assert path.read_bytes() == before


def test_truncated_file_is_told_and_not_written(store: SqliteStore, path: Path) -> None:
    for number in range(1, 20):
        assert step(store, number) == Applied()
    store.close()
    whole_file = path.read_bytes()
    path.write_bytes(whole_file[: len(whole_file) // 4096 // 2 * 4096])

    _assert_refused(path, StoreDamaged, "damaged")


@pytest.mark.parametrize("spoiled", ["UPDATE lamps SET expiry = '{'", "UPDATE lamps SET seal = 'no uuid'"])
def test_row_that_makes_no_sense_is_damage(store: SqliteStore, spoiled: str) -> None:
    assert step(store, 1) == Applied()
    store.shape(spoiled)

    for use in (lambda: step(store, 2), lambda: total(store)):
        with pytest.raises(StoreDamaged, match=r"row of lamps is damaged.*Restore"):
            use()


def test_file_of_another_program_is_told_and_not_written(path: Path) -> None:
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE theirs (x)")
    theirs.commit()
    theirs.close()

    _assert_refused(path, StoreDamaged, "some other program")


def test_empty_file_that_another_program_marked_is_not_taken_over(path: Path) -> None:
    theirs = sqlite3.connect(path)
    theirs.execute("PRAGMA application_id = 252006674")
    theirs.close()

    _assert_refused(path, StoreDamaged, "some other program")


def test_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()

    store = SqliteStore(path)
    shape(store)

    assert step(store, 1) == Applied()
    store.close()


def test_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"missing/lamps\.db cannot be opened.*Does its folder exist"):
        SqliteStore(tmp_path / "missing" / "lamps.db")


def test_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        SqliteStore(tmp_path)


def test_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)

    assert said(children.trespass, tmp_path / "lamps.db").startswith("Unavailable")


def test_copy_of_a_closed_store_is_a_store(store: SqliteStore, path: Path) -> None:
    assert step(store, 1) == Applied()
    store.close()
    shutil.copy(path, path.with_name("copy.db"))

    copy = SqliteStore(path.with_name("copy.db"))

    assert whole(copy) == 1
    copy.close()


def _assert_refused(path: Path, error: type[DatabaseError], complaint: str) -> None:
    before = path.read_bytes()
    with pytest.raises(error, match=complaint):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def _overwrite(path: Path, at: int, garbage: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(garbage)
