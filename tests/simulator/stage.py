"""A stage for one play: clients over one bucket, where a test says what becomes of each request. The rest goes well."""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from simulator.client import DOMAIN
from simulator.history import START_MS
from simulator.picture import Picture
from slotkeeper.database import Batch, Key, Outcome, Row, Slice, Table, Unavailable, Unknown, insert
from slotkeeper.database.simulated import Rows, Scheduler, SimulatedPending, SimulatedPort, SimulatedStore, Task
from slotkeeper.semaphore.core import Core
from slotkeeper.semaphore.rows import METADATA, TOKENS

NAME = "gpu"
WAY_S, SLOW_S, LATE_S = 0.001, 1.0, 4.0
Hidden = Callable[[Rows], Rows]


class StagedNetwork:
    """The way from one client to the partition. `commits` and `reads` say what becomes of the next ones, "" of the others.

    lost: it applied, and nobody says so; never: it did not, and nobody says so; late: nobody says so, and it applies later;
    slow: its answer takes a second; down: nothing happened. `hides` takes out of plain reads what has not spread, until a
    serial read spreads it.
    """

    def __init__(self, scheduler: Scheduler, store: SimulatedStore) -> None:
        self.commits: deque[str] = deque()
        self.reads: deque[str] = deque()
        self.hides: Hidden = lambda rows: rows
        self._scheduler, self._store = scheduler, store

    def commit(self, batch: Batch, pending: SimulatedPending[Outcome]) -> None:
        """Let a batch leave."""
        fate, at, now = self.commits.popleft() if self.commits else "", self._scheduler.at, self._scheduler.now
        if fate == "down":
            at(now + WAY_S, lambda *_: pending.fail(Unavailable("down")))
            return
        if fate in ("lost", "never", "late"):
            at(now + 2 * WAY_S, lambda *_: pending.answer(Unknown(TimeoutError(), answered=True)))
        if fate in ("lost", "late"):
            at(now + (WAY_S if fate == "lost" else LATE_S), lambda *_: self._store.commit(batch))
        elif fate != "never":
            back_s = SLOW_S if fate == "slow" else WAY_S

            def decide(*_: object) -> None:
                outcome = self._store.commit(batch)
                at(self._scheduler.now + back_s, lambda *_: pending.answer(outcome))

            at(now + WAY_S, decide)

    def read(
        self,
        table: Table,
        partition: Key,
        slices: tuple[Slice, ...],
        serial: bool,
        pending: SimulatedPending[list[Row]],
    ) -> None:
        """Let a read leave."""
        fate, at, now = self.reads.popleft() if self.reads else "", self._scheduler.at, self._scheduler.now
        if fate == "down":
            at(now + WAY_S, lambda *_: pending.fail(Unavailable("down")))
            return

        def look(*_: object) -> None:
            rows = self._store.partitions.get((table.name, partition), {})
            if serial:
                self.hides = lambda rows: rows
            seen = rows if serial or table is not TOKENS else self.hides(rows)
            shown = self._store.read_from(seen, table, partition, slices)
            at(self._scheduler.now + (SLOW_S if fate == "slow" else WAY_S), lambda *_: pending.answer(shown))

        at(now + WAY_S, look)


class Actor:
    """A client on the stage. It speaks for owners by number. Clients that draw the same number write the same marks."""

    def __init__(self, stage: Stage, name: str, drawn: float) -> None:
        self.network = StagedNetwork(stage.scheduler, stage.store)
        port = SimulatedPort(stage.scheduler, self.network, wall_offset_ms=START_MS)
        self.core = Core(port, DOMAIN, client_id=name, dice=lambda: drawn)
        self.port, self._stage = port, stage

    def acquire(self, owner: int, *, wait_s: float = 0.0, lease_s: int | None = None, timeout_s: float = 20.0) -> Task:
        """Begin to acquire."""
        call = self.core.acquire(NAME, owner_id(owner), wait_s=wait_s, lease_s=lease_s, timeout_s=timeout_s)
        return self._begin(call)

    def release(self, owner: int, *, fence: int | None = None) -> Task:
        """Begin to release."""
        return self._begin(self.core.release(NAME, owner_id(owner), fence, 20.0))

    def renew(self, owner: int, lease_s: int | None, *, timeout_s: float = 20.0) -> Task:
        """Begin to renew."""
        return self._begin(self.core.renew(NAME, owner_id(owner), fence=None, lease_s=lease_s, timeout_s=timeout_s))

    def _begin(self, call: Coroutine[Any, Any, Any]) -> Task:
        return self._stage.scheduler.spawn(call)


class Stage:
    """One bucket of some tokens, and the clients around it."""

    def __init__(self, tokens: int = 1) -> None:
        self.scheduler = Scheduler()
        self.store = SimulatedStore(lambda: self.scheduler.now)
        values = {"size": tokens, "bucket_size": tokens, "created_time": START_MS}
        self.store.commit(Batch(METADATA, (DOMAIN,), (insert((NAME,), values, absent=True),)))
        self._tokens = range(1, tokens + 1)
        self._actors: list[Actor] = []

    def actor(self, name: str, drawn: float = 0.0) -> Actor:
        """Let a client come on."""
        self._actors.append(Actor(self, name, drawn))
        return self._actors[-1]

    def close(self) -> None:
        """End the play: what still runs is gone."""
        for actor in self._actors:
            actor.port.is_dead = True
        for task in list(self.scheduler.tasks):
            self.scheduler.drop(task)
            task.coroutine.close()

    def passes(self, seconds: float) -> None:
        """Let time pass."""
        self.scheduler.run(until=self.scheduler.now + seconds)

    def answer(self, task: Task, within_s: float = 5.0) -> Any:
        """Let time pass until a call is answered. Raises its error."""
        until = self.scheduler.now + within_s
        while not task.is_done and self.scheduler.now < until:
            self.passes(0.005)
        assert task.is_done, f"not answered within {within_s} s"
        if task.error is not None:
            raise task.error
        return task.value

    def cancel(self, task: Task) -> None:
        """Cancel a call, as asyncio does."""
        self.scheduler.cancel(task, CancelledError())
        self.passes(0.0)

    @property
    def picture(self) -> Picture:
        """The partition as it is now."""
        rows = self.store.partitions.get((TOKENS.name, (DOMAIN, NAME, 0)), {})
        return Picture(rows, self._tokens, self.scheduler.now)

    @property
    def rows(self) -> Rows:
        """The partition's rows, those that have ended too."""
        return dict(self.store.partitions[TOKENS.name, (DOMAIN, NAME, 0)])

    @property
    def holders(self) -> dict[int, int]:
        """Who holds what: owner by token."""
        return {token: int(held.owner.rpartition(":")[2]) for token, held in self.picture.held.items()}

    @property
    def line(self) -> list[int]:
        """Who stands in line, in order."""
        return [int(place.owner.rpartition(":")[2]) for _, place in sorted(self.picture.line.items())]


def owner_id(number: int) -> str:
    """Return an owner of this number."""
    return f"1:w:o{number}:{number}"
