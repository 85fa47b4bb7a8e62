"""Where locks can be had: a table in memory, lock nodes behind HTTP, the database itself. The same names everywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lockcontract.loops import on_a_loop
from locknodes import client_of, new_database, running_node, running_nodes

from slotkeeper import schema
from slotkeeper.database import open_store
from slotkeeper.locktable import DEFAULT_LEASE_S, Lock, Locker, LockHold, Request, Table
from slotkeeper.locktable.direct import AsyncDirectLocks, DirectLocks
from slotkeeper.locktable.keeper import LockKeeper
from slotkeeper.locktable.remote import AsyncLockClient


@dataclass(frozen=True)
class LockRoom:
    """Two clients of the same locks. `short_s` is a short lease there, `slack_s` how exactly a lease's end is known."""

    ann: Locker
    bob: Locker
    short_s: float = 1.2
    slack_s: float = 0.3


class TableClient:
    """A client of a table of this process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._keeper = LockKeeper(self._renewing)

    def acquire(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> Lock:
        return self._table.acquire(Request(name, "n1", holder, lease_s, wait_s, request or "")).lock

    def renew(self, lock: Lock, lease_s: float = DEFAULT_LEASE_S) -> Lock:
        return self._table.renew(lock.name, lock.id, lease_s).lock

    def release(self, lock: Lock | str, lock_id: str = "") -> bool:
        named = (lock.name, lock.id) if isinstance(lock, Lock) else (lock, lock_id)
        return self._table.release(*named) is not None

    def release_request(self, name: str, request: str) -> bool:
        return self._table.release(name, request=request) is not None

    def locks(self) -> list[Lock]:
        return self._table.locks()

    def hold(
        self,
        name: str,
        *,
        holder: str = "",
        lease_s: float = DEFAULT_LEASE_S,
        wait_s: float = 0.0,
        request: str | None = None,
    ) -> LockHold:
        lock = self.acquire(name, holder=holder, lease_s=lease_s, wait_s=wait_s, request=request)
        return LockHold(self, self._keeper, lock, lease_s)

    def close(self) -> None:
        self._keeper.close()

    @asynccontextmanager
    async def _renewing(self) -> AsyncIterator[_Renewer]:
        yield _Renewer(self)


class _Renewer:
    def __init__(self, client: TableClient) -> None:
        self._client = client

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float) -> Lock:
        return self._client.renew(lock, lease_s)


@contextmanager
def table_room(_: str) -> Iterator[LockRoom]:
    """A table in memory."""
    table = Table()
    table.rebuild(table.generation, [])
    with closing(TableClient(table)) as ann, closing(TableClient(table)) as bob:
        yield LockRoom(ann, bob)


@contextmanager
def one_node_room(database: str) -> Iterator[LockRoom]:
    """A node that is a cluster of its own."""
    with running_node(database, cluster="one") as node, client_of(node) as ann, client_of(node) as bob:
        yield LockRoom(ann, bob)


@contextmanager
def three_nodes_room(database: str) -> Iterator[LockRoom]:
    """Three nodes, asked through the two that do not speak."""
    with running_nodes(database, cluster="three") as nodes, client_of(nodes[1]) as ann, client_of(nodes[2]) as bob:
        yield LockRoom(ann, bob)


@contextmanager
def direct_room(database: str) -> Iterator[LockRoom]:
    """No service at all."""
    with ExitStack() as stack:
        ann, bob = (stack.enter_context(DirectLocks(database, node="n1")) for _ in range(2))
        yield LockRoom(ann, bob, short_s=2.0, slack_s=1.5)


@contextmanager
def loop_of_three_nodes_room(database: str) -> Iterator[LockRoom]:
    """Three nodes, asked through the two that do not speak, by asyncio's face."""
    with (
        running_nodes(database, cluster="three for a loop") as nodes,
        on_a_loop(*(AsyncLockClient(node.url) for node in nodes[1:])) as (ann, bob),
    ):
        yield LockRoom(ann, bob)


@contextmanager
def loop_of_direct_room(database: str) -> Iterator[LockRoom]:
    """No service at all, and asyncio's face."""
    with on_a_loop(*(AsyncDirectLocks(database, cluster="loop", node="n1") for _ in range(2))) as (ann, bob):
        yield LockRoom(ann, bob, short_s=2.0, slack_s=1.5)


Opened = Callable[[str], AbstractContextManager[LockRoom]]
ROOMS: dict[str, Opened] = {
    "table": table_room,
    "one node": one_node_room,
    "three nodes": three_nodes_room,
    "direct": direct_room,
    "three nodes by asyncio": loop_of_three_nodes_room,
    "direct by asyncio": loop_of_direct_room,
}


def prepared(url: str) -> str:
    """Give a database our tables, and return its URL."""
    with closing(open_store(url)) as store:
        schema.setup(store)
    return url


def embedded(folder: Path) -> str:
    """Make an embedded database, and return its URL."""
    return new_database(folder)
