"""`slotkeeper lock serve` as processes of their own, to be killed, stopped and started again; clients that keep records."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from eventually import until

from slotkeeper.locktable import LockError
from slotkeeper.locktable.remote import LockClient
from slotkeeper.web.serving import bound

OURS = ("SLOTKEEPER_", "CASSANDRA_", "CQLSH_")
BOUND_S = 90.0


class NodeProcess:
    """A lock node. It keeps its address when it is started again."""

    def __init__(self, name: str, cluster: str, database: str, *, election_lease_s: int, log: Path) -> None:
        self.name, self._cluster, self._database = name, cluster, database
        self._lease_s, self._log = election_lease_s, log
        with bound("127.0.0.1", 0) as sock:
            self.port: int = sock.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it listens a moment later."""
        options = ("--node", self.name, "--cluster", self._cluster, "--listen", f"127.0.0.1:{self.port}")
        lease = ("--election-lease", str(self._lease_s))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "slotkeeper",
                    "lock",
                    "serve",
                    *options,
                    *lease,
                    "--database",
                    self._database,
                    "-v",
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment,
            )

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._popen is not None
        self._popen.send_signal(number)

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait(BOUND_S)
            self._popen = None

    def wait(self) -> None:
        """Wait until it has ended by itself."""
        assert self._popen is not None
        self._popen.wait(BOUND_S)
        self._popen = None

    def status(self) -> dict[str, Any]:
        """Return how it sees the cluster; nothing where it does not answer."""
        try:
            found: dict[str, Any] = httpx2.get(f"{self.url}/api/status", timeout=2, trust_env=False).json()
        except (httpx2.HTTPError, json.JSONDecodeError):
            return {}
        return found

    @property
    def speaks(self) -> bool:
        """Whether it grants locks."""
        return bool(self.status().get("rebuilt"))


@contextmanager
def node_processes(
    database: str, folder: Path, *, count: int = 3, election_lease_s: int = 4
) -> Iterator[list[NodeProcess]]:
    """Run a cluster of node processes; one of them speaks."""
    cluster = uuid4().hex  # nothing that an earlier one left in the database holds it up
    nodes = [
        NodeProcess(f"n{at + 1}", cluster, database, election_lease_s=election_lease_s, log=folder / f"n{at + 1}.log")
        for at in range(count)
    ]
    try:
        for node in nodes:
            node.start()
        until(lambda: any(node.speaks for node in nodes), bound_s=BOUND_S)
        until(lambda: all(node.status().get("speaker") for node in nodes), bound_s=BOUND_S)
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def speaker_of(nodes: Sequence[NodeProcess]) -> NodeProcess:
    """Return the node that speaks."""
    until(lambda: any(node.speaks for node in nodes), bound_s=BOUND_S)
    return next(node for node in nodes if node.speaks)


@dataclass(frozen=True)
class Stay:
    """A time that a client held a lock, by its own count: from after it was told until it let go, or trusted it no more."""

    name: str
    fence: int
    began: float
    ended: float


class Load:
    """Clients that take locks and give them back, in threads, until they are told to stop. `stays` is their record."""

    def __init__(self, urls: Sequence[str], names: Sequence[str], *, threads: int = 6, lease_s: float = 2.0) -> None:
        self.stays: list[Stay] = []
        self.errors: list[LockError] = []
        self._urls, self._names, self._lease_s = list(urls), names, lease_s
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(at,)) for at in range(threads)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def granted_since(self, moment: float) -> list[Stay]:
        """Return the stays that began after a moment."""
        return [stay for stay in list(self.stays) if stay.began > moment]

    def check(self) -> None:
        """No lock was held twice, and whoever came later had the greater fence."""
        for name in self._names:
            stays = sorted((stay for stay in self.stays if stay.name == name), key=lambda stay: stay.began)
            for before, after in pairwise(stays):
                assert before.ended <= after.began, f"held twice: {before} and {after}"
                assert before.fence < after.fence, f"a fence went back: {before} and {after}"

    def _work(self, at: int) -> None:
        urls = self._urls[at % len(self._urls) :] + self._urls[: at % len(self._urls)]
        with LockClient(urls, timeout_s=5) as client:
            while not self._stop.is_set():
                try:
                    self._stay(client, self._names[at % len(self._names)])
                except LockError as error:
                    self.errors.append(error)
                    self._stop.wait(0.1)

    def _stay(self, client: LockClient, name: str) -> None:
        lock = client.acquire(name, lease_s=self._lease_s, wait_s=5)
        began = time.monotonic()
        self._stop.wait(0.02)
        ended = min(time.monotonic(), lock.until)
        if began < lock.until:  # else it came too late to be of use
            self.stays.append(Stay(name, lock.fence, began, ended))
        client.release(lock)


@contextmanager
def stopped(node: NodeProcess) -> Iterator[None]:
    """Stop a process for a while; it knows nothing of that."""
    node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        node.signal(signal.SIGCONT)
