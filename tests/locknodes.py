"""Lock nodes with their services, in threads of the test's process: real sockets, a real store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from eventually import until

from slotkeeper import schema
from slotkeeper.database import open_store
from slotkeeper.locktable.node.terms import Terms
from slotkeeper.locktable.remote import LockClient
from slotkeeper.locktable.service.running import LockServer, NodeSettings, serve
from slotkeeper.web.serving import bound

QUICK = Terms(speaker_lease_s=3, margin_s=0.2, again_s=0.1, stop_s=5.0, member_ttl_s=3)
BOUND_S = 60.0


def new_database(folder: Path) -> str:
    """Make an embedded store with our tables, and return its URL."""
    url = f"sqlite:///{folder}/cluster.db"
    with closing(open_store(url)) as store:
        schema.setup(store)
    return url


class RunningNode:
    """A node and its service, each in a thread with a loop of its own."""

    def __init__(self, database: str, name: str = "n1", cluster: str = "cluster", **settings: Any) -> None:
        self.name = name
        self._database = database
        self._settings = NodeSettings(name, cluster, **{"terms": QUICK, "grace_s": 2, **settings})
        self._announced = threading.Event()
        self._server: LockServer | None = None
        self._failed: BaseException | None = None
        self.url = ""
        self._thread = threading.Thread(target=self._run, name=f"lock-node-{name}", daemon=True)

    def start(self) -> None:
        """Run it; return when it listens."""
        self._thread.start()
        assert self._announced.wait(BOUND_S), self._failed
        assert self._failed is None, self._failed

    def stop(self) -> None:
        """Stop it in order. One that has stopped stays so."""
        if self._server is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # it ends in this moment
                self._server.stop()
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive(), f"{self.name} does not stop"

    @property
    def node(self) -> Any:
        """The node itself, to look at."""
        assert self._server is not None
        return self._server._service.node

    @property
    def is_ready(self) -> bool:
        """Whether it can have locks granted."""
        status = self.node.speaking
        return bool(status.is_trusted and status.table.is_rebuilt) or (
            not status.is_trusted and self.node.known.speaker is not None
        )

    @property
    def speaks(self) -> bool:
        """Whether it grants locks."""
        return bool(self.node.speaking.is_trusted and self.node.speaking.table.is_rebuilt)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failed = error
            raise
        finally:
            self._announced.set()

    async def _serve(self) -> None:
        with closing(open_store(self._database)) as store, closing(bound("127.0.0.1", 0)) as sock:
            await serve(store, sock, self._settings, self._announce)

    def _announce(self, server: LockServer, url: str) -> None:
        self._server, self.url = server, url
        self._announced.set()


@contextmanager
def running_node(database: str, name: str = "n1", **settings: Any) -> Iterator[RunningNode]:
    """Run one node, which is ready."""
    node = RunningNode(database, name, **settings)
    node.start()
    try:
        until(lambda: node.is_ready)
        yield node
    finally:
        node.stop()


@contextmanager
def running_nodes(database: str, count: int = 3, **settings: Any) -> Iterator[list[RunningNode]]:
    """Run several nodes of one cluster; the first one speaks."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(running_node(database, f"n{number + 1}", **settings)) for number in range(count)]
        until(lambda: any(node.speaks for node in nodes))
        nodes.sort(key=lambda node: not node.speaks)  # a node that the machine held up may have lost its seat
        until(lambda: all(len(node.node.members.peers) >= count for node in nodes))
        yield nodes


def client_of(*nodes: RunningNode, **options: Any) -> LockClient:
    """Return a client of some nodes, not open."""
    return LockClient([node.url for node in nodes], **options)
