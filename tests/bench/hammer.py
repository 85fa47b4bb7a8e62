"""Processes that hammer one semaphore, and the proof from the records of all that it never had more holders than slots.

    python tests/bench/hammer.py --seconds 30 --database sqlite:////tmp/slots.db
    python tests/bench/hammer.py --seconds 30 --database cassandra://127.0.0.1:9042/slots?local_dc=datacenter1

Each owner is a thread: it acquires, stays inside for some milliseconds, releases, again and again. It notes when it was inside
on the monotonic clock, which all processes of a host share. Exit code 1: a promise was broken, and it says which.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

from slotkeeper import schema
from slotkeeper.database import open_store
from slotkeeper.owner import Owner
from slotkeeper.semaphore import Client

LONGEST_INSIDE_S, LONGEST_PAUSE_S = 0.01, 0.02
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """What one process does: `owners` threads ask for `name` until `ends_at`. With `wait`, they stand in line for a slot."""

    database: str
    domain: str
    name: str
    process: int
    owners: int
    seconds: float
    wait: bool


@dataclass(frozen=True, slots=True)
class Stay:
    """One hold, from after its acquire was answered until before its release was asked for; seconds, monotonic."""

    owner_id: str
    token: int
    fence: int
    entered: float
    left: float
    released: bool


@dataclass(frozen=True, slots=True)
class Record:
    """What one process went through. `refused` counts the acquires that found no slot."""

    stays: list[Stay]
    refused: int
    errors: list[str]


@dataclass(frozen=True, slots=True)
class Report:
    """What all processes went through, and the promises that were broken."""

    size: int
    stays: int
    refused: int
    most_inside: int
    least_stays: int
    broken: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "; ".join(self.broken) or "every promise kept, nothing left held"
        return (
            f"{self.stays} holds, {self.refused} refused, at most {self.most_inside} of {self.size} inside at once,"
            f" the unluckiest owner {self.least_stays} times: {verdict}"
        )


# The parent


def hammer(
    database: str, *, seconds: float, processes: int = 2, owners: int = 16, size: int = 3, wait: bool = False
) -> Report:
    """Let processes hammer a new semaphore, and check what they went through."""
    store = open_store(database)
    try:
        schema.setup(store)
        with Client(store, domain=uuid4()) as client:
            client.create("hammered", size)
            jobs = [
                Job(database, str(client.domain_id), "hammered", number, owners, seconds, wait)
                for number in range(processes)
            ]
            records = run(jobs)
            left = [f"{held.owner_id} still holds token {held.token}" for held in client.holders("hammered")]
            report = checked(records, size, owners * processes, left)
            client.delete("hammered", force=True)
        return report
    finally:
        store.close()


def run(jobs: Sequence[Job]) -> list[Record]:
    """Start a process a job, let them begin together, and return what they say."""
    with ExitStack() as started:
        children = [started.enter_context(_started(job)) for job in jobs]
        for child in children:
            started.callback(child.kill)
            assert child.stdout is not None
            child.stdout.readline()  # ready
        for child in children:
            assert child.stdin is not None
            child.stdin.close()
        said = [_said(child, job.seconds + PATIENCE_S) for child, job in zip(children, jobs, strict=True)]
    return [Record([Stay(**stay) for stay in each["stays"]], each["refused"], each["errors"]) for each in said]


def _started(job: Job) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__)), "--job", json.dumps(asdict(job))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _said(child: subprocess.Popen[str], timeout_s: float) -> dict[str, Any]:
    assert child.stdout is not None
    watch = threading.Timer(timeout_s, child.kill)
    watch.start()
    try:
        line = child.stdout.readline()
        code = child.wait()
    finally:
        watch.cancel()
    if code or not line:
        raise RuntimeError(f"a process ended with {code} and said {line[:200]!r}")
    said: dict[str, Any] = json.loads(line)
    return said


def checked(records: Iterable[Record], size: int, owners: int, left: Sequence[str] = ()) -> Report:
    """Check what was promised against what all processes noted."""
    records = list(records)
    stays = sorted((stay for record in records for stay in record.stays), key=lambda stay: stay.entered)
    most = most_inside(stays)
    each = {stay.owner_id: 0 for stay in stays}
    for stay in stays:
        each[stay.owner_id] += 1
    broken = [error for record in records for error in record.errors]
    broken += [f"{most} were inside at once"] if most > size else []
    broken += overlaps(stays)
    broken += [f"{stay} was released by somebody else" for stay in stays if not stay.released]
    broken += left
    least = min(each.values(), default=0) if len(each) == owners else 0
    return Report(size, len(stays), sum(record.refused for record in records), most, least, tuple(broken))


def most_inside(stays: Iterable[Stay]) -> int:
    """Return how many were inside at the fullest instant. Who leaves in the instant in which another enters has left."""
    steps = sorted(step for stay in stays for step in ((stay.entered, 1), (stay.left, -1)))
    inside = most = 0
    for _, step in steps:
        inside += step
        most = max(most, inside)
    return most


def overlaps(stays: Sequence[Stay]) -> list[str]:
    """Return where a token had two holders, or a fence that did not grow."""
    found = []
    for token in sorted({stay.token for stay in stays}):
        for earlier, later in pairwise(stay for stay in stays if stay.token == token):
            if later.entered < earlier.left:
                found.append(f"token {token} had two holders: {earlier} and {later}")
            if later.fence <= earlier.fence:
                found.append(f"the fence of token {token} did not grow: {earlier} and {later}")
    return found


# A child


def work(job: Job) -> Record:
    """Hammer with all owners of a process, from when the standard input ends."""
    stays: list[Stay] = []
    refused: list[int] = []
    errors: list[str] = []
    with Client(job.database, domain=job.domain) as client:
        client.describe(job.name)
        print("ready", flush=True)
        sys.stdin.read()
        ends_at = time.monotonic() + job.seconds
        threads = [
            threading.Thread(target=_guarded, args=(client, job, number, ends_at, stays, refused, errors))
            for number in range(job.owners)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return Record(stays, sum(refused), errors)


def _guarded(
    client: Client, job: Job, number: int, ends_at: float, stays: list[Stay], refused: list[int], errors: list[str]
) -> None:
    try:
        refused.append(_hammer(client, job, Owner("hammer", str(job.process), number), ends_at, stays))
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")


def _hammer(client: Client, job: Job, owner: Owner, ends_at: float, stays: list[Stay]) -> int:
    """Hold again and again; return how often there was no slot."""
    chance, pause, refused = random.Random(str(owner)), threading.Event(), 0
    while time.monotonic() < ends_at:
        hold = client.acquire(job.name, owner) if job.wait else client.try_acquire(job.name, owner)
        if hold is None:
            refused += 1
        else:
            entered = time.monotonic()
            pause.wait(chance.random() * LONGEST_INSIDE_S)
            left = time.monotonic()
            released = client.release(job.name, owner, fence=hold.fence)
            stays.append(Stay(str(owner), hold.token, hold.fence, entered, left, released))
        pause.wait(chance.random() * LONGEST_PAUSE_S)
    return refused


def main() -> int:
    """Hammer as the arguments say, or be one of the processes."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--database", metavar="URL", help="a database; it gets the tables where it has none")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--owners", type=int, default=16, help="of each process")
    parser.add_argument("--size", type=int, default=3, help="slots of the semaphore")
    parser.add_argument("--wait", action="store_true", help="stand in line instead of asking again and again")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job is not None:
        print(json.dumps(asdict(work(Job(**json.loads(given.job))))), flush=True)
        return 0
    if given.database is None:
        parser.error("name a database: --database URL")
    terms = {"seconds": given.seconds, "processes": given.processes, "owners": given.owners, "size": given.size}
    report = hammer(given.database, **terms, wait=given.wait)
    print(f"{given.processes} processes of {given.owners} owners for {given.seconds:g} s: {report}")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
