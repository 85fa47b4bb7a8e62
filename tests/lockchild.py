"""A command for lock runs: it says its pid and its lock, then each signal it gets. SIGTERM ends it with 7, unless `deaf`.

`parent` starts another one in the same group, and ends at once when told to by SIGTERM; the other one is deaf.
"""

from __future__ import annotations

import json
import os
import signal
import sys

HEARD = [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGCONT]


def say(text: str) -> None:
    """Print a line, in one piece: two of us may share the pipe."""
    os.write(1, f"{text}\n".encode())


def main() -> None:
    """Say what is heard."""
    how = sys.argv[1:]
    if "parent" in how and os.fork() == 0:
        how = ["deaf"]
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    lock = {name: value for name, value in os.environ.items() if name.startswith("SLOTKEEPER_LOCK_")}
    say(json.dumps({"pid": os.getpid(), "group": os.getpgrp(), "lock": lock}))
    while True:
        number = signal.sigwait(HEARD)
        say(signal.Signals(number).name)
        if number == signal.SIGTERM and "deaf" not in how:
            sys.exit(7)


if __name__ == "__main__":
    main()
