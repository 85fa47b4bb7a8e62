"""One of several processes that set up a schema at once: URL, lease in seconds, and a step after which to stand still.

It says on standard output, a JSON object a line, when it is ready, when it stands still and when it is done.
It starts when its standard input ends, and ends by itself when nobody does it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from slotkeeper import schema
from slotkeeper.database import open_store

LIFETIME_S = 100


def say(event: str, **told: object) -> None:
    """Write one line, whole: the processes share the pipe."""
    os.write(1, (json.dumps({"pid": os.getpid(), "event": event, **told}) + "\n").encode())


def main(url: str, lease_s: str, last_step: str = "") -> None:
    """Set up once the others are ready too."""
    signal.alarm(LIFETIME_S)

    def progress(step: str) -> None:
        if step == last_step:
            say("still")
            threading.Event().wait(LIFETIME_S)

    store = open_store(url)
    say("ready")
    sys.stdin.read()
    report = schema.setup(store, terms=schema.Terms(progress=progress, lease_s=int(lease_s), wait_s=60))
    say("done", after=str(report.after), ran=len(report.statements))
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
