"""The two ways to keep a journal on disk, beside the disk's own limit: framed segments, and SQLite in WAL with full sync.

python tests/bench/taskjournal.py [--runs 5] [--directory DIR]
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from slotkeeper.database import drive
from slotkeeper.taskstore import Add, Task, TaskStore
from slotkeeper.taskstore.disk import DiskJournal
from slotkeeper.taskstore.ports import ThreadsPort
from slotkeeper.taskstore.record import Record, encode

DATA = bytes(100)
REPLAYED = 100_000
Append = Callable[[Sequence[Record]], None]


def record(number: int) -> Record:
    """Return the record of an update that adds one task of 100 bytes."""
    return Record(time.time_ns(), number, (), (Task(number, "group", "owner", time.time_ns(), DATA),))


def raw(directory: Path) -> tuple[Append, Callable[[], int]]:
    """Return the bare loop: write, and fdatasync."""
    file = os.open(directory / "raw", os.O_RDWR | os.O_CREAT)

    def append(records: Sequence[Record]) -> None:
        os.write(file, b"".join(map(encode, records)))
        os.fdatasync(file)

    return append, lambda: 0


def segments(directory: Path) -> tuple[Append, Callable[[], int]]:
    """Return our journal, and its replay."""
    journal = DiskJournal(directory / "segments")
    drive(journal.open(ThreadsPort(), lambda record: None))

    def replayed() -> int:
        drive(journal.close())
        found = list[Record]()
        drive(DiskJournal(journal.directory).open(ThreadsPort(), found.append))
        return len(found)

    return lambda records: drive(journal.append(records, 0.0)), replayed


def sqlite(directory: Path) -> tuple[Append, Callable[[], int]]:
    """Return the same records as rows of a table."""
    connection = sqlite3.connect(directory / "journal.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE journal (sequence INTEGER PRIMARY KEY, record BLOB)")

    def append(records: Sequence[Record]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO journal (record) VALUES (?)", [(encode(each),) for each in records])
        connection.execute("COMMIT")

    def replayed() -> int:
        from slotkeeper.taskstore.record import decode

        return len([decode(row) for (row,) in connection.execute("SELECT record FROM journal ORDER BY sequence")])

    return append, replayed


def per_record_us(append: Append, together: int, seconds: float = 0.6) -> float:
    """Return microseconds a record, when so many leave together."""
    batch, number, began = [record(n) for n in range(together)], 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        append(batch)
        number += together
    return (time.perf_counter() - began) / number * 1e6


def silently_lost(directory: Path) -> int:
    """Return how many acknowledged rows SQLite drops without a word after one flipped byte in its log."""
    path = directory / "flipped.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = FULL")
    writer.execute("CREATE TABLE journal (sequence INTEGER PRIMARY KEY, record BLOB)")
    for _ in range(100):
        writer.execute("INSERT INTO journal (record) VALUES (?)", (DATA,))
    copy = directory / "copy.db"  # as a crash leaves it
    copy.write_bytes(path.read_bytes())
    log = bytearray(path.with_name("flipped.db-wal").read_bytes())
    log[len(log) // 2] ^= 0xFF
    copy.with_name("copy.db-wal").write_bytes(log)
    (left,) = sqlite3.connect(copy).execute("SELECT count(*) FROM journal").fetchone()
    return 100 - int(left)


def store_per_s(directory: Path, clients: int, seconds: float = 1.5) -> float:
    """Return strict updates of one add a second."""
    done = [0] * clients
    with TaskStore(DiskJournal(directory / f"store{time.time_ns()}")) as store:
        end = time.perf_counter() + seconds

        def work(n: int) -> None:
            while time.perf_counter() < end:
                store.update("me", adds=[Add("g", DATA)])
                done[n] += 1

        threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(done) / seconds


def main() -> None:
    """Measure each in turn, several times, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--directory")
    asked = parser.parse_args()
    ways = {"raw write and fdatasync": raw, "framed segments": segments, "SQLite, WAL, FULL": sqlite}
    with TemporaryDirectory(dir=asked.directory) as folder:
        figures: dict[tuple[str, int], list[float]] = {}
        stores: dict[int, list[float]] = {1: [], 8: []}
        for run in range(asked.runs):
            for name, way in ways.items():
                directory = Path(folder) / f"{run}"
                directory.mkdir(exist_ok=True)
                append, _ = way(directory)
                for together in (1, 8, 50):
                    figures.setdefault((name, together), []).append(per_record_us(append, together))
            for clients, rates in stores.items():
                rates.append(store_per_s(Path(folder), clients))
        print("microseconds a record (median), when 1, 8 or 50 leave together")
        for name in ways:
            print(f"  {name:26}", *(f"{statistics.median(figures[name, n]):8.1f}" for n in (1, 8, 50)))
        print("strict updates a second, 1 and 8 clients:", *(f"{statistics.median(r):.0f}" for r in stores.values()))
        for name, way in (("framed segments", segments), ("SQLite, WAL, FULL", sqlite)):
            directory = Path(folder) / f"replay {name[:6]}"
            directory.mkdir()
            append, replayed = way(directory)
            for first in range(0, REPLAYED, 1_000):
                append([record(first + n) for n in range(1_000)])
            began = time.perf_counter()
            assert replayed() == REPLAYED
            print(f"replay, {name}: {REPLAYED / (time.perf_counter() - began):.0f} records a second")
        print(f"acknowledged rows that SQLite drops in silence after one flipped byte: {silently_lost(Path(folder))}")


if __name__ == "__main__":
    main()
