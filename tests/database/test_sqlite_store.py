"""The embedded store: one file, which several processes, threads and tasks share."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
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
    Refused,
    Slice,
    StatementRejected,
    TableMissing,
    Unavailable,
    Write,
    insert,
    open_store,
    update,
)
from slotkeeper.database.sqlite import SqliteStore

KILLS = 30


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
    assert store._connection
    pragmas = {
        name: store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }

    assert pragmas == {"journal_mode": "wal", "synchronous": 2}
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

    assert store._connection
    assert store._connection.execute("SELECT shelf FROM lamps").fetchall() == [(9,)]


def test_rows_that_ended_are_swept_by_what_is_written_behind_them(path: Path) -> None:
    now_ms = [1_000]
    with closing(SqliteStore(path, clock=lambda: now_ms[0])) as store:
        shape(store)
        write(store, *(insert(lamp(number), {"holder": "dead"}, ttl_s=1) for number in range(10)))
        write(store, insert(lamp(3), {"holder": "alive"}))
        now_ms[0] += 1_000
        write(store, insert(lamp(10), {"holder": "ada"}))
        assert shelves(store) == list(range(11)), "what has no TTL sweeps nothing"

        write(store, insert(lamp(11), {"holder": "ada"}, ttl_s=1))
        assert shelves(store) == [*range(7), 10, 11], "a few rows a write"
        write(store, *(insert(lamp(number), {"holder": "ada"}, ttl_s=1) for number in (12, 7, 4)))
        assert shelves(store) == [3, 4, 7, 10, 11, 12]


def write(store: SqliteStore, *writes: Write) -> None:
    """Write without a condition but one that holds."""
    keep = update(lamp(99), {"slot": None}, expect={"slot": (None,)})
    assert store.commit(Batch(LAMPS, PARTITION, (keep, *writes))) == Applied()


def shelves(store: SqliteStore) -> list[int]:
    """Return which rows lie in the file, ended or not."""
    assert store._connection
    return [shelf for (shelf,) in store._connection.execute("SELECT shelf FROM lamps ORDER BY shelf")]


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


def test_child_of_a_fork_works_with_everybody_else_on_the_file(path: Path) -> None:
    """SQLite believes to hold in the child what only the parent has locked: the file is closed while a process forks."""
    assert said(children.rejoin, path).splitlines() == ["child is Refused at 3", "parent at 3"]


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


def _marked(number: int) -> Batch:
    return Batch(LAMPS, PARTITION, (insert(lamp(number), {}, absent=True),))
