"""What is measured, beside what, and what is to be reached."""

from __future__ import annotations

from functools import partial

from . import growth, handoff, loads, locksuite, tasks
from .crowd import Readings
from .figures import Group, Line, Load, Measure, Reading, Suite, Target
from .floors import floor
from .loads import Crowd

RATE, MS = "cycles/s", "ms"
FLOOR_1, FLOOR_64 = "floor, 1 thread", "floor, 64 threads"
PAUSING = "floor, 1 thread with a hold's pauses"
ONE, MANY = (FLOOR_1, "cycles"), (FLOOR_64, "cycles")
TOKEN_COUNTS, LINES = (100, 250), (50, 500)
MANY_CYCLES = 100_000


def cassandra(url: str, *, long: bool, growing: bool = True) -> Suite:
    """Return all that is measured on a Cassandra."""
    groups: list[Group] = [_lone(), _together(), _waiting(), _beside_64_threads(), _long_lines(), _between()]
    groups += [_tokens(), _lines()] if growing else []
    groups += [tasks.on_database(_floor(64))]
    groups += locksuite.groups()
    groups += [_long()] if long else []
    return Suite("Cassandra", url, tuple(groups))


def sqlite(url: str) -> Suite:
    """Return what is measured on the embedded store."""
    crowd = Crowd(64)
    lone = (
        _floor(1),
        _cycles("1 thread", _threads(Crowd(1)), ONE),
        _spread("acquire, uncontended", loads.latency, FLOOR_1),
    )
    together = (
        _floor(64),
        _cycles("64 threads", _threads(crowd), MANY, Target(at_least=5)),
        _cycles("64 tasks", partial(loads.tasks, crowd=crowd), MANY),
    )
    return Suite("SQLite", url, (lone, together))


def _lone() -> Group:
    pausing = Measure(
        PAUSING,
        partial(floor, threads=1, pause_s=handoff.HELD_S),
        (Line(f"{PAUSING}: a transaction, p50", "p50", MS),),
    )
    within = Measure(
        "hand-off in a process",
        handoff.within,
        (
            Line("hand-off in a process, p50", "p50", MS, (PAUSING, "p50"), Target(at_most=2)),
            Line("hand-off in a process, p99", "p99", MS, (PAUSING, "p99")),
        ),
    )
    return (
        _floor(1),
        _cycles("1 thread", _threads(Crowd(1)), ONE, Target(at_least=0.85)),
        _cycles("1 task", partial(loads.tasks, crowd=Crowd(1)), ONE),
        _spread("acquire, uncontended", loads.latency, FLOOR_1),
        pausing,
        within,
    )


def _together() -> Group:
    target = Target(at_least=5, aim=8)
    return (
        _cycles("8 threads", _threads(Crowd(8)), MANY),
        _floor(64),
        _cycles("64 threads", _threads(Crowd(64)), MANY, target),
        _cycles("64 tasks", partial(loads.tasks, crowd=Crowd(64)), MANY, target),
    )


def _waiting() -> Group:
    apart = partial(loads.processes, count=4, crowd=Crowd(4, tokens=4, waits=True))
    here, target = Crowd(16, tokens=4, waits=True), Target(at_least=1.5, aim=2.5)
    tasks = partial(loads.tasks, crowd=Crowd(512, tokens=250, waits=True))
    return (
        _cycles("512 tasks on 250 tokens", tasks, MANY),
        _floor(64),
        _cycles("16 threads waiting on 4 tokens", _threads(here), MANY, target),
        _cycles("16 tasks waiting on 4 tokens", partial(loads.tasks, crowd=here), MANY, target),
        _cycles("4 processes x 4 waiting on 4 tokens", apart, MANY),
    )


def _beside_64_threads() -> Group:
    beside: Reading = ("64 threads", "cycles")
    apart = partial(loads.processes, count=8, crowd=Crowd(8))
    return (
        _cycles("64 threads with leases", _threads(Crowd(64, lease_s=30)), beside),
        Measure("64 threads", _threads(Crowd(64)), ()),
        _cycles("8 processes x 8", apart, beside, Target(at_least=0.7)),
        _cycles("64 threads on 10 buckets", _threads(Crowd(64, tokens=1000, bucket_size=100)), beside),
    )


def _long_lines() -> Group:
    """Hold a slot for 50 ms, as many clients on few slots do; what an admission costs must not grow with the line."""

    def load(clients: int) -> Load:
        return _threads(Crowd(clients, tokens=10, waits=True, hold_s=0.05))

    few, many = "20 clients on 10 tokens, 50 ms each", "200 clients on 10 tokens, 50 ms each"
    return (_cycles(few, load(20)), _cycles(many, load(200), (few, "cycles"), Target(at_least=0.9)))


def _between() -> Group:
    lines = (
        Line("hand-off between processes, p50", "p50", MS, None, Target(at_most=250, of_value=True)),
        Line("hand-off between processes, p99", "p99", MS),
    )
    return (Measure("hand-off between processes", _longer(handoff.between, 3), lines),)


def _tokens() -> Group:
    """Grow a bucket: for a client that knows it, and for one that must read it first."""
    known, first = "acquire, bucket of 10 tokens", "first acquire, 10 tokens"
    group = [
        _spread(known, partial(loads.latency, tokens=10)),
        _spread(first, partial(growth.first_acquire, tokens=10)),
    ]
    for tokens in TOKEN_COUNTS:
        knows = partial(loads.latency, tokens=tokens)
        reads = partial(growth.first_acquire, tokens=tokens)
        group.append(_spread(f"acquire, bucket of {tokens} tokens", knows, known))
        group.append(_spread(f"first acquire, {tokens} tokens", reads, first))
    return tuple(group)


def _lines() -> Group:
    none = "release, nobody waits"
    group = [_spread(none, partial(growth.release_before, waiters=0))]
    for waiters in LINES:
        load = partial(growth.release_before, waiters=waiters)
        group.append(_spread(f"release, {waiters} wait", load, none))
    return tuple(group)


def _long() -> Group:
    name = f"{MANY_CYCLES:,} cycles"
    past = Measure(
        name,
        partial(growth.after_many, cycles=MANY_CYCLES),
        (
            Line(f"acquire after {name}, p99", "p99 after", MS, (name, "p99 before"), Target(at_most=2)),
            Line(f"first acquire after {name}, p50", "first after", MS, (name, "first before"), Target(at_most=2)),
            Line(f"{name} of as many owners", "cycles", RATE),
        ),
        once=True,
    )
    held = Measure("memory", growth.memory, (Line("memory of 1,000 held leases", "KiB", "KiB"),), once=True)
    return past, held


def _floor(threads: int) -> Measure:
    name = FLOOR_1 if threads == 1 else FLOOR_64
    lines = (
        Line(name, "cycles", RATE),
        Line(f"{name}: a transaction, p50", "p50", MS),
        Line(f"{name}: outcome not known", "lost", "transactions"),
    )
    return Measure(name, partial(floor, threads=threads), lines[:2] if threads == 1 else lines)


def _threads(crowd: Crowd) -> Load:
    return partial(loads.threads, crowd=crowd)


def _cycles(name: str, load: Load, beside: Reading | None = None, target: Target | None = None) -> Measure:
    return Measure(name, load, (Line(name, "cycles", RATE, beside, target),))


def _spread(name: str, load: Load, beside: str | None = None) -> Measure:
    def line(percent: str) -> Line:
        return Line(f"{name}, {percent}", percent, MS, None if beside is None else (beside, percent))

    return Measure(name, load, (line("p50"), line("p99")))


def _longer(load: Load, times: float) -> Load:
    def longer(url: str, seconds: float) -> Readings:
        return load(url, seconds * times)

    return longer
