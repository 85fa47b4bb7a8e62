"""What is measured of locks. The floor of the service is what the same server does with empty requests, over the same
connections and in the same seconds: a pair is two requests, so the floor in pairs is half of these.
"""

from __future__ import annotations

from functools import partial

from . import lockpairs, lockservice
from .figures import Group, Line, Load, Measure, Reading, Target
from .floors import floor

RATE, MS = "cycles/s", "ms"
CONNECTIONS, WAITERS, NAMES = (1, 8), 64, 10_000
THROUGH_THE_SPEAKER = Target(at_least=0.6)


def groups() -> list[Group]:
    """Return all of it, for a Cassandra: what is in memory does without."""
    return [_in_memory(), _through_nodes(), _hot(), _held(), _direct()]


def _in_memory() -> Group:
    loads: dict[str, Load] = {
        "locks in memory, 1 thread": partial(lockpairs.in_memory, threads=1),
        "locks in memory, 8 threads": partial(lockpairs.in_memory, threads=8),
        "locks in memory, 1 task": lockpairs.in_a_loop,
    }
    return tuple(Measure(name, load, _pairs(name)) for name, load in loads.items())


def _through_nodes() -> Group:
    group = []
    for clients in CONNECTIONS:
        over = "1 connection" if clients == 1 else f"{clients} connections"
        speaker, other = f"locks through the speaker, {over}", f"locks through another node, {over}"
        group.append(
            Measure(speaker, partial(lockservice.pairs, clients=clients), _served(speaker, THROUGH_THE_SPEAKER))
        )
        group.append(Measure(other, partial(lockservice.pairs, clients=clients, nodes=3), _served(other)))
    return tuple(group)


def _hot() -> Group:
    name, woken = f"hand-off of a lock, {WAITERS} wait", f"in memory, {WAITERS} wait"
    over_http = (
        Line(f"{name}, p50", "p50", MS, (name, "empty request, p50"), Target(at_most=5, of_value=True)),
        Line(f"{name}, p99", "p99", MS, (name, "empty request, p99")),
    )
    in_memory = (
        Line(f"hand-off of a lock {woken}, p50", "p50", MS),
        Line(f"woken by a release {woken}", "woken", "tasks", None, Target(at_most=1, of_value=True)),
    )
    return (
        Measure(name, partial(lockservice.hot, waiters=WAITERS), over_http),
        Measure(f"hand-off of a lock {woken}", partial(lockpairs.woken, waiters=WAITERS), in_memory),
    )


def _held() -> Group:
    name = f"{NAMES:,} locks held"
    lines = (
        Line(f"{name}: taken, 8 connections", "a second", "locks/s"),
        Line(f"{name}: memory of the node", "KiB", "KiB"),
        Line(f"{name}: pairs beside them", "cycles", RATE, (name, "pairs before")),
    )
    return (Measure(name, partial(lockservice.held, names=NAMES), lines, once=True),)


def _direct() -> Group:
    lone, many, beside = (
        "locks straight in the database, 1 thread",
        "locks straight in the database, 8 threads",
        "floor, 1 thread",
    )
    return (
        Measure(beside, partial(floor, threads=1), ()),
        Measure(lone, partial(lockpairs.direct, threads=1), _pairs(lone, beside)),
        Measure(many, partial(lockpairs.direct, threads=8), _pairs(many)),
    )


def _pairs(name: str, beside: str | None = None) -> tuple[Line, ...]:
    def line(title: str, reading: str, unit: str) -> Line:
        return Line(title, reading, unit, None if beside is None else (beside, reading))

    acquire = f"{name}: acquire"
    return (line(name, "cycles", RATE), line(f"{acquire}, p50", "p50", MS), line(f"{acquire}, p99", "p99", MS))


def _served(name: str, target: Target | None = None) -> tuple[Line, ...]:
    def beside(reading: str) -> Reading:
        return name, f"empty request, {reading}"

    acquire = f"{name}: acquire"
    return (
        Line(name, "cycles", RATE, (name, lockservice.EMPTY_PAIRS), target),
        Line(f"{acquire}, p50", "p50", MS, beside("p50")),
        Line(f"{acquire}, p99", "p99", MS, beside("p99")),
        Line(f"{name}: the node's work for a pair", "pair, us", "us", (name, "two empty requests, us")),
    )
