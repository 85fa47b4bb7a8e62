"""Run many schedules: `python -m locksimulator --schedules 100000 --seed 0 --processes 2` (from tests/)."""

from __future__ import annotations

import sys

from schedules.commandline import main

from locksimulator.running import first_violation

if __name__ == "__main__":
    sys.exit(main("locksimulator", first_violation))
