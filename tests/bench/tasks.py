"""What is measured of the task store, beside what, and what is to be reached."""

from __future__ import annotations

from functools import partial

from . import taskloads
from .figures import Group, Line, Measure, Reading, Suite, Target

RAW_1, RAW_8 = "append and sync, 1 thread", "append and sync, 8 threads on one file"
EMPTY = "HTTP: empty requests, 8 threads"
REPLAYED = TASKS = 100_000


def local(url: str, *, long: bool) -> Suite:
    """Return what is measured on this machine alone: in memory, on the disk under a directory, and over HTTP."""
    groups = [_memory(), _disk(), _http(), *([_long()] if long else [])]
    return Suite("Task store", url, tuple(groups))


def on_database(floor: Measure) -> Group:
    """Return what is measured of a journal in a database, beside one transaction an operation."""
    beside: Reading = (floor.name, "transactions")

    def measure(name: str, updates: taskloads.Updates) -> Measure:
        line = Line(name, "rate", "updates/s", beside, Target(at_least=8))
        return Measure(name, partial(taskloads.database_updates, clients=64, updates=updates), (line,))

    threads = measure("tasks: 64 clients", taskloads.in_store_threads)
    return floor, threads, measure("tasks: 64 clients of one loop", taskloads.in_store_tasks)


def _memory() -> Group:
    def measure(name: str, clients: int) -> Measure:
        line = Line(name, "rate", "pairs/s", None, Target(at_least=50_000, of_value=True))
        return Measure(name, partial(taskloads.pairs, clients=clients), (line,))

    return measure("memory: claim and delete, 1 caller", 1), measure("memory: claim and delete, 8 callers", 8)


def _disk() -> Group:
    one, eight = "disk: strict, 1 client", "disk: strict, 8 clients"
    one_here, eight_here = f"{one} of a loop", f"{eight} of a loop"
    of_a_loop = partial(partial, taskloads.disk_updates, updates=taskloads.in_store_tasks)
    lines = (
        Line(eight, "rate", "updates/s", (one, "rate"), Target(at_least=3)),
        Line(f"{eight}, of 8 x the sync", "rate", "updates/s", (RAW_1, "eightfold"), Target(at_least=0.8)),
        Line(f"{eight}, of 8 x 1 sync each", "rate", "updates/s", (RAW_8, "rate"), Target(at_least=0.8)),
    )
    return (
        Measure(RAW_1, partial(taskloads.appends, threads=1), (Line(RAW_1, "rate", "syncs/s"),)),
        Measure(one, partial(taskloads.disk_updates, clients=1), (Line(one, "rate", "updates/s", (RAW_1, "rate")),)),
        Measure(eight, partial(taskloads.disk_updates, clients=8), lines),
        Measure(RAW_8, partial(taskloads.appends, threads=8), (Line(RAW_8, "rate", "syncs/s", (RAW_1, "rate")),)),
        Measure(one_here, of_a_loop(clients=1), (Line(one_here, "rate", "updates/s", (RAW_1, "rate")),)),
        Measure(
            eight_here,
            of_a_loop(clients=8),
            (
                Line(eight_here, "rate", "updates/s", (one_here, "rate"), Target(at_least=3)),
                Line(f"{eight_here}, of 8 x 1 sync each", "rate", "updates/s", (RAW_8, "rate"), Target(at_least=0.8)),
            ),
        ),
    )


def _http() -> Group:
    bare, client = "HTTP: claims, 8 threads", "HTTP: claims through TaskClient, 8 threads"
    empty = partial(taskloads.requests, clients=8, asked=taskloads.NOTHING)
    claims = partial(taskloads.requests, clients=8, asked=taskloads.CLAIM)
    through = partial(taskloads.client_claims, clients=8)
    return (
        Measure(EMPTY, empty, (Line(EMPTY, "rate", "requests/s"),)),
        Measure(bare, claims, (Line(bare, "rate", "claims/s", (EMPTY, "rate")),)),
        Measure(client, through, (Line(client, "rate", "claims/s", (EMPTY, "rate")),)),
    )


def _long() -> Group:
    replay = f"replay of {REPLAYED:,} records"
    target = Target(at_least=200_000, of_value=True)
    return (
        Measure(
            replay, partial(taskloads.replay, records=REPLAYED), (Line(replay, "rate", "records/s", None, target),)
        ),
        Measure(
            "memory of tasks",
            partial(taskloads.memory, tasks=TASKS),
            (Line(f"memory of {TASKS:,} tasks", "KiB", "KiB"),),
            once=True,
        ),
    )
