"""`slotkeeper tasks serve` as a process of its own, which a test may stop or kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BOUND_S = 60.0
OURS = ("SLOTKEEPER_", "CASSANDRA_", "CQLSH_")


class ServingProcess:
    """A service that listens: `url` is where, and `told` all that it said of itself."""

    def __init__(self, popen: subprocess.Popen[str], told: dict[str, Any]) -> None:
        self.popen, self.told, self.url = popen, told, str(told["url"])

    def end(self, number: int) -> int:
        """Send it a signal, and return its exit code."""
        self.popen.send_signal(number)
        return self.popen.wait(BOUND_S)


@contextmanager
def serving(journal: str, *options: str, **variables: str) -> Iterator[ServingProcess]:
    """Start a service, wait until it listens, and see to it that it is gone at the end."""
    command = [sys.executable, "-m", "slotkeeper", "tasks", "serve", "--journal", journal, "--port", "0", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | variables
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, cwd="/", env=environment) as popen:
        try:
            assert popen.stdout is not None
            lines = iter(popen.stdout.readline, "")
            document = "".join(_until_closed(lines))
            assert document, f"the service ended with {popen.wait(BOUND_S)}"
            yield ServingProcess(popen, json.loads(document))
        finally:
            if popen.poll() is None:
                popen.kill()


def _until_closed(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith("}"):
            return
