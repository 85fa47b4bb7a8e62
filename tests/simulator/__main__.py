"""Run many schedules: `python -m simulator --schedules 1000000 --seed 0 --processes 2` (from tests/)."""

from __future__ import annotations

import sys

from schedules.commandline import main

from simulator.running import first_violation

if __name__ == "__main__":
    sys.exit(main("simulator", first_violation))
