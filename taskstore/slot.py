"""One of the hands of a worker: it claims a task, has it handled while it is renewed, and ends it; then the next one.

What ends a task names the id that it has then. A renewal changes the id, so the two take turns; and where a renewal was not
answered, whoever comes next looks under which id the task goes on. An end that was not answered is tried again: it
names the same id, so it happens once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic

from .errors import ClaimLost, Quarantine, UpdateError
from .held import F, Held
from .outcome import Outcome
from .task import Change, Task

if TYPE_CHECKING:
    from .shift import Shift

log = logging.getLogger(__name__)

TICKS = 12  # looks in the time of a claim
LOOK_S = 1.0
End = Callable[[Task], Awaitable[object]]


class Slot(Generic[F]):
    """Works at one task at a time, under an owner name of its own."""

    def __init__(self, shift: Shift[F], owner: str) -> None:
        self.owner, self.gone = owner, False
        self.held: Held[F] | None = None
        self._shift, self._store, self._terms = shift, shift.store, shift.terms
        self._tick = shift.port.event()

    async def work(self) -> None:
        """Claim and work until the shift ends."""
        shift = self._shift
        try:
            while not shift.stopping.is_set():
                if (held := await self._claimed()) is not None:
                    await self._do(held)
        except BaseException as error:  # whatever it is, the others are to end too, and the caller is to see it
            shift.fail(error)
        finally:
            self.gone = True
            self._tick.set()
            shift.changed.set()

    async def keep(self) -> None:
        """Renew what is held, at a third of the claim, until the work ends."""
        tick_s = self._terms.for_s / TICKS
        try:
            while not self.gone:
                await self._tick.wait(tick_s)
                held = self.held
                if held is not None and held.is_due(tick_s) and held.turn.take():
                    try:
                        await self._renew(held)
                    finally:
                        held.turn.give()
                        held.free.set()
        except BaseException as error:
            self._shift.fail(error)

    async def let_go(self) -> None:
        """Give back what is held, from under the handler's hands. What is being ended is waited for."""
        held = self.held
        if held is None:
            return
        if not await self._turn_of(held):
            await self._over(held)
            return
        held.lost.set()
        try:
            if await self._is_there(held):
                await self._store.release(self.owner, held.task)
        except Exception as error:
            log.warning("%r was not given back: %s. It comes back when its claim ends.", held, error)

    async def _claimed(self) -> Held[F] | None:
        terms, shift = self._terms, self._shift
        try:
            task = await self._store.claim(self.owner, terms.groups, terms.for_s, wait_s=terms.wait_s)
        except Exception as error:
            await shift.back_off(self, error, shift.stopping)
            return None
        shift.goes_well(self)
        return self._taken(task) if task is not None else None

    def _taken(self, task: Task) -> Held[F]:
        port = self._shift.port
        self.held = Held(task, self._terms.for_s, port.now, self._shift.flag(), port.mutex(), port.event())
        return self.held

    async def _do(self, held: Held[F]) -> None:
        try:
            if (
                self._shift.stopping.is_set()
            ):  # looked at after `held` is set: whoever stops us sees the one or the other
                await self._unharmed(held)
            else:
                await self._handle(held)
        finally:
            self.held = None
            held.free.set()

    async def _over(self, held: Held[F]) -> None:
        while self.held is held:
            held.free.clear()
            if self.held is held:
                await held.free.wait(LOOK_S)

    async def _handle(self, held: Held[F]) -> None:
        try:
            outcome = await self._shift.handle(held)
        except ClaimLost as error:
            await self._failed(held, error)
        except Quarantine as reason:
            await self._set_aside(held, str(reason))
        except Exception as error:
            log.warning("%r failed", held, exc_info=True)
            await self._failed(held, error)
        except BaseException:
            await self._unharmed(held)
            raise
        else:
            await self._done(held, outcome)

    # --- ends -----------------------------------------------------------------------------------------------------------

    async def _done(self, held: Held[F], outcome: Outcome | None) -> None:
        outcome = outcome if outcome is not None else Outcome()

        def end(task: Task) -> Awaitable[object]:
            return self._store.update(self.owner, **outcome.against(task.id, held.ids))

        try:
            if await self._ended(held, end):
                self._shift.done += 1
        except UpdateError as error:
            log.warning("what became of %r was refused: %s", held, error)
            await self._failed(held, error)

    async def _failed(self, held: Held[F], error: Exception) -> None:
        text, after_s = f"{type(error).__name__}: {error}", self._terms.retry.after(held.attempt, self._shift.dice)
        if await self._ended(held, lambda task: self._store.release(self.owner, task, after_s=after_s, error=text)):
            self._shift.failed += 1

    async def _set_aside(self, held: Held[F], reason: str) -> None:
        suffix = self._terms.quarantine
        group = held.group if held.group.endswith(suffix) else held.group + suffix

        def end(task: Task) -> Awaitable[object]:
            return self._store.update(self.owner, changes=[Change(task.id, group=group, error=reason)])

        if await self._ended(held, end):
            self._shift.failed += 1

    async def _unharmed(self, held: Held[F]) -> None:
        await self._ended(held, lambda task: self._store.release(self.owner, task))

    async def _ended(self, held: Held[F], end: End) -> bool:
        """End a task under the id that it has, and tell so; or tell that it was lost. Raises UpdateError for other tasks."""
        if held.ending or await self._turn_of(held):
            while not held.lost.is_set():
                try:
                    if await self._is_there(held):
                        await end(held.task)
                        self._shift.goes_well(self)
                        return True
                except UpdateError as error:
                    self._refused(held, error)
                except Exception as error:
                    held.in_doubt = True
                    await self._shift.back_off(self, error, self._shift.abandoned)
                    if self._shift.abandoned.is_set():
                        break
        self._shift.lost += 1
        log.warning("%r: its end was not recorded", held)
        return False

    def _refused(self, held: Held[F], error: UpdateError) -> None:
        if not held.is_named_in(error):
            raise error
        if not held.in_doubt:  # otherwise look again: a renewal has come through after all
            held.lost.set()

    # --- renewing -------------------------------------------------------------------------------------------------------

    async def _renew(self, held: Held[F]) -> None:
        began_at = self._shift.port.now()
        try:
            if await self._is_there(held):
                held.renewed(await self._store.renew(self.owner, held.task, self._terms.for_s), began_at)
        except UpdateError as error:
            self._refused(held, error)
        except Exception as error:
            held.in_doubt = True
            self._shift.note(error)
        if held.is_lost:
            log.warning("%r: the claim is lost", held)

    async def _is_there(self, held: Held[F]) -> bool:
        """Tell whether a task is still held. Where something went without an answer, look under which id."""
        if held.in_doubt and await self._store.task(held.task.id) is None:
            found = filter(held.may_be, await self._store.group(held.group, owned=True))
            if (task := max(found, key=lambda each: each.id, default=None)) is None:
                held.lost.set()
                return False
            held.found(task)
        return True

    async def _turn_of(self, held: Held[F]) -> bool:
        """Take the turn for good, once no renewal is under way. Tell whether nobody else has done so."""
        while not held.turn.take():
            held.free.clear()
            if held.ending:
                return False
            if not held.turn.take():
                await held.free.wait(LOOK_S)
                continue
            break
        held.ending = True
        held.free.set()
        return True
