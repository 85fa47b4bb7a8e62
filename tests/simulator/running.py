"""Running schedules one after the other, until one breaks a promise."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from random import Random

from simulator.faults import Fault
from simulator.invariants import Violation
from simulator.world import World
from slotkeeper.database.simulated import SimulatedStore

SOUND = Fault("none")


def schedule(seed: int, store: type[SimulatedStore] = SimulatedStore) -> None:
    """Run the schedule of a seed. Raises Violation, with the history, when a promise is broken."""
    world = World(Random(seed), store)
    try:
        world.run()
    except Exception as broken:
        world = World(Random(seed), store, recorded=True)
        try:
            world.run()
        except Exception as error:
            raise Violation(f"seed {seed}: {type(error).__name__}: {error}\n{world.history}") from error
        raise Violation(f"seed {seed} broke a promise once, and not again: {broken!r}") from broken
    world.forget()


def first_violation(seeds: Iterable[int], fault: Fault = SOUND) -> tuple[str | None, int]:
    """Run schedules until one breaks a promise. Return what it showed (None: nothing), and how many were run."""
    run = 0
    gc.disable()  # a schedule is small; its remains are collected between two
    gc.freeze()  # and nothing that was there before
    try:
        with fault.planted():
            for run, seed in enumerate(seeds, start=1):
                try:
                    schedule(seed, fault.store)
                except Violation as violation:
                    return str(violation), run
                if not run % 100:
                    gc.collect()
    finally:
        gc.unfreeze()
        gc.enable()
    return None, run
