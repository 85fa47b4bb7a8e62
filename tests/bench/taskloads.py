"""What the task store does in a second, beside what it stands on: the disk, the database, the server's empty requests."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter, time_ns
from typing import Protocol
from urllib.parse import urlsplit

from slotkeeper.database import drive
from slotkeeper.taskstore import Add, AsyncTaskStore, Task, TaskStore
from slotkeeper.taskstore.disk import DiskJournal
from slotkeeper.taskstore.disk.frame import Kind, framed
from slotkeeper.taskstore.ports import ThreadsPort
from slotkeeper.taskstore.record import Record, encode
from slotkeeper.taskstore.remote import TaskClient

from .crowd import Readings, Window, counted, counted_in_task, in_tasks, in_threads
from .processes import Gate, in_processes

DATA = bytes(100)
GROUP, OWNER = "bench", "bench"
AHEAD_PER_S = 100_000  # tasks that are there to be claimed: more than anybody gets through
TOGETHER = 1_000
HTTP_TASKS = 1_000
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    body: bytes | None = None


NOTHING = Asked("GET", "/healthz")
CLAIM = Asked("POST", "/claim", json.dumps({"clientid": OWNER, "group": GROUP, "duration": 0}).encode())


def pairs(url: str, seconds: float, *, clients: int) -> Readings:
    """Claim and delete tasks of a store in memory, in threads: pairs a second."""
    with TaskStore("memory") as store:
        _fill(store, int(seconds * 2 * AHEAD_PER_S))
        window = Window.opening(seconds)
        done = in_threads(clients, lambda number: counted(_pair(store, f"owner {number}"), window))
    return {"rate": sum(done) / window.seconds}


def _pair(store: TaskStore, owner: str) -> Callable[[], None]:
    def pair() -> None:
        task = store.claim(owner, GROUP, 30)
        assert task is not None, "there are more tasks than anybody gets through"
        store.update(owner, deletes=[task.id])

    return pair


def _fill(store: TaskStore | TaskClient, tasks: int) -> None:
    for first in range(0, tasks, TOGETHER):
        store.update(OWNER, adds=[Add(GROUP, DATA) for _ in range(min(TOGETHER, tasks - first))])


# --- on disk --------------------------------------------------------------------------------------------------------------


def appends(url: str, seconds: float, *, threads: int) -> Readings:
    """Append a record's bytes to one file and sync it, in threads that know nothing of each other: appends a second."""
    frame, _ = framed(Kind.RECORD, 1, 0, encode(_record(1)))
    with tempfile.TemporaryDirectory(dir=_directory(url)) as folder:
        file = os.open(Path(folder) / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def append() -> None:
            os.write(file, frame)
            os.fdatasync(file)

        try:
            window = Window.opening(seconds)
            rate = sum(in_threads(threads, lambda _: counted(append, window))) / window.seconds
        finally:
            os.close(file)
    return {"rate": rate, "eightfold": 8 * rate}


class Updates(Protocol):
    """Clients that add a task and delete the one before with each update of a strict store: updates a second."""

    def __call__(self, journal: str, seconds: float, *, clients: int) -> Readings: ...


def in_store_threads(journal: str, seconds: float, *, clients: int) -> Readings:
    """See Updates: each client is a thread."""
    with TaskStore(journal) as store:
        window = Window.opening(seconds)
        done = in_threads(clients, lambda number: counted(_update(store, f"owner {number}"), window))
    return {"rate": sum(done) / window.seconds}


def _update(store: TaskStore, owner: str) -> Callable[[], None]:
    former = list[int]()

    def update() -> None:
        (task,) = store.update(owner, adds=[Add(GROUP, DATA, after_s=600)], deletes=former)
        former[:] = [task.id]

    return update


def in_store_tasks(journal: str, seconds: float, *, clients: int) -> Readings:
    """See Updates: each client is a task of one loop, as a service's requests are."""
    return asyncio.run(_in_store_tasks(journal, seconds, clients))


async def _in_store_tasks(journal: str, seconds: float, clients: int) -> Readings:
    async with AsyncTaskStore(journal) as store:
        window = Window.opening(seconds)

        def work(number: int) -> Coroutine[None, None, int]:
            former = list[int]()

            async def update() -> None:
                (task,) = await store.update(f"owner {number}", adds=[Add(GROUP, DATA, after_s=600)], deletes=former)
                former[:] = [task.id]

            return counted_in_task(update, window)

        done = await in_tasks(clients, work)
    return {"rate": sum(done) / window.seconds}


def disk_updates(url: str, seconds: float, *, clients: int, updates: Updates = in_store_threads) -> Readings:
    """Update a strict store on disk: updates a second."""
    with tempfile.TemporaryDirectory(dir=_directory(url)) as folder:
        return updates(f"disk:{folder}/journal", seconds, clients=clients)


def replay(url: str, seconds: float, *, records: int) -> Readings:
    """Open a journal on disk of so many records, each of which adds a task: records a second."""
    with tempfile.TemporaryDirectory(dir=_directory(url)) as folder:
        _write(DiskJournal(folder), records)
        gc.collect()
        began = perf_counter()
        with TaskStore(f"disk:{folder}") as store:
            took = perf_counter() - began
            assert store.stats().size == records
    return {"rate": records / took}


def _write(journal: DiskJournal, records: int) -> None:
    drive(journal.open(ThreadsPort(), lambda record: None))
    for first in range(1, records + 1, TOGETHER):
        together = [_record(number) for number in range(first, min(first + TOGETHER, records + 1))]
        drive(journal.append(together, 0.0))
    drive(journal.close())


def _record(number: int) -> Record:
    return Record(time_ns(), number, (), (Task(number, GROUP, OWNER, time_ns(), DATA),))


def _directory(url: str) -> str:
    return url.partition(":")[2]


# --- in a database --------------------------------------------------------------------------------------------------------


def database_updates(url: str, seconds: float, *, clients: int, updates: Updates = in_store_threads) -> Readings:
    """Update a strict store whose journal is in a database, always the same one: updates a second."""
    return updates(f"{url}#bench", seconds, clients=clients)


# --- over HTTP ------------------------------------------------------------------------------------------------------------


@contextmanager
def served() -> Iterator[str]:
    """Serve a store in memory from a process of its own."""
    command = [sys.executable, "-m", "slotkeeper", "tasks", "serve", "--journal", "memory", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def client_claims(url: str, seconds: float, *, clients: int) -> Readings:
    """Claim tasks through one TaskClient, in threads; they are there again at once. Claims a second."""
    with served() as address, TaskClient(address) as client:
        _fill(client, HTTP_TASKS)
        window = Window.opening(seconds)

        def claim() -> None:
            assert client.claim(OWNER, GROUP, 0.0) is not None

        return {"rate": sum(in_threads(clients, lambda _: counted(claim, window))) / window.seconds}


def requests(url: str, seconds: float, *, clients: int, asked: Asked) -> Readings:
    """Ask a server with tasks the same thing again and again, over a bare connection for each thread: requests a second."""
    with served() as address, TaskClient(address) as client:
        _fill(client, HTTP_TASKS)
        window = Window.opening(seconds)
        rates = in_threads(clients, lambda _: _asked(urlsplit(address).netloc, asked, window))
    return {"rate": sum(rates) / window.seconds}


def _asked(netloc: str, asked: Asked, window: Window) -> int:
    connection = http.client.HTTPConnection(netloc, timeout=START_S)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # head and body are two packets

    def ask() -> None:
        connection.request(asked.method, asked.path, asked.body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.read()
        assert answer.status == 200

    try:
        return counted(ask, window)
    finally:
        connection.close()


# --- memory ---------------------------------------------------------------------------------------------------------------


def memory(url: str, seconds: float, *, tasks: int) -> Readings:
    """Count what Python has allocated for so many tasks of 100 bytes, in KiB, in a process of its own."""
    return {"KiB": in_processes(1, partial(_filled, tasks), seconds)[0]}


def _filled(tasks: int, number: int, gate: Gate) -> float:
    sizes = count(1)
    with TaskStore("memory") as store:
        gate()
        gc.collect()
        tracemalloc.start()
        for _ in range(0, tasks, TOGETHER):
            store.update(OWNER, adds=[Add(GROUP, DATA + str(next(sizes)).encode()) for _ in range(TOGETHER)])
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1024
