"""A machine of the cluster: a node's process, its port, and how it crashes, stands still, stops and comes again."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from lockcluster import SchedulePort
from schedules.network import FaultyNetwork

from slotkeeper.database import Batch, Key, Outcome, Row, Slice, Table, Unavailable
from slotkeeper.database.simulated import SimulatedPending, Task
from slotkeeper.locktable import LockError, Request
from slotkeeper.locktable.node import Node, Unreachable
from slotkeeper.locktable.node.seat import Term

if TYPE_CHECKING:
    from locksimulator.world import World

START_MS = 1_700_000_000_000
CLUSTER = "c"
T = TypeVar("T")
Asked = Callable[[Node], Coroutine[Any, Any, T]]


class Line(FaultyNetwork):
    """The way from a machine to the database. While it is down, nobody answers in time, and nothing arrives."""

    down_until = 0.0

    def commit(self, batch: Batch, pending: SimulatedPending[Outcome]) -> None:
        """Let a batch leave."""
        if self._scheduler.now < self.down_until:
            self._scheduler.at(self._scheduler.now + 0.1, lambda *_: pending.fail(Unavailable("down")))
        else:
            super().commit(batch, pending)

    def read(
        self,
        table: Table,
        partition: Key,
        slices: tuple[Slice, ...],
        serial: bool,
        pending: SimulatedPending[list[Row]],
    ) -> None:
        """Let a read leave."""
        if self._scheduler.now < self.down_until:
            self._scheduler.at(self._scheduler.now + 0.1, lambda *_: pending.fail(Unavailable("down")))
        else:
            super().read(table, partition, slices, serial, pending)


class Port(SchedulePort):
    """A node's port. Its clock goes as fast as all others, and shows another time."""

    def __init__(self, machine: Machine, offset_s: float) -> None:
        world = machine.world
        carry = partial(world.post.carry, machine)
        super().__init__(world.scheduler, machine.line, carry, group=machine, began_ms=START_MS)
        self._offset_s = offset_s

    def now(self) -> float:
        """Return this machine's seconds."""
        return self._scheduler.now + self._offset_s


class LoggedNode(Node):
    """A node whose terms the world knows of."""

    machine: Machine

    async def won(self, term: Term) -> None:
        """See Node.won."""
        self.machine.world.note(self.me.node, f"speaks, epoch {term.epoch}")
        self.machine.world.check_speakers()
        await super().won(term)

    async def lost(self) -> None:
        """See Node.lost."""
        self.machine.world.note(self.me.node, "speaks no more")
        await super().lost()


class Machine:
    """A machine. Its node is another *instance* each time it starts."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.paused_until = world, name, 0.0
        self.is_up = self.is_stopping = False
        self.line = Line(world, name)
        self.serving: dict[Task, Coroutine[Any, Any, Any]] = {}
        self._starts = 0

    @property
    def trusts_itself(self) -> bool:
        """Tell whether its node believes that it speaks."""
        return self.node.speaking.is_trusted

    @property
    def knows(self) -> set[str]:
        """Whom its node tells of releases, and itself."""
        return {self.name, *(peer.node for peer in self.node.members.peers)}

    def start(self) -> None:
        """Begin with an empty memory."""
        self._starts += 1
        self.is_up, self.is_stopping, self.paused_until = True, False, 0.0
        self.port = Port(self, self.world.random() * 1000)
        instance = f"{self.name}{self._starts}"
        ids = iter(range(1, 1_000_000))
        self.node = LoggedNode(
            self.name,
            CLUSTER,
            self.name,
            self.port,
            new_id=lambda: f"{instance}.{number}" if (number := next(ids)) > 1 else instance,
            dice=self.world.random,
            terms=self.world.terms,
        )
        self.node.machine = self
        self.world.scheduler.spawn(self.node.start(), f"{self.name} starts", self)

    def crash(self) -> None:
        """Be gone at once."""
        self.is_up = False
        self.port.die()
        for core in self.serving.values():
            core.close()  # it may not have begun
        self.serving.clear()

    def stop(self) -> None:
        """Stop in order, and be gone."""
        self.is_stopping = True
        self.world.scheduler.spawn(self._stopped(), f"{self.name} stops", self)

    async def _stopped(self) -> None:
        await self.node.stop()
        self.world.note(self.name, "has stopped")
        self.world.at(self.world.now, lambda *_: self.crash() if self.is_stopping and self.is_up else None)

    def serve(self, asked: Asked[T], pending: SimulatedPending[T | LockError], what: str) -> None:
        """Let a client's request arrive."""
        self.serving = {task: core for task, core in self.serving.items() if not task.is_done}
        if not self.is_up:
            pending.answer(Unreachable(self.name, "nobody is there"))
            return
        core = asked(self.node)
        task = self.world.scheduler.spawn(self._served(core, pending), f"{self.name}: {what}", self)
        self.serving[task] = core

    async def _served(self, core: Coroutine[Any, Any, T], pending: SimulatedPending[T | LockError]) -> None:
        answer: T | LockError
        try:
            answer = await core
        except LockError as error:
            answer = error
        except CancelledError:  # its client has hung up
            return
        self.world.post.carry_back(pending, answer)


def wanted(name: str, holder: str, lease_s: float, wait_s: float, request: str) -> Asked[Any]:
    """Return what asks a node for a lock."""
    return lambda node: node.acquire(Request(name, holder=holder, lease_s=lease_s, wait_s=wait_s, request=request))


def released(name: str, lock_id: str = "", *, request: str = "") -> Asked[Any]:
    """Return what tells a node that a lock was released."""
    return lambda node: node.release(name, lock_id, request=request)
