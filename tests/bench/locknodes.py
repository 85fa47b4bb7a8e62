"""Nodes of a lock cluster as real processes: `slotkeeper lock serve`, on a database that is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen
from uuid import uuid4

BOUND_S, LOOK_S = 60.0, 0.05
OURS = ("SLOTKEEPER_", "CASSANDRA_", "CQLSH_")


@dataclass(frozen=True, slots=True)
class ServedNode:
    """A node that listens."""

    name: str
    url: str
    pid: int

    @property
    def kib(self) -> float:
        """The memory that it has now."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], capture_output=True, text=True, check=True)
        return float(shown.stdout)

    @property
    def busy_s(self) -> float:
        """How long it has kept a processor busy so far; not a number where the system does not tell."""
        try:
            shown = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return nan
        user, system = shown.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def told(self, path: str) -> Any:
        """Return what it answers to a GET; None where it cannot answer yet."""
        with suppress(HTTPError), urlopen(f"{self.url}{path}", timeout=BOUND_S) as response:
            return json.load(response)
        return None

    def speaker(self) -> str | None:
        """Return who speaks, by what it knows, and once it can have locks granted."""
        if self.told("/readyz") is None:
            return None
        speaker = self.told("/api/status")["speaker"]
        return speaker["node"] if speaker else None


@contextmanager
def cluster(url: str, count: int = 1) -> Iterator[list[ServedNode]]:
    """Run so many nodes of a new cluster, the speaker first. They are killed at the end: no later one bears its name."""
    name = f"bench-{uuid4().hex}"
    with ExitStack() as running:
        nodes = [running.enter_context(_served(url, name, f"n{number + 1}")) for number in range(count)]
        speaker = _agreed(nodes)
        yield sorted(nodes, key=lambda node: (node.name != speaker, node.name))


def _agreed(nodes: list[ServedNode]) -> str:
    """Wait until all nodes know one speaker."""
    deadline = time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        speakers = {node.speaker() for node in nodes}
        if len(speakers) == 1 and (speaker := speakers.pop()) is not None:
            return speaker
        time.sleep(LOOK_S)
    raise TimeoutError(f"nobody speaks for the cluster after {BOUND_S:.0f} s")


@contextmanager
def _served(url: str, cluster: str, node: str) -> Iterator[ServedNode]:
    options = ["--database", url, "--cluster", cluster, "--node", node, "--listen", "127.0.0.1:0", "--json"]
    command = [sys.executable, "-m", "slotkeeper", "lock", "serve", *options]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/", env=environment) as popen:
        try:
            assert popen.stdout is not None
            document = "".join(_until_closed(iter(popen.stdout.readline, "")))
            assert document, f"the node ended with {popen.wait(BOUND_S)}"
            yield ServedNode(node, json.loads(document)["url"], popen.pid)
        finally:
            popen.kill()


def _until_closed(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith("}"):
            return
