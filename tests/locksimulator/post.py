"""How messages travel, between nodes and between a client and a node: soon, late or never, and in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slotkeeper.database.simulated import SimulatedPending
from slotkeeper.locktable.node import Answer, Message, Unreachable
from slotkeeper.locktable.node.messages import Given, Refusal

if TYPE_CHECKING:
    from locksimulator.machine import Machine
    from locksimulator.world import World

LATEST_S = 6.0


class Post:
    """Carries messages. `loses` is how likely one is lost or late; `cuts` has pairs of machines that reach each other not."""

    def __init__(self, world: World) -> None:
        self.loses = 0.0
        self.cuts: dict[frozenset[str], float] = {}
        self.has_lost = False  # something was lost, or came late
        self._world = world

    def carry(self, source: Machine, target: str, message: Message, pending: SimulatedPending[Answer]) -> None:
        """Let a node's message leave for another one."""
        world = self._world
        if world.history is not None:
            world.note(source.name, f"to {target}: {_told(message)}")
        if self.cuts.get(frozenset((source.name, target)), 0.0) > world.now:
            self.has_lost = True
        elif (way_s := self.way_s()) is None:
            world.note(source.name, "   lost")
        else:
            world.at(world.now + way_s, lambda *_: self._arrive(source, target, message, pending))

    def _arrive(self, source: Machine, target: str, message: Message, pending: SimulatedPending[Answer]) -> None:
        machine = self._world.machines[target]
        if machine.is_up:
            name = f"{target} hears {source.name}"
            self._world.scheduler.spawn(self._heard(source, machine, message, pending), name, machine)
        else:
            self._world.at(self._world.now + 0.001, lambda *_: pending.fail(Unreachable(target, "nobody is there")))

    async def _heard(
        self, source: Machine, machine: Machine, message: Message, pending: SimulatedPending[Answer]
    ) -> None:
        answer = await machine.node.answer(message)
        if self._world.history is not None:
            self._world.note(machine.name, f"answers {source.name}: {_told(answer)}")
        if self.cuts.get(frozenset((source.name, machine.name)), 0.0) > self._world.now:
            self.has_lost = True
        elif isinstance(answer, Given) and self._world.meddles(machine):
            self.has_lost = True
            self._world.at(self._world.now + 0.1 + self._world.random() * 2, pending.answer, answer)
        else:
            self.carry_back(pending, answer)

    def carry_back(self, pending: SimulatedPending[Any], answer: Any) -> None:
        """Let an answer leave."""
        if (way_s := self.way_s()) is not None:
            self._world.at(self._world.now + way_s, pending.answer, answer)

    def way_s(self) -> float | None:
        """Return how long a message is on its way; None where it is lost."""
        world, chance = self._world, self._world.random()
        if world.calm or chance >= self.loses:
            way = world.random() * 0.006
            return way if world.calm or world.random() < 0.95 else way * 20
        self.has_lost = True
        if chance < self.loses / 2:
            return None
        late = world.random()
        return late * late * LATEST_S


def _told(said: Message | Answer) -> str:
    if isinstance(said, Refusal):
        return f"refused: {said.error}"
    fields = {name: getattr(said, name) for name in said.__struct_fields__ if name not in ("asker", "speaker", "peer")}
    for name, value in fields.items():
        if name in ("held", "granted", "locks"):
            fields[name] = [f"{told.lock.name}:{told.lock.id} {told.left_s:.2f}s" for told in value]
        elif name == "told":
            fields[name] = f"{value.lock.name}:{value.lock.id} {value.left_s:.2f}s"
        elif name == "request" and not isinstance(value, str):
            fields[name] = f"{value.name} for {value.holder} {value.request!r}"
    return " ".join((type(said).__name__.lower(), *(f"{name}={value}" for name, value in fields.items())))
