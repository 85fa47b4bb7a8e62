"""A worker's hands from the first claim to the last end, and how they are stopped."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from math import isfinite
from typing import Generic, Protocol

from ..database import Event, Unavailable
from .errors import BadWorker, JournalFailed, OutcomeUnknown, StoreBusy
from .group import Dice
from .held import F, Held
from .outcome import Outcome
from .port import Background, Port
from .slot import Slot
from .task import Add, Change, Task

log = logging.getLogger(__name__)

PASSING = (StoreBusy, OutcomeUnknown, JournalFailed, Unavailable, OSError)  # the store may be well again in a while
LONG_S = 3600.0


class Store(Protocol):
    """What a worker asks of a store, to be awaited."""

    async def claim(
        self, owner: str, groups: str | Iterable[str], for_s: float, *, wait_s: float = 0.0
    ) -> Task | None: ...

    async def update(
        self, owner: str, *, adds: Iterable[Add] = (), changes: Iterable[Change] = (), deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> list[Task]: ...  # fmt: skip

    async def renew(self, owner: str, task: Task | int, for_s: float) -> Task: ...

    async def release(
        self, owner: str, task: Task | int, *, after_s: float = 0.0, error: str | None = None
    ) -> Task: ...

    async def task(self, task_id: int) -> Task | None: ...

    async def group(self, name: str, limit: int | None = None, *, owned: bool = False) -> list[Task]: ...


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait before the next try: twice as long each time, and by chance up to half less."""

    first_s: float
    most_s: float

    def after(self, tries: int, dice: Dice) -> float:
        """Return the pause after so many tries in vain."""
        return float(min(self.most_s, self.first_s * 2 ** min(max(0, tries - 1), 64)) * (0.5 + dice() / 2))


@dataclass(frozen=True, slots=True)
class Terms:
    """How a worker works. Raises BadWorker where that cannot be."""

    groups: tuple[str, ...]
    owner: str
    for_s: float
    wait_s: float
    concurrency: int
    retry: Pauses
    quarantine: str
    troubled: Pauses = field(default=Pauses(0.1, 10.0))

    def __post_init__(self) -> None:
        if not self.groups:
            raise BadWorker("A worker needs a group to claim from.")
        if not self.owner:
            raise BadWorker("A worker's owner is a string that is not empty, and no other worker's.")
        if not (isfinite(self.for_s) and self.for_s > 0):
            raise BadWorker(f"for_s is a number of seconds above 0, not {self.for_s!r}.")
        if self.concurrency < 1:
            raise BadWorker(f"concurrency is 1 or more, not {self.concurrency!r}.")
        if not self.quarantine:
            raise BadWorker("quarantine is the end of a group's name, and not empty.")

    def owners(self) -> list[str]:
        """Return a name for each of the hands."""
        return [self.owner] if self.concurrency == 1 else [f"{self.owner}/{n + 1}" for n in range(self.concurrency)]


class Shift(Generic[F]):
    """The hands of a worker at work."""

    def __init__(
        self,
        port: Port,
        store: Store,
        terms: Terms,
        handle: Callable[[Held[F]], Awaitable[Outcome | None]],
        interrupt: Callable[[], bool],
        flag: Callable[[], F],
        dice: Dice,
    ) -> None:
        self.port, self.store, self.terms = port, store, terms
        self.handle, self.flag, self.dice = handle, flag, dice
        self.done = self.failed = self.lost = 0
        self.stopping, self.abandoned, self.changed = port.event(), port.event(), port.event()
        self._interrupt = interrupt
        self._give_back_at: float | None = None
        self._error: BaseException | None = None
        self._tries: dict[Slot[F], int] = {}
        self._slots = [Slot(self, owner) for owner in terms.owners()]

    async def run(self) -> None:
        """Work until it is stopped. Raises what ended it otherwise."""
        works = [self._begun(slot) for slot in self._slots]
        try:
            await self._until_over()
        except BaseException:
            self.stop(0.0)
            await self._abandon(works)
            raise
        if not all(slot.gone for slot in self._slots):
            await self._abandon(works)
        else:
            await _all_ended(works)
        if self._error is not None:
            raise self._error

    def stop(self, timeout_s: float | None) -> None:
        """Claim nothing more. What is in hand is given back after so long, or, the second time, at once."""
        if self.stopping.is_set() or timeout_s is not None:
            self._give_back_at = self.port.now() + (timeout_s or 0.0)
        self.stopping.set()
        self.changed.set()

    def fail(self, error: BaseException) -> None:
        """End with an error: the first one is told."""
        if self._error is None:
            self._error = error
        self.stopping.set()
        self.changed.set()

    def note(self, error: Exception) -> None:
        """Go on, or end, as an error of the store asks for."""
        if not isinstance(error, PASSING):
            self.fail(error)
        log.warning("the store: %s", error)

    async def back_off(self, slot: Slot[F], error: Exception, until: Event) -> None:
        """Wait a while after an error that may pass, longer each time. Raises any other one."""
        if not isinstance(error, PASSING):
            raise error
        tries = self._tries[slot] = self._tries.get(slot, 0) + 1
        log.warning("the store, try %d: %s", tries, error)
        await until.wait(self.terms.troubled.after(tries, self.dice))

    def goes_well(self, slot: Slot[F]) -> None:
        """Forget the errors before."""
        self._tries.pop(slot, None)

    def _begun(self, slot: Slot[F]) -> Background:
        self.port.begin(slot.keep())
        return self.port.begin(slot.work())

    async def _until_over(self) -> None:
        while not all(slot.gone for slot in self._slots):
            at = self._give_back_at
            left_s = LONG_S if at is None else at - self.port.now()
            if left_s <= 0:
                return
            if await self.changed.wait(left_s):
                self.changed.clear()

    async def _abandon(self, works: list[Background]) -> None:
        self.abandoned.set()
        await _all_ended([self.port.begin(slot.let_go()) for slot in self._slots])
        if self._interrupt():
            await _all_ended(works)


async def _all_ended(backgrounds: list[Background]) -> None:
    for each in backgrounds:
        await each.ended()
