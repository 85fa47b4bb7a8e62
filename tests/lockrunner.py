"""A command run below a lock, in a process that a test may signal and kill: `python -m lockrunner PLAN KILL_AFTER CMD …`.

PLAN is `renewed`, a number of seconds that the lock lasts, or a path: the lock is lost once there is such a file. The command
is anything, or `child`: a process that says which signals it gets, a line each, until SIGTERM has it exit with 7.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slotkeeper.cli.lockrun import run_under
from slotkeeper.cli.terminal import end_by_key

CHILD = (sys.executable, "-S", str(Path(__file__).with_name("lockchild.py")))
LONG_S = 60.0


class PlannedGrant:
    """A lock that lasts as a test says."""

    name, id, fence = "nightly", "6d4f2ab0", (3 << 32) + 1

    def __init__(self, plan: str) -> None:
        self._taken = Path(plan) if "/" in plan else None
        self._ends_at = time.monotonic() + float(plan) if plan.replace(".", "").isdigit() else None

    @property
    def is_lost(self) -> bool:
        """Whether it has ended."""
        return time.monotonic() >= self.trusted_until or (self._taken is not None and self._taken.exists())

    @property
    def trusted_until(self) -> float:
        """The end of the plan, or a minute from now."""
        return self._ends_at if self._ends_at is not None else time.monotonic() + LONG_S


@contextmanager
def runner(plan: str, kill_after_s: float, *command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process that runs a command below a lock; it is gone at the end."""
    line = [sys.executable, "-m", "lockrunner", plan, str(kill_after_s), *command]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(line, text=True, cwd=Path(__file__).parent, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    """Run the command; tell how it ended on stderr."""
    plan, kill_after, *command = sys.argv[1:]
    grant = PlannedGrant(plan)
    try:
        ending = run_under(grant, CHILD if command == ["child"] else command, float(kill_after), os.environ)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    after = {"handlers_back": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, **asdict(ending)}
    print(json.dumps({**after, "left_s": grant.trusted_until - time.monotonic()}), file=sys.stderr, flush=True)
    if ending.key is not None:
        end_by_key(ending.key)


if __name__ == "__main__":
    main()
