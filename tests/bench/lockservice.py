"""The lock service as its clients meet it: pairs beside empty requests, one hot name, and many names that are held."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, count
from time import monotonic
from urllib.parse import urlencode

from .crowd import Readings, Window, in_tasks, spread
from .lean import Answer, Connection, connections, question
from .locknodes import ServedNode, cluster

EMPTY = question("GET", "/healthz")
EMPTY_PAIRS = "empty requests / 2"
LOCKS = "/api/cluster/lock"
BUSY, AGAIN_S = 503, 0.5
TURNS = 8  # between empty requests and pairs: what else the machine does then meets both
LONG_MS = 600_000  # for a wait or a lease that shall not end


@dataclass(slots=True)
class Client:
    """One who takes locks over a connection. Each request has an id, as those of our clients have."""

    number: int
    connection: Connection
    done: int = 0  # empty requests and pairs
    _requests: count[int] = field(default_factory=count)

    @property
    def own(self) -> str:
        """A name that nobody else asks for."""
        return f"bench {self.number}"

    async def empty(self) -> float:
        """Ask for nothing, and return how many ms it took."""
        began_at = monotonic()
        await self.connection.ask(EMPTY)
        self.done += 1
        return (monotonic() - began_at) * 1000

    async def pair(self) -> float:
        """Take and give back a lock that nobody else asks for, and return how many ms the taking took."""
        began_at = monotonic()
        lock_id = await self.acquire(self.own)
        took_ms = (monotonic() - began_at) * 1000
        await self.release(self.own, lock_id)
        self.done += 1
        return took_ms

    async def acquire(self, name: str, **asked: object) -> str:
        """Take a lock, and return its id."""
        document = {"name": name, "request": f"{self.number}.{next(self._requests)} {name}", **asked}
        answer = await self._asked(question("POST", LOCKS, json.dumps(document).encode()), 200)
        return answer.body.partition(b'"id":"')[2].partition(b'"')[0].decode()

    async def release(self, name: str, lock_id: str) -> None:
        """Give it back."""
        await self._asked(question("DELETE", f"{LOCKS}?{urlencode({'name': name, 'id': lock_id})}"), 204)

    async def _asked(self, asked: bytes, status: int) -> Answer:
        """Ask, and again where the node is not ready for it, as our clients do: a busy machine may hold an election."""
        answer = await self.connection.ask(asked, (status, BUSY))
        while answer.status == BUSY:
            await asyncio.sleep(AGAIN_S)
            answer = await self.connection.ask(asked, (status, BUSY))
        return answer


# --- pairs --------------------------------------------------------------------------------------------------------------


def pairs(url: str, seconds: float, *, clients: int, nodes: int = 1) -> Readings:
    """Count pairs, and empty requests to the same node over the same connections. Of several nodes, ask one that hands on."""
    with cluster(url, nodes) as running:
        return asyncio.run(_pairs(running[-1], seconds, clients))


async def _pairs(node: ServedNode, seconds: float, clients: int) -> Readings:
    async with connections(node.url, clients) as opened:
        here = [Client(number, each) for number, each in enumerate(opened)]
        stretches = [await _stretch(node, here, what, seconds / TURNS) for what in (Client.empty, Client.pair) * TURNS]
    empty, ours = (_joined(stretches[first::2]) for first in (0, 1))
    rate, beside = len(empty.took_ms) / seconds, _beside(empty.took_ms)
    work = {"two empty requests, us": 2 * empty.work_us, "pair, us": ours.work_us}
    return {"cycles": len(ours.took_ms) / seconds, **spread(ours.took_ms), EMPTY_PAIRS: rate / 2, **beside, **work}


@dataclass(frozen=True, slots=True)
class Stretch:
    """How long each took that counts, and what all of them cost the node's processor."""

    took_ms: list[float]
    done: int
    busy_s: float

    @property
    def work_us(self) -> float:
        """What one cost it."""
        return self.busy_s * 1e6 / self.done


async def _stretch(
    node: ServedNode, clients: list[Client], step: Callable[[Client], Awaitable[float]], seconds: float
) -> Stretch:
    done, busy_s = sum(client.done for client in clients), node.busy_s
    took_ms = await _repeated(clients, step, seconds)
    return Stretch(took_ms, sum(client.done for client in clients) - done, node.busy_s - busy_s)


def _joined(stretches: list[Stretch]) -> Stretch:
    took_ms = list(chain(*(each.took_ms for each in stretches)))
    return Stretch(took_ms, sum(each.done for each in stretches), sum(each.busy_s for each in stretches))


def _beside(empty_ms: list[float]) -> Readings:
    return {f"empty request, {percent}": ms for percent, ms in spread(empty_ms).items()}


async def _repeated(clients: list[Client], step: Callable[[Client], Awaitable[float]], seconds: float) -> list[float]:
    """Let all clients repeat a step until a window is over, and return how many ms each took."""
    window = Window.opening(seconds)

    async def work(number: int) -> list[float]:
        took = []
        while not window.over:
            took_ms = await step(clients[number])
            if window.counts:
                took.append(took_ms)
        return took

    return list(chain(*await in_tasks(len(clients), work)))


# --- a hot name ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Turns:
    """The gaps between a release and the moment that the next one's acquire has returned, in ms."""

    window: Window
    hold_s: float
    let_go_at: float | None = None
    gaps_ms: list[float] = field(default_factory=list)

    async def take(self, client: Client) -> None:
        """Stand in line for the one name, hold it, and give it back, again and again."""
        while not self.window.over:
            lock_id = await client.acquire("bench", wait_ms=LONG_MS)
            self._note(monotonic())
            await asyncio.sleep(0 if self.window.over else self.hold_s)
            self.let_go_at = monotonic()
            await client.release("bench", lock_id)

    def _note(self, got_at: float) -> None:
        if self.let_go_at is not None and self.window.counts:
            self.gaps_ms.append((got_at - self.let_go_at) * 1000)


def hot(url: str, seconds: float, *, waiters: int, hold_s: float = 0.01) -> Readings:
    """Time the hand-off of one name for which so many stand in line, and before it empty requests with the same pauses."""
    with cluster(url) as (node,):
        return asyncio.run(_hot(node, seconds, waiters, hold_s))


async def _hot(node: ServedNode, seconds: float, waiters: int, hold_s: float) -> Readings:
    async with connections(node.url, waiters + 1) as opened:

        async def paused(client: Client) -> float:
            took_ms = await client.empty()
            await asyncio.sleep(hold_s)
            return took_ms

        empty = await _repeated([Client(0, opened[0])], paused, seconds / 2)
        turns = Turns(Window.opening(seconds), hold_s)
        await in_tasks(len(opened), lambda number: turns.take(Client(number, opened[number])))
    return {**spread(turns.gaps_ms), **_beside(empty)}


# --- many names ---------------------------------------------------------------------------------------------------------


def held(url: str, seconds: float, *, names: int, clients: int = 8) -> Readings:
    """Take so many locks and keep them: how fast, what they weigh, and what pairs cost beside them."""
    with cluster(url) as (node,):
        return asyncio.run(_held(node, seconds, names, clients))


async def _held(node: ServedNode, seconds: float, names: int, clients: int) -> Readings:
    async with connections(node.url, clients) as opened:
        here = [Client(number, each) for number, each in enumerate(opened)]
        before, kib, began_at = await _repeated(here, Client.pair, seconds), node.kib, monotonic()
        await in_tasks(clients, lambda number: _keep(here[number], range(number, names, clients)))
        rate, grown = names / (monotonic() - began_at), node.kib - kib
        after = await _repeated(here, Client.pair, seconds)
    assert node.told("/api/status")["locks"] == names
    return {"a second": rate, "KiB": grown, "pairs before": len(before) / seconds, "cycles": len(after) / seconds}


async def _keep(client: Client, numbers: Iterable[int]) -> None:
    for number in numbers:
        await client.acquire(f"kept {number}", lease_ms=LONG_MS)
