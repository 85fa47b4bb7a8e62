"""The embedded store: one file, several processes, and every way in which a file can fail."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from contract import children
from contract.children import PARTITION, child, said, step, total, whole
from contract.lamps import LAMPS, shape
from contract.rooms import lamp

from slotkeeper.database import (
    Applied,
    AsyncioPort,
    Batch,
    ClosedError,
    DatabaseError,
    Refused,
    Slice,
    StatementRejected,
    StoreDamaged,
    StoreFull,
    TableMissing,
    Unavailable,
    insert,
    open_store,
    update,
)
from slotkeeper.database.sqlite import SqliteStore

KILLS = 30
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


# The file


def test_commit_is_on_the_disk_before_it_is_answered(store: SqliteStore, path: Path) -> None:
    pragmas = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }

    assert pragmas == {"journal_mode": "wal", "synchronous": 2}
    assert b"WAL" not in path.read_bytes()[:16]
    assert path.read_bytes()[18:20] == b"\x02\x02"  # the file says so itself: write and read version 2


def test_closed_store_leaves_one_file(store: SqliteStore, path: Path) -> None:
    assert step(store, 1) == Applied()
    store.close()

    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_was_committed_is_there_when_the_file_is_opened_again(store: SqliteStore, path: Path) -> None:
    assert step(store, 1) == Applied()
    store.close()

    with_url = open_store(f"sqlite:///{path}")

    assert whole(with_url) == 1
    with_url.close()


def test_several_stores_of_one_process_share_the_file(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path)

    assert step(store, 1) == Applied()
    assert step(other, 2) == Applied()
    assert isinstance(step(store, 2), Refused)
    other.close()
    assert whole(store) == 2


def test_rows_that_became_null_leave_nothing_in_the_file(store: SqliteStore) -> None:
    keep = update(lamp(9), {"slot": 1}, expect={"slot": (None, 1)})
    store.commit(Batch(LAMPS, PARTITION, (keep, update(lamp(1), {"holder": "ada"}))))
    store.commit(Batch(LAMPS, PARTITION, (keep, update(lamp(1), {"holder": None}), update(lamp(2), {"holder": None}))))

    assert store._connection.execute("SELECT shelf FROM lamps").fetchall() == [(9,)]


def test_table_is_told_by_its_columns(store: SqliteStore) -> None:
    assert store.columns("lamps")["slot"] == "integer"
    assert store.columns("nothing") == {}


def test_table_that_is_not_there_is_named(store: SqliteStore, path: Path) -> None:
    store.shape("DROP TABLE lamps")

    with pytest.raises(TableMissing, match=r"lamps\.db.*no such table"):
        step(store, 1)
    with pytest.raises(TableMissing):
        total(store)


def test_statement_that_is_none_is_rejected(store: SqliteStore) -> None:
    with pytest.raises(StatementRejected, match="syntax error"):
        store.shape("CREATE TABEL x (y)")
    store.shape("ALTER TABLE lamps DROP COLUMN body")
    with pytest.raises(StatementRejected, match="body"):
        total(store)


# Several processes


def test_counter_that_processes_move_loses_no_step(store: SqliteStore, path: Path) -> None:
    with ExitStack() as running:
        processes = [running.enter_context(child(children.count, path, 100)) for _ in range(4)]
        assert [process.wait(timeout=60) for process in processes] == [0] * 4

    assert total(store) == 400


def test_everybody_who_opens_a_new_file_at_once_gets_in(tmp_path: Path) -> None:
    """Connections of one process keep each other out as processes do, and start closer together."""
    starting = threading.Barrier(8, timeout=60)

    def start(path: Path) -> None:
        starting.wait()
        store = SqliteStore(path)
        shape(store)
        store.close()

    with ThreadPoolExecutor(8) as threads:
        for number in range(40):
            list(threads.map(start, [tmp_path / f"{number}.db"] * 8))


def test_file_that_stays_busy_is_unavailable_and_unchanged(store: SqliteStore, path: Path) -> None:
    assert step(store, 1) == Applied()
    hasty = SqliteStore(path, busy_s=0.1)

    with child(children.hold, path) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Unavailable, match=r"lamps\.db was kept busy"):
            step(hasty, 2)
        with pytest.raises(Unavailable):
            hasty.shape("CREATE TABLE more (x)")
        assert whole(hasty) == 1  # who only reads waits for nobody
        holder.communicate(timeout=60)

    assert step(hasty, 2) == Applied()
    hasty.close()


def test_writer_waits_for_a_short_while_of_being_busy(store: SqliteStore, path: Path) -> None:
    with child(children.hold, path) as holder, ThreadPoolExecutor(1) as thread:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        waiting = thread.submit(step, store, 1)
        holder.communicate(timeout=60)
        assert waiting.result(timeout=60) == Applied()


def test_killed_writer_leaves_whole_batches_and_every_acknowledged_one(store: SqliteStore, path: Path) -> None:
    acknowledged = 0
    for round_ in range(KILLS):
        with child(children.append, path) as writer:
            assert writer.stdout
            for _ in range(1 + round_ * 7 % 11):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])

        assert whole(store) in (acknowledged, acknowledged + 1)


# Threads and tasks


def test_threads_share_a_store(store: SqliteStore) -> None:
    def count(_: int) -> None:
        while step(store, total(store) + 1, rows=0) != Applied():
            pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(200)))

    assert total(store) == 200


def test_cancelled_commit_leaves_the_store_usable(store: SqliteStore, path: Path) -> None:
    async def cancel_while_busy(holder: subprocess.Popen[str]) -> None:
        port = AsyncioPort(store)
        commits = [asyncio.create_task(port.commit(_marked(number))) for number in range(3)]
        await asyncio.wait(commits, timeout=0.05)
        for commit in commits:
            commit.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*commits, return_exceptions=True)
        )
        await asyncio.to_thread(holder.communicate, timeout=60)
        assert await port.commit(_marked(9)) == Applied()

    with child(children.hold, path) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        asyncio.run(cancel_while_busy(holder))

    # The first was on its way, and may land; those behind it were never begun.
    shelves = [row["shelf"] for row in store.read(LAMPS, PARTITION, (Slice(),), serial=True)]
    assert shelves in ([9], [0, 9])


def test_interrupt_in_the_middle_of_a_commit_gives_the_lock_back(path: Path) -> None:
    struck = False

    def clock() -> int:
        nonlocal struck
        if not struck:
            struck = True
            raise KeyboardInterrupt
        return 1

    store = SqliteStore(path, clock=clock)
    shape(store)
    with pytest.raises(KeyboardInterrupt):
        step(store, 1)

    other = SqliteStore(path, busy_s=0.1)
    assert step(other, 1) == Applied()
    assert step(store, 2) == Applied()
    other.close()
    store.close()


def test_closed_store_refuses_and_may_be_closed_again(store: SqliteStore) -> None:
    store.close()
    store.close()

    for use in (
        lambda: step(store, 1),
        lambda: total(store),
        lambda: store.columns("lamps"),
        lambda: store.layout("lamps"),
        lambda: store.shape("CREATE TABLE x (y)"),
        lambda: store.commit_soon(_marked(1)),
        lambda: store.read_soon(LAMPS, PARTITION, (Slice(),), serial=True),
        lambda: store.commit_begun(_marked(1)).result(),
        lambda: store.read_begun(LAMPS, PARTITION, (Slice(),), serial=True).result(),
    ):
        with pytest.raises(ClosedError):
            use()
    assert "closed" in repr(store)


def test_close_waits_for_the_commit_that_is_under_way(path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def clock() -> int:
        begun.set()
        assert go_on.wait(60)
        return 1

    store = SqliteStore(path, clock=clock)
    shape(store)
    commit = store.commit_soon(_marked(1))
    assert begun.wait(60)
    closing = threading.Thread(target=store.close)
    closing.start()
    go_on.set()
    closing.join(60)

    assert commit.result(0) == Applied()


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


def _marked(number: int) -> Batch:
    return Batch(LAMPS, PARTITION, (insert(lamp(number), {}, absent=True),))
