"""The gap between a release and the return of the next one's acquire, where two want one slot in turns."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic

from slotkeeper import Client

from .crowd import Readings, Window, in_threads, spread
from .processes import Gate, in_processes
from .semaphores import client_of, fresh, owner

PAIRS = 4  # each on a semaphore of its own: one pair alone makes too few gaps to tell a p99
Range = tuple[float, float]
HELD_S: Range = (0.02, 0.06)  # in a process


@dataclass(frozen=True, slots=True, order=True)
class Stay:
    """One hold of a slot. Fences order the stays of all processes; both moments are on the host's monotonic clock."""

    fence: int
    side: int
    got_at: float
    let_go_at: float


def within(url: str, seconds: float, *, hold_s: Range = HELD_S) -> Readings:
    """Measure the gap between two threads of one client, in ms."""
    with client_of(url) as client, fresh(client, 1) as name:
        window = Window.opening(seconds)
        stays = in_threads(2, lambda side: _stays(client, name, side, window, hold_s))
    return spread(_gaps(itertools.chain(*stays), window))


def between(url: str, seconds: float, *, hold_s: Range = (0.3, 0.8)) -> Readings:
    """Measure the gap between two processes, in ms. A hold is long enough for those who wait to look but seldom."""
    with client_of(url) as client, ExitStack() as made:
        names = [made.enter_context(fresh(client, 1)) for _ in range(PAIRS)]
        sides = in_processes(2, partial(_side, url, names, hold_s), seconds)
    whole = Window(float("-inf"), float("inf"))
    return spread([gap for pair in zip(*sides, strict=True) for gap in _gaps(itertools.chain(*pair), whole)])


def _side(url: str, names: list[str], hold_s: Range, number: int, gate: Gate) -> list[list[Stay]]:
    with client_of(url) as client:
        window = gate()
        return in_threads(len(names), lambda pair: _stays(client, names[pair], number, window, hold_s))


def _stays(client: Client, name: str, side: int, window: Window, hold_s: Range) -> list[Stay]:
    mine, dice, stays = owner(side), random.Random(f"{name}{side}"), []
    while not window.over:
        hold = client.acquire(name, mine)
        got_at = monotonic()
        time.sleep(0 if window.over else dice.uniform(*hold_s))
        stays.append(Stay(hold.fence, side, got_at, monotonic()))
        hold.release()
    return stays


def _gaps(stays: Iterable[Stay], window: Window) -> list[float]:
    ordered = sorted(stays)
    return [
        (after.got_at - before.let_go_at) * 1000
        for before, after in itertools.pairwise(ordered)
        if before.side != after.side and window.begins_at <= before.let_go_at
    ]
