"""Kill a loaded task store at random moments, open its journal again, and look for what it had acknowledged.

python tests/bench/taskcrash.py --rounds 100 --journal disk:/tmp/somewhere
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

from slotkeeper.taskstore import Add, Change, TaskStore

PARTS, CLIENTS = 3, 4
READY = b"ready\n"


@dataclass
class Ledger:
    """What the store has acknowledged: updates by name, and those of them whose tasks were deleted or changed again."""

    added: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    ids: dict[int, str] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Take an acknowledgement in. Raises AssertionError for an id that was given out before."""
        what, name, ids = line.split(" ")
        {"added": self.added, "deleted": self.deleted, "changed": self.changed}[what].add(name)
        for task_id in map(int, filter(None, ids.split(","))):
            assert task_id not in self.ids, f"id {task_id} was given to {self.ids[task_id]} and to {name}"
            self.ids[task_id] = name


def work(journal: str, round_: int, out: int) -> None:
    """Load a store, and tell each acknowledgement in one write."""
    store = TaskStore(journal).open()
    os.write(out, READY)
    threads = [threading.Thread(target=client, args=(store, f"{round_}.{n}", out)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def client(store: TaskStore, name: str, out: int) -> None:
    """Add tasks, PARTS at a time; delete some of them together, change others."""
    for turn in range(1_000_000):
        each = f"{name}.{turn}"
        tasks = store.update(name, adds=[Add(each, f"{each} {part}".encode()) for part in range(PARTS)])
        tell(out, "added", each, [task.id for task in tasks])
        if turn % 3 == 0:
            store.update(name, deletes=[task.id for task in tasks])
            tell(out, "deleted", each, [])
        elif turn % 3 == 1:
            tasks = store.update(name, changes=[Change(task.id, data=task.data + b"!") for task in tasks])
            tell(out, "changed", each, [task.id for task in tasks])


def tell(out: int, what: str, name: str, ids: list[int]) -> None:
    """Write one line; a pipe takes it whole or not at all."""
    os.write(out, f"{what} {name} {','.join(map(str, ids))}\n".encode())


@contextmanager
def child(journal: str, round_: int) -> Iterator[tuple[int, int]]:
    """Fork a worker. This process has no threads and no open journal, so nothing is carried over."""
    source, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(source)
            work(journal, round_, out)
        finally:
            os._exit(1)
    os.close(out)
    try:
        yield pid, source
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(source)


def crash(journal: str, round_: int, ledger: Ledger, after_s: float) -> None:
    """Let a worker work for a while, kill it, and note what it was told before."""
    with child(journal, round_) as (pid, source):
        heard, deadline = b"", time.monotonic() + 60
        while READY not in heard:
            assert time.monotonic() < deadline, "the worker never came up"
            got = os.read(source, 65536)
            assert got, "the worker died by itself"
            heard += got
        until = time.monotonic() + after_s
        while (left := until - time.monotonic()) > 0:
            if select.select([source], [], [], left)[0]:
                got = os.read(source, 65536)
                assert got, "the worker died by itself"
                heard += got
        os.kill(pid, signal.SIGKILL)
        while got := os.read(source, 65536):
            heard += got
    lines = heard.decode().split("\n")[:-1]  # the last one may be cut off
    for line in lines:
        if line != READY.decode().strip():
            ledger.note(line)


def check(journal: str, ledger: Ledger) -> tuple[int, list[str]]:
    """Compare a journal with what it had acknowledged; return how many tasks it has, and what opening it told."""
    with TaskStore(journal) as store:
        shown, told = store.every_task(), list(store.told)
    there: dict[str, list[bytes]] = {}
    for task in shown:
        there.setdefault(task.group, []).append(task.data)
        assert ledger.ids.get(task.id, task.group) == task.group, f"{task} has an id that was {ledger.ids[task.id]}'s"
    for name in ledger.added - ledger.deleted:
        if name not in there:  # a deletion may have been in without being told of
            assert int(name.split(".")[2]) % 3 == 0, f"{name} was acknowledged, and is gone"
            ledger.deleted.add(name)
    for name in ledger.deleted:
        assert name not in there, f"{name} was deleted, and is there again"
    for name, parts in there.items():
        assert len(parts) == PARTS, f"half of {name} is there"
        assert len({part.endswith(b"!") for part in parts}) == 1, f"half of {name} was changed"
        assert name not in ledger.changed or parts[0].endswith(b"!"), f"{name} was changed, and is as before"
    return len(shown), told


def rounds(journal: str, number: int, longest_s: float, seed: int) -> Ledger:
    """Crash again and again, and check after each crash, in a process of its own."""
    lots, ledger = random.Random(seed), Ledger()
    for round_ in range(number):
        crash(journal, round_, ledger, lots.uniform(0.0, longest_s))
        outcome = checked_apart(journal, ledger)
        print(f"round {round_}: {len(ledger.added)} updates acknowledged; {outcome}", flush=True)
    return ledger


def checked_apart(journal: str, ledger: Ledger) -> str:
    """Check in a child: the driver's threads, or an open journal, must not be there when the next worker is forked."""
    source, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            tasks, told = check(journal, ledger)
            os.write(out, f"{tasks} tasks there{''.join(f'; {each}' for each in told)}".encode()[:4096])
            status = 0
        except BaseException as error:
            os.write(out, f"{type(error).__name__}: {error}".encode()[:4096])
        finally:
            os._exit(status)
    os.close(out)
    with os.fdopen(source, "rb") as heard:
        said = heard.read().decode()
    _, status = os.waitpid(pid, 0)
    if status:
        raise AssertionError(said)
    return said


def main() -> int:
    """Run the rounds, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--journal", help="disk:DIR or a database's URL; a folder that goes away, by default")
    parser.add_argument("--longest", type=float, default=0.3, help="seconds of load before the kill, at most")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    with TemporaryDirectory() as folder:
        ledger = rounds(asked.journal or f"disk:{folder}/journal", asked.rounds, asked.longest, asked.seed)
    print(
        f"{asked.rounds} crashes, {len(ledger.added)} acknowledged updates of {PARTS} tasks: none lost, none half there;"
        f" {len(ledger.ids)} ids, none twice"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
