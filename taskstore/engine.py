"""One store, one writer at a time: what callers ask meanwhile is carried out together and leaves as one append.

There is no thread for it. The first caller that finds the engine idle leads: it carries out what has come in, appends the
records, and answers when they are durable; then it wakes another caller to lead (flat combining). Looking is an operation
like others, so nobody is shown what a crash could still take back. In an opportunistic store the answer comes at once, and
`Behind` appends the records soon.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from itertools import count
from typing import Final, TypeVar

from ..database import DatabaseError, Event
from .batch import Batch
from .behind import Behind
from .call import Call
from .clock import Clock
from .errors import Fenced, Interrupted, OutcomeUnknown, StoreBusy, StoreClosed, TaskStoreError, UpdateError
from .group import Dice
from .journal import Journal
from .keeping import Keeping
from .operations import Claim, Freeze, Operation, Release
from .port import Port
from .rules import Terms
from .snapshots import Snapshots
from .work import Work

T = TypeVar("T")


class Absent(Enum):
    """No answer, where None would be one."""

    ABSENT = 0


ABSENT: Final = Absent.ABSENT
GATHER_SHARE = 0.5  # of the last append's time, at most, is spent on waiting for company
SECOND_NS = 1_000_000_000
SNAPSHOT_S = 600.0
LOOK_S = 1.0  # whoever stands in line looks this often, should nobody be left to keep the time


class Engine:
    """A store's state and its journal. Threads or tasks share it, as the port says."""

    def __init__(
        self, port: Port, journal: Journal, clock: Clock, dice: Dice, terms: Terms, *, lag_s: float | None = None
    ) -> None:
        self._port, self._journal, self._clock = port, journal, clock
        self._inbox: deque[Call] = deque()
        self._numbers = count(1)
        self._turn = port.mutex()
        self._company, self._expected = (
            port.event(),
            0,
        )  # how many a leader waits for, and what tells it that they are there
        self._ended: TaskStoreError | None = StoreClosed()
        self._open = False
        self._work = Work(clock, dice, terms)
        self.state = self._work.state
        self.behind = Behind(port, journal, lag_s) if lag_s is not None else None
        self.snapshots = Snapshots(port, wanted=journal.keeps)
        self._keeping = Keeping(port, journal)
        self._keeps = journal.keeps or self.behind is not None

    async def open(self) -> Sequence[str]:
        """Read the journal, and begin to answer. Return what a person should be told."""
        told = await self._journal.open(self._port, self._work.replay)
        self._open = True
        self._clock.start_from(self.state.at_ns)
        if self.behind is not None:
            await self.behind.open(self.state.last_id, self._clock.now_ns(), self._end_soon)
        self._ended = None
        return told

    async def close(self, deadline: float) -> None:
        """Answer what has come in, write down what is behind, and let the journal go. Safe to call twice."""
        if not self._open:
            return
        self._open = False
        try:
            await self._take_turn(deadline)
            self._end(StoreClosed())
            self._turn.give()
            if self.behind is not None:
                await self.behind.close(deadline)
            await self.snapshots.ended()
        finally:
            await self._journal.close()

    def at_once(self, operation: Operation[T]) -> T | Absent:
        """Carry an operation out here and now; or return ABSENT where there is a journal, or somebody else, to think of."""
        if self._keeps or self._inbox or not self._turn.take():
            return ABSENT
        try:
            if self._ended is not None or not self._work.is_alone() or type(operation) is Freeze:
                return ABSENT
            return self._work.carry_at_once(operation)
        except UpdateError:
            raise
        except BaseException:
            self._end(Interrupted())  # the state may show half a change
            raise
        finally:
            self._turn.give()
            if self._inbox:
                self._wake_next()

    async def ask(self, operation: Operation[T], *, deadline: float, wait_s: float = 0.0) -> T:
        """Carry an operation out and return its answer, or raise what kept it from being carried out.

        A claim that finds nothing stands in line for `wait_s` seconds. Raises UpdateError, StoreBusy when nothing happened
        before `deadline`, OutcomeUnknown when something may have, JournalFailed, Fenced, StoreClosed.
        """
        if not self._inbox and not wait_s and self._turn.take():
            try:
                if self._is_plain() and not isinstance(operation, Freeze):
                    return await self._carry_alone(operation, deadline)
            finally:
                self._give_turn()
        return await self._ask_in_turn(operation, deadline + wait_s, self._port.now() + wait_s if wait_s > 0 else 0.0)

    async def _ask_in_turn(self, operation: Operation[T], deadline: float, stand_until: float) -> T:
        call = Call(operation, next(self._numbers), deadline, stand_until)
        call.event = self._port.event()
        self._inbox.append(call)
        if self._expected and len(self._inbox) >= self._expected:
            self._company.set()
        try:
            await self._until_done(call, call.event)
        except BaseException:
            self._leave(call)
            raise
        if call.error is not None:
            raise call.error
        answer: T = call.answer
        return answer

    def _is_plain(self) -> bool:
        """Tell whether a single caller with the turn has nobody else to think of."""
        keeping = self._keeping
        nobody = self._work.is_alone() and keeping.unsettled is None and keeping.crowd <= 1
        return nobody and self.behind is None and self._ended is None

    async def _carry_alone(self, operation: Operation[T], deadline: float) -> T:
        """Do as `_carry_out` does, without its ceremony: most callers meet nobody, and it would cost them half their time."""
        batch = Batch()
        try:
            answer: T = self._work.carry(operation, batch.applying(self.state), self._work.now_ns())
        except UpdateError:
            raise
        except BaseException:
            self._end(Interrupted())  # the state may show half a change
            raise
        if batch.records:
            await self._append_alone(operation, answer, batch, deadline)
        return answer

    async def _append_alone(self, operation: Operation[T], answer: T, batch: Batch, deadline: float) -> None:
        try:
            error = await self._keeping.append(batch, deadline)
        except BaseException:
            call = Call(operation, 0, deadline, 0.0)
            call.left = True
            batch.answer(call, answer, wrote=True)  # whoever settles it gives back what nobody knows of
            raise
        if error is not None:
            await self._after(batch, error)
            raise error
        self._count(batch)

    def waiting(self) -> int:
        """Return how many stand in line. For a look: it needs the turn."""
        return len(self._work.line.calls())

    async def snapshot(self, deadline: float) -> None:
        """Take a snapshot, and forget what of the journal it covers; or wait for the one that is being taken."""
        if not self.snapshots.begin():
            await self.snapshots.over(deadline - self._port.now())
            return
        try:
            await self._journal.snapshot(*await self.ask(Freeze(), deadline=deadline))
        except Fenced as error:
            self._end_soon(error)
            raise
        finally:
            self.snapshots.finish(len(self.state.tasks))

    # --- who leads ----------------------------------------------------------------------------------------------------

    async def _until_done(self, call: Call, event: Event) -> None:
        while not call.done:
            if self._turn.take():
                try:
                    await self._lead(call)
                finally:
                    self._give_turn()
            if not call.done:
                await self._wait(call, event)

    async def _take_turn(self, deadline: float) -> None:
        while not self._turn.take():
            if self._port.now() > deadline:
                raise StoreBusy
            await self._port.sleep(0.001)

    def _give_turn(self) -> None:
        if self._work.line or self._work.line.keeper is not None:
            self._work.line.elect(self.state)
        self._turn.give()
        if self._inbox:
            self._wake_next()
        elif (batch := self._keeping.unsettled) is not None:
            for call, *_ in batch.answers:
                call.wake()

    def _wake_next(self) -> None:
        with suppress(IndexError):  # another thread may have emptied it
            self._inbox[0].wake()

    async def _lead(self, call: Call) -> None:
        if self._ended is not None:
            self._end(self._ended)
        if (unsettled := self._keeping.unsettled) is not None:
            await self._after(unsettled, await self._keeping.settle(unsettled, call.deadline))
        while self._ended is None and (not call.done or self._work.owed):
            if not self._inbox and not self._work.is_due():
                return
            if self._keeping.crowd > 1:
                await self._gather()
            await self._carry_out(call.deadline)

    async def _gather(self) -> None:
        """Wait a moment for those whom the last append answered: they come back all at once. A lone caller waits for none."""
        self._company.clear()
        self._expected = self._keeping.crowd
        if len(self._inbox) < self._expected:
            await self._company.wait(self._keeping.trip_s * GATHER_SHARE)
        self._expected = 0

    # --- who waits ----------------------------------------------------------------------------------------------------

    async def _wait(self, call: Call, event: Event) -> None:
        """Wait until it is answered or has to lead. One of those in line also keeps the time for all of them."""
        now = self._port.now()
        if not call.standing or call.last_look:
            if now >= call.deadline:
                self._give_up(call)
            patience_s = call.deadline - now
        elif now >= call.stand_until:
            call.last_look = True
            self._inbox.append(call)
            return
        else:
            patience_s = min(LOOK_S, call.stand_until - now)
            due_ns = self._work.line.due_ns
            if self._work.line.keeper is call and due_ns is not None:
                patience_s = min(patience_s, max(0.0, (due_ns - self._clock.now_ns()) / SECOND_NS))
        if await event.wait(patience_s) and not call.done:
            event.clear()

    def _give_up(self, call: Call) -> None:
        try:
            self._inbox.remove(call)
        except ValueError:
            call.left = True
            if not call.done:
                raise OutcomeUnknown from None
        else:
            raise StoreBusy

    def _leave(self, call: Call) -> None:
        """See to it that nothing is left of a call whose caller is gone: no place, and no task that nobody knows of."""
        call.left = True
        with suppress(ValueError):
            self._inbox.remove(call)
        if call.done and isinstance(call.operation, Claim) and call.answer is not None:
            self._port.finish(self._give_back(Release(call.answer.owner, call.answer.id)))
        elif self._turn.take():
            self._give_turn()  # somebody else keeps the time, or leads

    async def _give_back(self, release: Release) -> None:
        with suppress(TaskStoreError):
            await self.ask(release, deadline=self._port.now() + LOOK_S)

    # --- carrying out ---------------------------------------------------------------------------------------------------

    async def _carry_out(self, deadline: float) -> None:
        if self.behind is not None:
            await self.behind.room(deadline)
        calls = self._taken()
        batch = self._done(calls)
        if not batch.records:
            await self._after(batch, None)
        elif self.behind is not None:
            self.behind.take(batch.records, self.state.last_id)
            await self.behind.covered(self.state.last_id, deadline)  # its ids are in use from here on
            await self._after(batch, None)
        else:
            error = await self._keeping.append(batch, deadline)
            self._keeping.crowd += len(self._inbox)  # those who came meanwhile, and those who are answered now
            await self._after(batch, error)

    def _taken(self) -> list[Call]:
        calls = []
        while self._inbox:
            call = self._inbox.popleft()
            if not call.done and not call.left:
                calls.append(call)
        return calls

    def _done(self, calls: list[Call]) -> Batch:
        try:
            return self._work.done(calls)
        except BaseException:  # the state may show half a change
            for call in calls:
                call.finish(None, Interrupted())
            self._end(Interrupted())
            raise

    async def _after(self, batch: Batch, error: Exception | None) -> None:
        """Tell the callers of a batch what became of it."""
        if error is None:
            for call in batch.freezing:
                await self._freeze(call)
            self._work.owed += batch.tell()
            self._count(batch)
        elif isinstance(error, Fenced):
            batch.fail(error)
            self._end(error)
        else:
            self._take_back(batch, error)

    def _count(self, batch: Batch) -> None:
        if self.snapshots.count(len(batch.records)):
            self.snapshots.start(lambda: self.snapshot(self._port.now() + SNAPSHOT_S))

    def _take_back(self, batch: Batch, error: Exception) -> None:
        """Undo a batch: who changed something is told why, who only looked looks again, who stood in line stands there."""
        batch.undo(self.state)
        for call, _, _, wrote in reversed(batch.answers):
            if not wrote:
                self._inbox.appendleft(call)
            elif call.stand_until and not call.last_look:
                self._work.line.join(call)
            else:
                call.finish(None, error)

    async def _freeze(self, call: Call) -> None:
        try:
            if self.behind is not None:
                await self.behind.flush(call.deadline)
            cut, parts = await self._journal.cut(), self.state.parts()
        except (TaskStoreError, DatabaseError) as error:
            call.finish(None, error)
            return
        if self.behind is not None:
            parts.append(self.behind.reservation(self.state.at_ns))
        call.finish((cut, parts))

    def _end_soon(self, error: TaskStoreError) -> None:
        """Answer nobody any more: whoever has the turn next tells those who wait."""
        self._ended = error
        if (keeper := self._work.line.keeper) is not None:
            keeper.wake()

    def _end(self, error: TaskStoreError) -> None:
        """Answer nobody any more. The turn is the caller's."""
        self._ended = error
        for call in self._work.line.calls():
            self._work.line.leave(call)
            call.finish(None, error)
        while self._inbox:
            self._inbox.popleft().finish(None, error)
