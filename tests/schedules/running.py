"""Running schedules one after the other, until one breaks a promise."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from random import Random

from schedules.ground import Ground
from schedules.history import Violation

Found = tuple[str | None, int]  # what a schedule showed, if one broke a promise; and how many were run
Make = Callable[[Random, bool], Ground]  # from its random source, and whether it is recorded


def schedule(seed: int, make: Make) -> None:
    """Run the schedule of a seed. Raises Violation, with the history, when a promise is broken."""
    world = make(Random(seed), False)
    try:
        world.run()
    except Exception as broken:
        world = make(Random(seed), True)
        try:
            world.run()
        except Exception as error:
            raise Violation(f"seed {seed}: {type(error).__name__}: {error}\n{world.history}") from error
        raise Violation(f"seed {seed} broke a promise once, and not again: {broken!r}") from broken
    world.forget()


def first_violation(seeds: Iterable[int], make: Make) -> Found:
    """Run schedules until one breaks a promise."""
    run = 0
    gc.disable()  # a schedule is small; its remains are collected between two
    gc.freeze()  # and nothing that was there before
    try:
        for run, seed in enumerate(seeds, start=1):
            try:
                schedule(seed, make)
            except Violation as violation:
                return str(violation), run
            if not run % 100:
                gc.collect()
    finally:
        gc.unfreeze()
        gc.enable()
    return None, run
