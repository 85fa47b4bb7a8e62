"""A client of the cluster: it asks any node, again and again, counts its leases itself, renews, releases, or dies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schedules.history import Violation

from locksimulator.beliefs import Belief
from locksimulator.machine import Asked, Machine, released, wanted
from slotkeeper.database.simulated import SimulatedPending, SimulatedPort, Straight
from slotkeeper.locktable import AlreadyReleased, Grant, LockError, LockHeld, LockUnavailable, NotHeld, TakenOver

if TYPE_CHECKING:
    from locksimulator.world import World

LEASES = (2.0, 3.0, 3.0, 5.0, 8.0)
WAITS = (0.0, 0.0, 0.5, 2.0, 6.0)
HOLDS = (0.0, 0.1, 0.5, 2.0, 6.0)
PATIENCE_S = 3.0
AGAIN_S = 0.4


class Customer:
    """A client's process. It is not a machine of the cluster, and reaches each of them."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.paused_until = world, name, 0.0
        self.port = SimulatedPort(world.scheduler, Straight(world.store), group=self)
        self._belief: Belief | None = None
        self._random = world.random

    async def run(self) -> None:
        """Want a lock once or twice."""
        await self.port.sleep(self._random() * self._random() * 6)
        for turn in range(1 + int(self._random() * 2)):
            name = self.world.choice(self.world.names)
            request = f"{self.name}.{turn}" if self._random() < 0.7 else ""
            lease_s = self.world.choice(LEASES)
            patience_s = PATIENCE_S + self._random() * 8
            if await self.acquire(name, lease_s, self.world.choice(WAITS), request, patience_s=patience_s):
                await self._hold(lease_s)
                await self.release(request)
            elif request:
                await self._ask(released(name, request=request), PATIENCE_S, f"gives {request} up")

    async def acquire(
        self, name: str, lease_s: float, wait_s: float, request: str = "", *, patience_s: float = PATIENCE_S
    ) -> bool:
        """Ask for a lock, at one node and then another, while there is patience; tell whether it is held."""
        until = self.world.now + wait_s + patience_s
        while True:
            sent = self.world.now
            answer = await self._ask(
                wanted(name, self.name, lease_s, wait_s, request), wait_s + PATIENCE_S, f"acquires {name} {request}"
            )
            if isinstance(answer, Grant) and self._has(name, answer, sent):
                return True
            if isinstance(answer, LockHeld):
                self.world.check_held(answer.lock, sent)
            if isinstance(answer, AlreadyReleased) and request:
                raise Violation(f"{self.name} was told that {request} was released")
            if self.world.now + AGAIN_S > until:
                return False
            await self.port.sleep(AGAIN_S)

    async def _hold(self, lease_s: float) -> None:
        until, belief = self.world.now + self.world.choice(HOLDS) * (0.5 + self._random()), self._belief
        renews = self._random() < 0.8
        while belief is not None and self.world.now < min(until, belief.until):
            pause_s = lease_s / 3 if renews else until - self.world.now
            await self.port.sleep(min(pause_s, until - self.world.now))
            if renews and self.world.now < min(until, belief.until):
                await self._renew(belief, lease_s)

    async def _renew(self, belief: Belief, lease_s: float) -> None:
        sent = self.world.now
        answer = await self._ask(
            lambda node: node.renew(belief.name, belief.id, lease_s), min(1.0, belief.until - sent), "renews"
        )
        if self.world.now >= belief.until:
            return
        if isinstance(answer, Grant):
            belief.until = max(belief.until, sent + answer.lasts_s)
        elif isinstance(answer, NotHeld):
            raise Violation(f"{self.name} was told that it holds {belief} no more")

    async def release(self, request: str) -> None:
        """Let go, and say so until somebody has heard it, or for some time."""
        belief = self._belief
        if belief is None:
            return
        trusted = self.world.now < belief.until
        self._let_go()
        for _ in range(4):
            by_id = not request or self._random() < 0.7
            asked = released(belief.name, belief.id) if by_id else released(belief.name, request=request)
            told = self.world.all_are_known
            answer = await self._ask(asked, 1.0, f"releases {belief.id if by_id else request}")
            if isinstance(answer, bool):
                if trusted and told and answer:
                    self.world.released(belief.id)
                return
            await self.port.sleep(AGAIN_S)

    def die(self) -> None:
        """Be gone: what it holds is nobody's until its lease ends."""
        self._let_go()

    async def _ask(self, asked: Asked[Any], patience_s: float, what: str) -> Any:
        """Ask some node. Return its answer or its error; None where nobody answered in time."""
        world, post = self.world, self.world.post
        machine: Machine = world.choice(world.standing)
        pending: SimulatedPending[Any] = SimulatedPending(world.scheduler)
        world.note(self.name, f"asks {machine.name}: {what}")
        if (way_s := post.way_s()) is not None:
            world.at(world.now + way_s, lambda *_: machine.serve(asked, pending, what))
        if not await pending.wait(patience_s):
            world.note(self.name, "hears nothing")
            return None
        answer = pending.result()
        world.note(self.name, f"hears: {_told(answer)}")
        if isinstance(answer, LockError) and not isinstance(
            answer, LockUnavailable | LockHeld | NotHeld | AlreadyReleased | TakenOver
        ):
            raise Violation(f"{self.name} was answered {answer!r}")
        return answer

    def _has(self, name: str, grant: Grant, sent: float) -> bool:
        until = sent + grant.lasts_s
        if until <= self.world.now:
            return False
        lock = grant.lock
        self._belief = Belief(name, lock.id, lock.fence, self.name, until)
        self.world.check_speakers()
        self.world.beliefs.believe(self._belief, sent, self.world.now)
        return True

    def _let_go(self) -> None:
        if self._belief is not None:
            self.world.beliefs.let_go(self._belief)
            self._belief = None


def _told(answer: Any) -> str:
    if isinstance(answer, Grant):
        return f"{answer.lock.name}:{answer.lock.id} for {answer.lasts_s:.2f}s{' again' if answer.again else ''}"
    return repr(answer)
