"""The two faces: `TaskStore` for threads, `AsyncTaskStore` for asyncio. The same names, thin, and decide nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from ..database import drive
from . import looks
from .clock import Clock
from .engine import ABSENT, Engine
from .errors import StoreClosed
from .group import Dice
from .journal import Journal
from .opening import journal_of
from .operations import Claim, Look, Operation, Release, Renew, Update
from .port import Port
from .ports import LoopPort, ThreadsPort, process_clock
from .rules import SECOND_NS, Terms
from .stats import GroupStats, Stats, group_stats
from .task import Add, Change, Task

T = TypeVar("T")
TIMEOUT_S = 20.0
LAG_S = 0.1
LONGEST_S = 100 * 365 * 24 * 3600.0


class _Opened:
    """What both faces are given, and what they open."""

    _port: Port

    def __init__(
        self,
        journal: Journal | str = "memory",
        *,
        strict: bool = True,
        lag_s: float = LAG_S,
        most_attempts: int | None = None,
        quarantine: str = "/quarantine",
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
        dice: Dice | None = None,
    ) -> None:
        self.journal = journal_of(journal) if isinstance(journal, str) else journal
        self.told: Sequence[str] = ()  # what opening the journal found worth telling
        self._strict, self._lag_s, self._timeout_s = strict, lag_s, timeout_s
        self._terms = Terms(most_attempts, quarantine)
        self._clock, self._dice = clock, dice or random.Random().random
        self._engine: Engine | None = None

    def __repr__(self) -> str:
        state = "not open" if self._engine is None else f"{len(self._engine.state.tasks)} tasks"
        return f"<{type(self).__name__} {self.journal!r} {'strict' if self._strict else 'opportunistic'} {state}>"

    @property
    def is_open(self) -> bool:
        """Tell whether the store is open."""
        return self._engine is not None

    @property
    def is_strict(self) -> bool:
        """Tell whether an answer means that the journal has it."""
        return self._strict

    def _opened(self) -> Engine:
        if self._engine is None:
            raise StoreClosed
        return self._engine

    def _built(self, port: Port) -> Engine:
        clock, lag_s = self._clock or process_clock(), None if self._strict else self._lag_s
        return Engine(port, self.journal, clock, self._dice, self._terms, lag_s=lag_s)

    def _deadline(self) -> float:
        return self._port.now() + self._timeout_s

    def _do(self, operation: Operation[T]) -> T:
        """Ask, and block until the answer is there."""
        if self._engine is not None and (answer := self._engine.at_once(operation)) is not ABSENT:
            return answer
        return drive(self._ask(operation))

    async def _ask(self, operation: Operation[T], wait_s: float = 0.0) -> T:
        engine = self._opened()
        if (answer := engine.at_once(operation)) is not ABSENT and (answer is not None or not wait_s):
            return answer
        return await engine.ask(operation, deadline=self._port.now() + self._timeout_s, wait_s=wait_s)

    def _stats(self) -> Look[Stats]:
        engine = self._opened()
        return Look(lambda state, now_ns: _seen(engine, group_stats(state, now_ns)))


class TaskStore(_Opened):
    """Tasks for threads: they may share one store. A forked child may not.

    `journal` is `memory`, `disk:DIR`, a database's URL (`#NAME` behind it tells stores apart), or a journal.
    *Strict*: an answer means durable. Otherwise *opportunistic*: it comes at once, and a crash may lose what was answered
    within the last `lag_s` seconds.
    A task that was claimed `most_attempts` times in vain moves to the group `GROUP/quarantine`. Every call ends within
    `timeout_s` seconds (waiting in line aside), and raises StoreBusy when nothing happened, OutcomeUnknown when
    something may have.
    """

    def open(self) -> Self:
        """Read the journal. Raises JournalLocked, JournalDamaged, JournalFailed, or a DatabaseError."""
        if self._engine is None:
            self._port = ThreadsPort()
            engine = self._built(self._port)
            self.told = drive(engine.open())
            self._engine = engine
        return self

    def close(self) -> None:
        """Let the journal go, with all that was answered in it. Safe to call twice."""
        engine, self._engine = self._engine, None
        if engine is not None:
            drive(engine.close(self._deadline()))

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def update(
        self,
        owner: str,
        *,
        adds: Iterable[Add] = (),
        changes: Iterable[Change] = (),
        deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> list[Task]:
        """Add, change and delete tasks, all or nothing; return the new ones: adds in order, then changes in order.

        What is changed or deleted must exist, and be available or the owner's; what is depended on must exist.
        Raises UpdateError with all that is broken.
        """
        return self._do(Update(owner, tuple(adds), tuple(changes), tuple(deletes), tuple(depends)))

    def claim(
        self, owner: str, groups: str | Iterable[str], for_s: float, *, depends: Iterable[int] = (), wait_s: float = 0.0
    ) -> Task | None:
        """Own one available task of the groups for `for_s` seconds; None when there is none.

        With `wait_s`, stand in line that long for one to turn up. Raises UpdateError when a dependency is absent.
        """
        claim = Claim(owner, names_of(groups), duration_ns(for_s), tuple(depends))
        return drive(self._ask(claim, wait_s)) if wait_s else self._do(claim)

    def renew(self, owner: str, task: Task | int, for_s: float) -> Task:
        """Own a task of one's own for `for_s` seconds from now; return it under its new id. Raises UpdateError."""
        return self._do(Renew(owner, id_of(task), duration_ns(for_s)))

    def release(self, owner: str, task: Task | int, *, after_s: float = 0.0, error: str | None = None) -> Task:
        """Give a task of one's own back, for others to claim in `after_s` seconds; return it under its new id.

        With an `error`, this attempt counts, and the last one moves the task to quarantine. Raises UpdateError.
        """
        return self._do(Release(owner, id_of(task), duration_ns(after_s), error))

    def task(self, task_id: int) -> Task | None:
        """Return a task, or None."""
        return self._do(looks.task(task_id))

    def tasks(self, ids: Iterable[int]) -> list[Task | None]:
        """Return some tasks in the order asked for, None in the place of an absent one."""
        return self._do(looks.tasks(ids))

    def every_task(self) -> list[Task]:
        """Return all tasks, in the order of their ids."""
        return self._do(looks.every_task())

    def group(self, name: str, limit: int | None = None, *, owned: bool = False) -> list[Task]:
        """Return a group's tasks, the oldest first, at most `limit`; with `owned`, also those that are not available."""
        return self._do(looks.group(name, limit, owned=owned))

    def groups(self) -> list[str]:
        """Return the names of the groups that have tasks."""
        return self._do(looks.groups())

    def stats(self) -> Stats:
        """Return how the store is doing."""
        return self._do(self._stats())

    def snapshot(self) -> None:
        """Let the journal begin with the tasks as they are now. It happens by itself; other calls go on meanwhile."""
        drive(self._opened().snapshot(self._deadline()))

    def flush(self) -> None:
        """Return once all that was answered is durable. Raises what keeps it from being so."""
        if (behind := self._opened().behind) is not None:
            drive(behind.flush(self._deadline()))


class AsyncTaskStore(_Opened):
    """Tasks for the tasks of one asyncio loop: they may share one store. As `TaskStore`, with `await`."""

    async def open(self) -> Self:
        """See TaskStore.open."""
        if self._engine is None:
            self._port = LoopPort()
            engine = self._built(self._port)
            try:
                self.told = await engine.open()
            except BaseException:
                await self._port.close()
                raise
            self._engine = engine
        return self

    async def close(self) -> None:
        """See TaskStore.close."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        try:
            await engine.close(self._deadline())
        finally:
            await self._port.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def update(
        self,
        owner: str,
        *,
        adds: Iterable[Add] = (),
        changes: Iterable[Change] = (),
        deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> list[Task]:
        """See TaskStore.update."""
        return await self._ask(Update(owner, tuple(adds), tuple(changes), tuple(deletes), tuple(depends)))

    async def claim(
        self, owner: str, groups: str | Iterable[str], for_s: float, *, depends: Iterable[int] = (), wait_s: float = 0.0
    ) -> Task | None:
        """See TaskStore.claim."""
        return await self._ask(Claim(owner, names_of(groups), duration_ns(for_s), tuple(depends)), wait_s)

    async def renew(self, owner: str, task: Task | int, for_s: float) -> Task:
        """See TaskStore.renew."""
        return await self._ask(Renew(owner, id_of(task), duration_ns(for_s)))

    async def release(self, owner: str, task: Task | int, *, after_s: float = 0.0, error: str | None = None) -> Task:
        """See TaskStore.release."""
        return await self._ask(Release(owner, id_of(task), duration_ns(after_s), error))

    async def task(self, task_id: int) -> Task | None:
        """See TaskStore.task."""
        return await self._ask(looks.task(task_id))

    async def tasks(self, ids: Iterable[int]) -> list[Task | None]:
        """See TaskStore.tasks."""
        return await self._ask(looks.tasks(ids))

    async def every_task(self) -> list[Task]:
        """See TaskStore.every_task."""
        return await self._ask(looks.every_task())

    async def group(self, name: str, limit: int | None = None, *, owned: bool = False) -> list[Task]:
        """See TaskStore.group."""
        return await self._ask(looks.group(name, limit, owned=owned))

    async def groups(self) -> list[str]:
        """See TaskStore.groups."""
        return await self._ask(looks.groups())

    async def stats(self) -> Stats:
        """See TaskStore.stats."""
        return await self._ask(self._stats())

    def glance(self) -> Stats:
        """Return how the store is doing, but for its groups: at once, whatever it is at, and whether or not it is durable.

        Only here: between two turns of the loop nobody changes anything, as other threads may.
        """
        return _seen(self._opened(), {})

    async def snapshot(self) -> None:
        """See TaskStore.snapshot."""
        await self._opened().snapshot(self._deadline())

    async def flush(self) -> None:
        """See TaskStore.flush."""
        if (behind := self._opened().behind) is not None:
            await behind.flush(self._deadline())


def names_of(groups: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of groups, of which one may stand alone."""
    return (groups,) if isinstance(groups, str) else tuple(groups)


def id_of(task: Task | int) -> int:
    """Return the id of a task that is named either way."""
    return task if isinstance(task, int) else task.id


def duration_ns(seconds: float) -> int:
    """Return a duration in nanoseconds: none for a negative one, and for an endless one longer than anybody waits."""
    return int(min(max(0.0, seconds), LONGEST_S) * SECOND_NS)


def _seen(engine: Engine, groups: Mapping[str, GroupStats]) -> Stats:
    behind, failure, state, waiting = engine.behind, engine.snapshots.failure, engine.state, engine.waiting()
    if behind is None:
        return Stats(True, len(state.tasks), state.last_id, waiting, groups, failure=str(failure or ""))
    late = len(behind), behind.oldest_s(), behind.lag_s
    failure = behind.failure or failure
    return Stats(False, len(state.tasks), state.last_id, waiting, groups, *late, failure=str(failure or ""))
