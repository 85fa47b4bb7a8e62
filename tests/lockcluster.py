"""Lock nodes of one cluster in one process, on a schedule whose clock only the test moves: real nodes over a real store."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from typing import Any, TypeVar

import msgspec

from slotkeeper import schema
from slotkeeper.database import Batch, Key, Outcome, Row, Slice, Store, Table, Unavailable
from slotkeeper.database.simulated import Flag, Scheduler, SimulatedPort, SimulatedStore, Straight, Task
from slotkeeper.database.simulated.port import Network as AnyNetwork
from slotkeeper.database.simulated.port import SimulatedPending
from slotkeeper.database.sqlite import SqliteStore
from slotkeeper.locktable import Grant, LockError, Request
from slotkeeper.locktable.node import Answer, Background, Message, Node, Terms, Unreachable

T = TypeVar("T")
BEGAN_MS = 1_700_000_000_000
LONG_S = 3_600.0
Carry = Callable[[str, Message, SimulatedPending[Answer]], None]
Hold = float | Callable[[], bool]  # for so long, or until that is so


class Ended:
    """Something that runs beside a node's callers, and that others wait for."""

    def __init__(self, scheduler: Scheduler, core: Coroutine[Any, Any, None]) -> None:
        self.core, self._flag = core, Flag(scheduler)

    async def run(self) -> None:
        try:
            await self.core
        finally:
            self._flag.set()

    @property
    def is_going_on(self) -> bool:
        """Tell whether it has not ended."""
        return not self._flag.is_set()

    async def ended(self) -> None:
        while not await self._flag.wait(LONG_S):
            pass


class Network(Straight):
    """What a node sees of the store. While it is `away` nobody answers; `instead` may answer a commit in its own way."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.is_away = False
        self.instead: Callable[[Batch, SimulatedPending[Outcome]], bool] = lambda batch, pending: False
        self.commits: list[Batch] = []
        self.serial_reads: list[tuple[Table, tuple[Slice, ...]]] = []

    def commit(self, batch: Batch, pending: SimulatedPending[Outcome]) -> None:
        """See Straight."""
        self.commits.append(batch)
        if self.is_away:
            pending.fail(Unavailable())
        elif not self.instead(batch, pending):
            super().commit(batch, pending)

    def read(
        self,
        table: Table,
        partition: Key,
        slices: tuple[Slice, ...],
        serial: bool,
        pending: SimulatedPending[list[Row]],
    ) -> None:
        """See Straight."""
        if serial:
            self.serial_reads.append((table, slices))
        if self.is_away:
            pending.fail(Unavailable())
        else:
            super().read(table, partition, slices, serial, pending)


class SchedulePort(SimulatedPort):
    """A node's port in a schedule. `carry` takes a message to an address, and its answer back."""

    def __init__(
        self, scheduler: Scheduler, network: AnyNetwork, carry: Carry, *, group: object, began_ms: int
    ) -> None:
        super().__init__(scheduler, network, group=group, wall_offset_ms=began_ms)
        self._carry = carry
        self._begun: list[Ended] = []

    async def ask(self, address: str, message: Message, timeout_s: float) -> Answer:
        """See Port.ask of lock nodes."""
        pending: SimulatedPending[Answer] = SimulatedPending(self._scheduler)
        self._carry(address, message, pending)
        if not await pending.wait(timeout_s):
            raise Unreachable(address)
        return pending.result()

    def begin(self, core: Coroutine[Any, Any, None]) -> Background:
        """See Port.begin of lock nodes."""
        ended = Ended(self._scheduler, core)
        self._begun = [each for each in self._begun if each.is_going_on] + [ended]
        self._scheduler.spawn(ended.run(), "beside", self._group)
        return ended

    def die(self) -> None:
        """Let nothing of the process go on."""
        self.is_dead = True
        for task in [task for task in self._scheduler.tasks if task.group == self._group]:
            self._scheduler.drop(task)
            task.coroutine.close()
        for begun in self._begun:
            begun.core.close()


class NodePort(SchedulePort):
    """A node's port: messages travel at once, as the JSON that they would be, unless the cluster says otherwise."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.network = Network(cluster.store)
        super().__init__(cluster.scheduler, self.network, partial(cluster.carry, name), group=name, began_ms=BEGAN_MS)


class Cluster:
    """A store, a network between nodes, and nodes by name. A node's address is its name."""

    def __init__(self, kind: str = "simulated", terms: Terms | None = None) -> None:
        self.scheduler = Scheduler(lag=self._lag, on_error=self._failed)
        self.store = self._store(kind)
        self.terms = terms or Terms()
        self.nodes: dict[str, Node] = {}
        self.ports: dict[str, NodePort] = {}
        self.cuts: set[frozenset[str]] = set()
        self.silent: set[str] = set()  # they hear, and their answers are lost
        self.paused: dict[str, float] = {}
        self.said: list[tuple[str, str, Message]] = []
        self.holds: Callable[[str, str, Message], Hold] = lambda source, target, message: (
            0.0
        )  # an answer on its way back
        self._ids, self._dice = count(1), random.Random(7)
        self._errors: list[BaseException] = []

    # --- the nodes ------------------------------------------------------------------------------------------------------

    def start(self, *names: str, reaching_the_database: bool = True) -> list[Node]:
        """Start nodes, each with a memory of its own."""
        for name in names:
            self.ports[name] = NodePort(self, name)
            self.ports[name].network.is_away = not reaching_the_database
            self.nodes[name] = Node(
                name,
                "c",
                name,
                self.ports[name],
                new_id=lambda: f"id-{next(self._ids)}",
                dice=self._dice.random,
                terms=self.terms,
            )
            self.done(self.nodes[name].start())
        return [self.nodes[name] for name in names]

    def kill(self, *names: str) -> None:
        """End nodes as a lost process ends: nothing of them goes on, and nobody is told."""
        for name in names:
            self.ports[name].die()
            del self.nodes[name]

    def close(self) -> None:
        """End all that goes on."""
        self.check()
        self.kill(*list(self.nodes))
        for task in list(self.scheduler.tasks):
            self.scheduler.drop(task)
            task.coroutine.close()
        self.store.close()

    def pause(self, name: str, seconds: float) -> None:
        """Let a node stand still, as a process that is stopped for a while."""
        self.paused[name] = self.now() + seconds

    def cut(self, one: str, other: str) -> None:
        """Let no message go between two nodes."""
        self.cuts.add(frozenset((one, other)))

    def speaker(self) -> Node | None:
        """Return the node that trusts itself to speak. There is never more than one."""
        speaking = [node for node in self.nodes.values() if node.speaking.is_trusted]
        assert len(speaking) < 2, f"{speaking} both speak"
        return speaking[0] if speaking else None

    def granting(self) -> Node:
        """Run until a node may grant, and return it."""
        self.until(lambda: (node := self.speaker()) is not None and node.speaking.table.is_rebuilt)
        node = self.speaker()
        assert node is not None
        return node

    def others(self) -> list[Node]:
        """Return the nodes that do not speak."""
        speaker = self.speaker()
        return [node for node in self.nodes.values() if node is not speaker]

    # --- time -----------------------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self.scheduler.now

    def run(self, seconds: float) -> None:
        """Let time pass, and look all the while that no two nodes speak."""
        until = self.now() + seconds
        while self.now() < until:
            self.scheduler.run(until=min(until, self.now() + 0.25))
            self.speaker()
            self.check()

    def until(self, holds: Callable[[], bool], *, within_s: float = LONG_S) -> float:
        """Run until something holds, and return how long that took."""
        began_at = self.now()
        while not holds():
            assert self.now() - began_at < within_s, "it does not come to pass"
            self.run(0.25)
        return self.now() - began_at

    def begin(self, core: Coroutine[Any, Any, T], group: str = "test") -> Task:
        """Begin something as a task."""
        return self.scheduler.spawn(core, "asked", group)

    def done(self, core: Coroutine[Any, Any, T], *, within_s: float = LONG_S) -> T:
        """Run something to its end, and return or raise what it does."""
        value: T = self.ended(self.begin(core), within_s=within_s)
        return value

    def ended(self, task: Task, *, within_s: float = LONG_S) -> Any:
        """Run a task to its end, and return or raise what it does."""
        began_at = self.now()
        while not task.is_done:
            assert self.now() - began_at < within_s, f"{task} does not end"
            self.scheduler.run(most=1)
        if task.error is not None:
            raise task.error
        return task.value

    def check(self) -> None:
        """Fail when something ended with an error that nobody waited for."""
        assert not self._errors, self._errors

    # --- messages -------------------------------------------------------------------------------------------------------

    def carry(self, source: str, target: str, message: Message, pending: SimulatedPending[Answer]) -> None:
        """Let a message travel, and its answer back."""
        self.said.append((source, target, message))
        if frozenset((source, target)) in self.cuts:
            return
        if target not in self.nodes:
            pending.fail(Unreachable(target, "nobody is there"))
            return
        heard = msgspec.json.decode(msgspec.json.encode(message), type=Message)
        hold = self.holds(source, target, message)
        self.scheduler.spawn(self._heard(target, self.nodes[target], heard, pending, hold), "heard", target)

    async def _heard(
        self, target: str, node: Node, message: Message, pending: SimulatedPending[Answer], hold: Hold
    ) -> None:
        answer = await node.answer(message)
        if not callable(hold):
            await self.ports[target].sleep(hold)
        else:
            while not hold():
                await self.ports[target].sleep(0.01)
        if target not in self.silent:
            pending.answer(msgspec.json.decode(msgspec.json.encode(answer), type=Answer))

    # --- within ---------------------------------------------------------------------------------------------------------

    def _store(self, kind: str) -> Any:
        if kind == "simulated":
            return SimulatedStore(clock=lambda: self.scheduler.now)
        store = SqliteStore(":memory:", clock=lambda: BEGAN_MS + round(self.scheduler.now * 1000))
        schema.setup(store)
        return store

    def _lag(self, group: object) -> float:
        return max(0.0, self.paused.get(str(group), 0.0) - self.scheduler.now)

    def _failed(self, task: Task, error: BaseException) -> None:
        if task.name != "asked":
            self._errors.append(error)


def want(name: str, **how: Any) -> Request:
    """Return a request for a lock."""
    return Request(name, **how)


def outcome(cluster: Cluster, core: Coroutine[Any, Any, Grant], *, within_s: float = LONG_S) -> Grant | LockError:
    """Run a request to its end, and return the grant or the error."""
    try:
        return cluster.done(core, within_s=within_s)
    except LockError as error:
        return error
