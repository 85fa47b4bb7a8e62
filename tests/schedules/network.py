"""What becomes of a request on its way: decided at once or late or never, answered truly or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from slotkeeper.database import Applied, Batch, Key, Outcome, Row, Slice, Table, Unavailable, Unknown
from slotkeeper.database.simulated import SimulatedPending

if TYPE_CHECKING:
    from schedules.ground import Ground

LOST, SILENT = TimeoutError("the answer was lost"), TimeoutError("no answer")
LATEST_S = 12.0  # how late an attempt may land after its answer was given up


class Attempt:
    """A batch on its way to the partition."""

    __slots__ = ("answered", "batch", "client", "number", "pending")

    def __init__(self, number: int, client: str, batch: Batch, pending: SimulatedPending[Outcome]) -> None:
        self.number, self.client, self.batch, self.pending = number, client, batch, pending
        self.answered = False


class FaultyNetwork:
    """The way from one client to the partition."""

    def __init__(self, world: Ground, client: str) -> None:
        self._world, self._client = world, client
        self._random, self._scheduler = world.random, world.scheduler
        self._fates: tuple[Callable[[Attempt], str], ...] = (
            self._turned_away,
            self._slow,
            self._answer_lost,
            self._answer_lost,
            self._never_lands,
            self._late,
            self._late,
        )

    def commit(self, batch: Batch, pending: SimulatedPending[Outcome]) -> None:
        """Let a batch leave."""
        world = self._world
        world.attempts += 1
        attempt = Attempt(world.attempts, self._client, batch, pending)
        if world.calm or self._random() >= world.trouble:
            fate = ""
            world.at(self._scheduler.now + self._way(), self._decide, attempt)
        else:
            fate = f" | {self._fates[int(self._random() * len(self._fates))](attempt)}"
        if world.history is not None:
            world.note(self._client, f"commit #{attempt.number} {world.told(batch)}{fate}")

    def read(
        self,
        table: Table,
        partition: Key,
        slices: tuple[Slice, ...],
        serial: bool,
        pending: SimulatedPending[list[Row]],
    ) -> None:
        """Let a read leave."""
        world = self._world
        if not world.calm and self._random() < world.trouble / 2:
            world.at(self._until(self._silence()), lambda *_: pending.fail(Unavailable("the read was lost")))
            return

        def look(*_: object) -> None:
            rows = world.seen(table, partition, slices, serial=serial)
            world.at(self._scheduler.now + self._way() / 2, pending.answer, rows)

        world.at(self._scheduler.now + self._way(), look)

    # --- fates -------------------------------------------------------------------------------------------------------

    def _decide(self, attempt: Attempt, _: object = None) -> None:
        world = self._world
        outcome = world.decide(attempt)
        if not attempt.answered:
            world.at(self._scheduler.now + self._way() / 2, self._answer, attempt, outcome)

    def _answer(self, attempt: Attempt, outcome: Outcome) -> None:
        if isinstance(outcome, Applied):
            self._world.settled(attempt)
        self._say(attempt, outcome)

    def _say(self, attempt: Attempt, outcome: Outcome) -> None:
        world = self._world
        if world.history is not None and not isinstance(outcome, Applied):
            name = type(outcome).__name__.lower()
            if isinstance(outcome, Unknown):
                name += " (answered)" if outcome.answered else " (silence)"
            world.note(self._client, f"   #{attempt.number} answer: {name}")
        attempt.pending.answer(outcome)

    def _turned_away(self, attempt: Attempt) -> str:
        error = Unavailable("too few replicas")
        self._world.at(self._until(self._way()), lambda *_: attempt.pending.fail(error))
        return "turned away"

    def _slow(self, attempt: Attempt) -> str:
        self._world.at(self._until(self._random() * 3), self._decide, attempt)
        return "slow"

    def _answer_lost(self, attempt: Attempt) -> str:
        attempt.answered = True
        at = self._world.now + self._way()
        self._world.at(at, self._decide, attempt)
        self._answer_unknown(attempt, at + self._silence())
        return "answer lost"

    def _never_lands(self, attempt: Attempt) -> str:
        self._answer_unknown(attempt, self._world.now + self._silence())
        return "never lands"

    def _late(self, attempt: Attempt) -> str:
        attempt.answered = True
        at = self._world.now + self._silence()
        self._answer_unknown(attempt, at)
        late = self._random()
        self._world.at(self._until(at - self._world.now + late * late * late * LATEST_S), self._decide, attempt)
        return "lands late"

    def _answer_unknown(self, attempt: Attempt, at: float) -> None:
        answered = self._random() < 0.5
        unknown = Unknown(LOST if answered else SILENT, answered=answered)
        self._world.at(self._until(at - self._world.now), self._say, attempt, unknown)

    def _until(self, delay: float) -> float:
        """Return the moment after a delay, until which there is trouble."""
        self._world.has_trouble(delay)
        return self._scheduler.now + delay

    def _way(self) -> float:
        way = self._random() * 0.006
        return way if self._random() < 0.95 else way * 20

    def _silence(self) -> float:
        silence = self._random()
        return 0.01 + silence * silence * 6
