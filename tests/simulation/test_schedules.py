"""A hundred thousand schedules: no promise is broken. `make simulate` runs a million; a seed replays one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schedules.history import Violation
from simulator.running import first_violation
from simulator.world import World

SCHEDULES, A_TEST, PORTION = 100_000, 10_000, 500


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Two processes."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("first", range(0, SCHEDULES, A_TEST))
def test_no_schedule_breaks_a_promise(pool: ProcessPoolExecutor, first: int) -> None:
    portions = [range(at, at + PORTION) for at in range(first, first + A_TEST, PORTION)]

    for violation, run in pool.map(first_violation, portions):
        assert violation is None, violation
        assert run == PORTION


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_no_schedule_that_hypothesis_draws_breaks_a_promise(random: Random) -> None:
    world = World(random, recorded=True)
    try:
        world.run()
    except Violation as violation:
        violation.add_note(str(world.history))
        raise


def test_seed_replays_its_schedule() -> None:
    told = set()
    for _ in range(2):
        world = World(Random(7), recorded=True)
        world.run()
        told.add(str(world.history))

    assert len(told) == 1
