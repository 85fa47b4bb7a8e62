"""A node of our own: one Java process on a loopback address, gone with the process that started it."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Self

from .jars import jars
from .java import find_java
from .leash import Leash
from .places import cache_folder, can_bind, free_address, free_port
from .server import CQL_PORT, NotReady, Server

GOSSIP_PORT = 7000
HOMES_KEPT = 8
MAIN_CLASS = "org.apache.cassandra.service.CassandraDaemon"
TEMPLATES = Path(__file__).parent / "node"


class LocalNode:
    """A Cassandra node from Maven artifacts: `with LocalNode() as node: ... node.server.url("ks")`.

    Its address and ports are free ones unless named. Several nodes make a ring when each names the first as a seed
    and all share ports: start them in turn. Its home (configuration, data, log) lies in the cache folder; the log
    outlives it, the data do not.
    """

    def __init__(
        self,
        address: str | None = None,
        port: int | None = None,
        *,
        seeds: tuple[str, ...] = (),
        heap_mb: int = 512,
    ) -> None:
        address = address or free_address()
        self.server = Server(address, port or free_port(address, CQL_PORT), kind="local")
        self.home = Path()
        self._gossip_port = free_port(address, GOSSIP_PORT)
        self._seeds = seeds or (address,)
        self._heap_mb = heap_mb
        self._java: subprocess.Popen[bytes] | None = None
        self._leash: Leash | None = None

    @property
    def log(self) -> Path:
        """The file that everything the node says goes to."""
        return self.home / "node.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, timeout_s: float = 120) -> None:
        """Start the node and return once it has applied a lightweight transaction."""
        if not can_bind(self.server.host, self.server.port):
            raise NotReady(f"{self.server.host}:{self.server.port} is taken")  # Cassandra would find out in six seconds
        java, classpath = find_java(), jars()
        self.home = new_home()
        self._configure(classpath)
        try:
            self._launch([str(java), f"@{self.home}/jvm.options", MAIN_CLASS])
            self._wait(time.monotonic() + timeout_s)
        except BaseException:  # also a Ctrl-C: a node that nobody waits for any more must not stay
            self.stop()
            raise

    def stop(self) -> None:
        """Kill the node, and drop its data: nobody reads them again, so there is nothing to flush first."""
        atexit.unregister(self.stop)
        if self._leash:
            self._leash.let_go()
        if self._java:
            self._java.wait(timeout=60)
        self._java = self._leash = None
        if self.home != Path():
            drop_data(self.home)

    def _configure(self, classpath: Path) -> None:
        (agent,) = classpath.glob("jamm-*.jar")
        values = {
            "home": self.home,
            "data": self.home / "data",
            "tmp": self.home / "tmp",
            "jars": classpath,
            "jamm": agent.name,
            "heap": f"{self._heap_mb}m",
            "cluster_name": "slotkeeper tests",
            "snitch": "SimpleSnitch",
            "num_tokens": 4,
            "address": self.server.host,
            "rpc_address": self.server.host,
            "port": self.server.port,
            "gossip_port": self._gossip_port,
            "seeds": ",".join(f"{seed}:{self._gossip_port}" for seed in self._seeds),
            "paxos_variant": "v2",  # what slotkeeper recommends: one round trip less
        }
        for template in TEMPLATES.iterdir():
            (self.home / template.name).write_text(Template(template.read_text()).substitute(values))

    def _launch(self, command: list[str]) -> None:
        # Java inherits the lock on its home and holds it as long as it lives, whatever becomes of us.
        lock = os.open(self.home / "lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.log.open("wb") as log:
                self._java = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(lock,),
                    cwd=self.home,
                )
        finally:
            os.close(lock)
        self._leash = Leash(["kill", f"-{signal.SIGKILL:d}", "--", f"-{self._java.pid}"])
        atexit.register(self.stop)

    def _wait(self, deadline: float) -> None:
        try:
            while not self._says("Startup complete"):
                self._check_alive(deadline)
                time.sleep(0.05)
            self.server.wait_for_lwt(timeout_s=max(1.0, deadline - time.monotonic()))
        except NotReady as error:
            raise NotReady(f"{error}\n{self.log} ends with:\n{tail(self.log)}") from error

    def _says(self, words: str) -> bool:
        return words.encode() in self.log.read_bytes()

    def _check_alive(self, deadline: float) -> None:
        if self._java and (status := self._java.poll()) is not None:
            raise NotReady(f"the node ended with status {status} before it was ready")
        if time.monotonic() > deadline:
            raise NotReady("the node did not finish its start in time")


def tail(log: Path, lines: int = 60) -> str:
    """Give the last lines of a log, for a message that a person reads."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def new_home() -> Path:
    """Make a home for one node, and tidy up after nodes that could not do it themselves."""
    homes = cache_folder() / "nodes"
    homes.mkdir(parents=True, exist_ok=True)
    for home in sorted(_abandoned(homes), key=lambda home: home.stat().st_mtime, reverse=True)[HOMES_KEPT:]:
        shutil.rmtree(home, ignore_errors=True)
    for home in _abandoned(homes):
        drop_data(home)
    made = Path(tempfile.mkdtemp(dir=homes, prefix=time.strftime("%Y%m%d-%H%M%S-")))
    (made / "tmp").mkdir()
    return made


def drop_data(home: Path) -> None:
    """Remove what a node stored; its log and configuration stay, for whoever asks what went wrong."""
    for folder in ("data", "tmp"):
        shutil.rmtree(home / folder, ignore_errors=True)


def _abandoned(homes: Path) -> Iterator[Path]:
    for home in homes.iterdir():
        try:
            with (home / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its node is alive, or about to be started
            continue
        yield home
