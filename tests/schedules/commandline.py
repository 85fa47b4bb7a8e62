"""Running many schedules in several processes, from a command line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed

from schedules.running import Found

PORTION = 500


def main(name: str, first_violation: Callable[[Iterable[int]], Found]) -> int:
    """Run the schedules of consecutive seeds; print the history of the first that breaks a promise."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=main.__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    began, done = time.monotonic(), 0
    with ProcessPoolExecutor(asked.processes) as pool:
        until = asked.seed + asked.schedules
        portions = [range(at, min(at + PORTION, until)) for at in range(asked.seed, until, PORTION)]
        for running in as_completed(pool.submit(first_violation, portion) for portion in portions):
            violation, run = running.result()
            if violation is not None:
                print(violation)
                pool.shutdown(cancel_futures=True)
                return 1
            done += run
            _tell(done, asked.schedules, began)
    print(f"\n{done:,} schedules from seed {asked.seed}, no promise broken")
    return 0


def _tell(done: int, asked: int, began: float) -> None:
    if sys.stderr.isatty() or done == asked:
        a_second = done / (time.monotonic() - began)
        print(f"\r{done:,} of {asked:,} schedules, {a_second:,.0f} a second ", end="", file=sys.stderr, flush=True)
