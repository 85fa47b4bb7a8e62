"""A simulated process: its port, its core, the loop that renews its leases; and how it dies, stalls, or misreads the clock."""

from __future__ import annotations

from asyncio import CancelledError
from typing import TYPE_CHECKING

from schedules.network import FaultyNetwork

from simulator.history import START_MS
from slotkeeper.database.simulated import SimulatedPort, Task
from slotkeeper.semaphore.core import Core
from slotkeeper.semaphore.lease import Lease, keep
from slotkeeper.semaphore.metadata import domain_id

if TYPE_CHECKING:
    from simulator.world import World

DOMAIN = domain_id("simulated")


class Client:
    """One process. Its callers share one core, as threads do; its leases are renewed through another, as the keeper does."""

    def __init__(self, world: World, name: str, offset_ms: int = 0) -> None:
        self.name, self.paused_until, self._world = name, 0.0, world
        network = FaultyNetwork(world, name)
        self.port = SimulatedPort(world.scheduler, network, group=self, wall_offset_ms=START_MS + offset_ms)
        known = dict(world.known)
        self.core = Core(self.port, DOMAIN, client_id=name, dice=world.random, known=known)
        self._renewer = Core(self.port, DOMAIN, client_id=f"{name}-leases", dice=world.random, known=known)
        self._kept: dict[int, Task] = {}

    @property
    def is_dead(self) -> bool:
        """Tell whether it has crashed."""
        return self.port.is_dead

    def keep(self, lease: Lease) -> None:
        """Begin to renew a lease."""
        loop = keep(lease, self.port, self._renewer, self._world.random)
        self._kept[id(lease)] = self._world.scheduler.spawn(loop, f"{self.name}-leases", self)

    def drop(self, lease: Lease) -> None:
        """Stop renewing a lease, at once."""
        lease.let_go = True
        task = self._kept.pop(id(lease), None)
        if task is not None and not task.is_done:
            self._world.scheduler.cancel(task, CancelledError())

    def crash(self) -> list[Task]:
        """Die: nothing more of it happens, save what has left it already. Return what it was doing."""
        self.port.is_dead = True
        tasks = [task for task in self._world.scheduler.tasks if task.group is self]
        for task in tasks:
            self._world.scheduler.drop(task)
            task.coroutine.close()
        return tasks
