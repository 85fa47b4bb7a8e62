"""Running the schedules of semaphores, sound or with a fault planted."""

from __future__ import annotations

from collections.abc import Iterable

from schedules import running
from schedules.running import Found

from simulator.faults import Fault
from simulator.world import World

SOUND = Fault("none")


def first_violation(seeds: Iterable[int], fault: Fault = SOUND) -> Found:
    """Run schedules until one breaks a promise."""
    with fault.planted():
        return running.first_violation(seeds, lambda random, recorded: World(random, fault.store, recorded=recorded))
