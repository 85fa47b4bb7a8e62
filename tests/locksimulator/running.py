"""Running the schedules of lock clusters, sound or with a fault planted."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from schedules import running
from schedules.running import Found

from locksimulator.faults import Fault
from locksimulator.world import World

SOUND = Fault("none")


def first_violation(seeds: Iterable[int], fault: Fault = SOUND) -> Found:
    """Run schedules until one breaks a promise."""
    logging.disable()  # the nodes tell of all that goes wrong
    try:
        with fault.planted():
            return running.first_violation(seeds, lambda random, recorded: World(random, recorded=recorded))
    finally:
        logging.disable(logging.NOTSET)
