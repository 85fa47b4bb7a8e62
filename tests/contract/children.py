"""Processes beside the test's own: `python -m contract.children COMMAND PATH [NUMBER]`.

Each prints a line when it has done what the test waits for, and the tests read it: no side guesses how long that takes.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count as numbers
from pathlib import Path
from uuid import UUID

from slotkeeper.database import (
    Applied,
    AsyncioPort,
    Batch,
    BlockingPort,
    DatabaseError,
    ForkedError,
    Key,
    Outcome,
    Port,
    Slice,
    Store,
    drive,
    insert,
    open_store,
    update,
)

from .lamps import LAMPS, shape
from .rooms import lamp

PARTITION: Key = (UUID(int=7), "shared")
COUNTER = lamp(0)
ROWS_A_BATCH = 20
TIMEOUT_S = 60


def step(store: Store, number: int, rows: int = ROWS_A_BATCH) -> Outcome:
    """Commit the batch that follows number - 1: a counter moves on, and rows of that number appear."""
    before = (number - 1, None) if number == 1 else (number - 1,)
    writes = [insert(lamp(number, str(row)), {"body": bytes(200)}) for row in range(rows)]
    move = update(COUNTER, {"total": number}, expect={"total": before})
    return store.commit(Batch(LAMPS, PARTITION, (move, *writes)))


def named(store: Store, number: int) -> str:
    """Commit a numbered batch, and name the outcome or the error."""
    try:
        return type(step(store, number)).__name__
    except DatabaseError as error:
        return type(error).__name__


def total(store: Store) -> int:
    """Read the counter."""
    rows = store.read(LAMPS, PARTITION, (Slice(COUNTER),), serial=True)
    return int(str(rows[0]["total"])) if rows else 0


def whole(store: Store) -> int:
    """Read the counter, and check that all rows of all its batches are there, and no others."""
    last, rows = total(store), store.read(LAMPS, PARTITION, (Slice(after=0),), serial=True)
    expected = {(number, str(row)) for number in range(1, last + 1) for row in range(ROWS_A_BATCH)}
    assert {(row["shelf"], row["name"]) for row in rows} == expected
    return last


def count(path: str, steps: str) -> None:
    """Move the counter on, `steps` times, against everybody else."""
    store = open_store(f"sqlite:///{path}")
    for _ in range(int(steps)):
        while step(store, total(store) + 1, rows=0) != Applied():
            pass
    store.close()


def append(path: str) -> None:
    """Commit one numbered batch after the other until killed, and tell of each that is acknowledged."""
    store = open_store(f"sqlite:///{path}")
    for number in numbers(total(store) + 1):
        assert step(store, number) == Applied()
        os.write(1, b"%d\n" % number)


def fill(path: str) -> None:
    """Commit numbered batches until one fails. Tell how, and the counter then and after opening the file again."""
    store = open_store(f"sqlite:///{path}")
    shape(store)
    failed = next(name for number in numbers(1) if (name := named(store, number)) != "Applied")
    then = whole(store)
    store.close()
    store = open_store(f"sqlite:///{path}")
    print(failed, then, whole(store), flush=True)
    store.close()


def overflow(path: str, most_bytes: str) -> None:
    """Do the same where no file may grow beyond `most_bytes`; then lift that limit, and commit the failed batch again."""
    store = open_store(f"sqlite:///{path}")
    shape(store)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), hard))
    name, number = next((name, number) for number in numbers(1) if (name := named(store, number)) != "Applied")
    then = whole(store)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    again = named(store, number)
    print(name, number - then, again, whole(store) - number, flush=True)
    store.close()


def hold(path: str) -> None:
    """Keep the file busy until the input ends."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    sys.stdin.read()
    connection.execute("ROLLBACK")
    connection.close()


def trespass(path: str) -> None:
    """Open the file as a user who may not, and tell the error."""
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        open_store(f"sqlite:///{path}").close()
    except DatabaseError as error:
        print(type(error).__name__, error, flush=True)


def fork(url: str) -> None:
    """Fork with a store open and in use. The child's uses of it are refused; its own store works, and so does the parent's."""
    store = open_store(url)
    shape(store)
    number = total(store)
    with ThreadPoolExecutor(1) as other:
        busy = other.submit(lambda: [total(store) for _ in range(200)])  # holds the store's locks now and then
        pid = os.fork()
        if pid == 0:
            _in_the_child(store, url, number + 1)
    assert set(busy.result(TIMEOUT_S)) <= {number, number + 1}
    _, status = os.waitpid(pid, 0)
    assert total(store) == number + 1
    assert step(store, number + 1, rows=0) != Applied()
    assert step(store, number + 2, rows=0) == Applied()
    store.close()
    print("child ended with", os.waitstatus_to_exitcode(status), flush=True)


def _in_the_child(store: Store, url: str, number: int) -> None:
    for use in uses(store):
        try:
            use()
        except ForkedError:
            continue
        print(f"{use} was not refused", flush=True)
    store.close()
    store.close()
    own = open_store(url)
    assert step(own, number, rows=0) == Applied()
    own.close()
    sys.exit(0)  # the long way out: what libraries do at the end of a process must not hang either


def uses(store: Store) -> Iterator[Callable[[], object]]:
    """Give every way to use a store, by itself and through both ports."""
    batch, slices = Batch(LAMPS, PARTITION, (insert(lamp(1), {}, absent=True),)), (Slice(),)
    blocking, looping = BlockingPort(store), AsyncioPort(store)

    async def begun(port: Port) -> None:
        for pending in (port.begin_commit(batch), port.begin_read(LAMPS, PARTITION, slices, serial=False)):
            await pending.wait(TIMEOUT_S)
            pending.result()

    yield lambda: store.commit(batch)
    yield lambda: store.read(LAMPS, PARTITION, slices, serial=True)
    yield lambda: store.layout("lamps")
    yield lambda: store.layout("lamps")
    yield lambda: shape(store)
    yield lambda: drive(blocking.commit(batch))
    yield lambda: drive(blocking.read(LAMPS, PARTITION, slices, serial=True))
    yield lambda: drive(begun(blocking))
    yield lambda: asyncio.run(looping.commit(batch))
    yield lambda: asyncio.run(looping.read(LAMPS, PARTITION, slices, serial=True))
    yield lambda: asyncio.run(begun(looping))


def rejoin(path: str) -> None:
    """Fork with the file open. While the child has it open anew, let the parent close it, open it again, and move on."""
    store = open_store(f"sqlite:///{path}")
    shape(store)
    told, moved = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        own = open_store(f"sqlite:///{path}")
        assert step(own, 1) == Applied()
        os.write(told[1], b"!")
        os.read(moved[0], 1)
        print("child is", type(step(own, 2)).__name__, "at", total(own), flush=True)
        own.close()
        sys.exit(0)
    os.read(told[0], 1)
    store.close()
    store = open_store(f"sqlite:///{path}")
    assert (step(store, 2), step(store, 3)) == (Applied(), Applied())
    os.write(moved[1], b"!")
    os.waitpid(pid, 0)
    print("parent at", whole(store), flush=True)
    store.close()


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command for command in (count, append, fill, overflow, hold, trespass, fork, rejoin)
}


@contextmanager
def child(
    command: Callable[..., None], *arguments: object, before: tuple[str, ...] = ()
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process of its own, which is gone at the end. `before` is what starts Python, if not a shell."""
    here = str(Path(__file__).parent.parent)
    with subprocess.Popen(
        [*before, sys.executable, "-m", "contract.children", command.__name__, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": here},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(command: Callable[..., None], *arguments: object, before: tuple[str, ...] = ()) -> str:
    """Run a command to its end, and return what it printed. It must succeed, and in time."""
    with child(command, *arguments, before=before) as process:
        printed, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, printed
        return printed.strip()


if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
