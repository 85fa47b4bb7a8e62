"""Lock nodes in a thousand schedules: no promise is broken. `python -m locksimulator` runs as many as one likes, by seed."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

from locksimulator.running import first_violation
from locksimulator.world import World

SCHEDULES, PORTION = 1_000, 50


def test_no_schedule_of_lock_nodes_breaks_a_promise() -> None:
    portions = [range(at, at + PORTION) for at in range(0, SCHEDULES, PORTION)]

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for violation, run in pool.map(first_violation, portions):
            assert violation is None, violation
            assert run == PORTION


def test_seed_replays_its_schedule_of_lock_nodes() -> None:
    told = set()
    for _ in range(2):
        world = World(Random(7), recorded=True)
        world.run()
        told.add(str(world.history))

    assert len(told) == 1
