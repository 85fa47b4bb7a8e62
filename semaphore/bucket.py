"""One bucket, one writer at a time in this process: what callers ask meanwhile leaves together in the next batch.

There is no thread for it. The first caller that finds the bucket idle leads: it reads, plans, commits and answers, until
its own operation is answered; then it wakes another caller to lead (flat combining). The batch on its way belongs to the
bucket: a leader that is cancelled or late leaves it there, and the next one takes its answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..database import Applied, Batch, DatabaseError, Outcome, Port, Refused, Row, Slice, Unavailable, Unknown
from ..database.port import Pending
from .errors import BeingDeleted, HoldUnknown, RowsDisagree
from .layout import BucketRef
from .operations import Answer, Granted, Operation
from .plan import Ask, Plan, Setting, plan
from .rows import SNAPSHOT, TOKENS, owner_key, waiters_behind
from .settle import is_dead, kill, pause_s
from .state import State, from_rows, waiter_from_row

Dice = Callable[[], float]
MOST_BLOCKED = 10  # times that an owner's row refuses a batch and no reading shows its token
LONGEST_BACKOFF_S = 0.25


class Call:
    """An operation on its way through a bucket. Whoever takes `claim` decides: the leader sends it, or its caller gives up."""

    __slots__ = (
        "abandoned",
        "answer",
        "arrived",
        "blocked",
        "claim",
        "deadline",
        "error",
        "event",
        "operation",
        "tried",
        "unsure",
    )

    def __init__(self, port: Port, operation: Operation, deadline: float) -> None:
        self.operation, self.deadline, self.arrived = operation, deadline, port.now()
        self.event, self.claim = port.event(), port.mutex()
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.unsure = self.abandoned = False
        self.blocked = 0
        self.tried: set[tuple[int, int]] = set()

    def asked(self, state: State) -> Ask:
        """Return it as a plan sees it."""
        return Ask(self.operation, state.as_of >= self.arrived, self.unsure, frozenset(self.tried))

    @property
    def done(self) -> bool:
        """Tell whether it is answered, one way or the other."""
        return self.answer is not None or self.error is not None

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self.error = error
        self.event.set()


@dataclass(slots=True)
class Flight:
    """A batch on its way, until it is certain what became of it. `sent` is `batch`, or the one that makes it impossible."""

    plan: Plan
    calls: list[Call]
    batch: Batch
    sent: Batch
    pending: Pending[Outcome] | None = None
    unsure: bool = False
    attempts: int = 0
    again_at: float = 0.0


@dataclass(slots=True)
class _Wanted:
    """What the leader must read before it plans."""

    look: bool = True
    serial: bool = True


class Bucket:
    """All that this process does on one bucket. Threads or tasks share it, as the port says."""

    def __init__(self, port: Port, ref: BucketRef, client_id: str, dice: Dice) -> None:
        self.ref = ref
        self._port, self._client_id, self._dice = port, client_id, dice
        self._inbox: deque[Call] = deque()
        self._leading = port.mutex()
        self._state: State | None = None
        self._wanted = _Wanted()
        self._flight: Flight | None = None
        self._refusals = 0
        self._place = ref.tokens.start + int(dice() * len(ref.tokens))

    async def ask(self, operation: Operation, deadline: float) -> Answer:
        """Carry an operation out, or raise what kept it from being carried out.

        Raises Unavailable when nothing happened before `deadline` (on the port's clock), HoldUnknown when something may
        have, BeingDeleted, RowsDisagree, DatabaseError.
        """
        call = Call(self._port, operation, deadline)
        self._inbox.append(call)
        try:
            await self._until_answered(call)
        except BaseException:
            call.abandoned = True
            call.claim.take()  # where it was not sent yet, it never will be
            raise
        if call.error is not None:
            raise call.error
        assert call.answer is not None
        return call.answer

    # --- who leads ---------------------------------------------------------------------------------------------------

    async def _until_answered(self, call: Call) -> None:
        while not call.done:
            if self._leading.take():
                try:
                    await self._lead(call)
                finally:
                    self._leading.give()
                    self._wake_a_leader()
            if call.done:
                return
            if (left_s := call.deadline - self._port.now()) <= 0:
                self._give_up(call)
                return
            await call.event.wait(left_s)
            call.event.clear()

    def _wake_a_leader(self) -> None:
        for call in (*(self._flight.calls if self._flight else ()), *self._inbox):
            if not call.done and not call.abandoned:
                call.event.set()
                return

    def _give_up(self, call: Call) -> None:
        """End a call at its deadline, and nobody else's."""
        semaphore, owner_id = self.ref.semaphore, call.operation.owner_id
        if call.claim.take() and not call.unsure:
            call.error = Unavailable(
                f"Semaphore {semaphore!r}: the database did not come to it in time. Nothing was changed; try again."
            )
        else:
            call.abandoned = True
            call.error = HoldUnknown(semaphore, owner_id, wanted=type(call.operation).__name__.lower())

    async def _lead(self, call: Call) -> None:
        try:
            while not call.done and self._port.now() < call.deadline:
                if self._flight is not None:
                    await self._land(self._flight, call.deadline)
                else:
                    await self._take_off(call.deadline)
        except BaseException:
            self._wanted = _Wanted()  # interrupted somewhere: what is known may be half of what happened
            raise

    # --- reading, planning, sending ----------------------------------------------------------------------------------

    async def _take_off(self, deadline: float) -> None:
        """Send the next batch, after reading what it needs; answer what needs none."""
        try:
            state = await self._known_state(deadline)
        except (DatabaseError, BeingDeleted) as error:
            self._fail(self._claimed_calls(), error)
            return
        if state is None:
            return
        calls = self._claimed_calls()
        try:
            planned = plan(state, [call.asked(state) for call in calls], self._setting())
            self._send(planned, [calls[index] for index, _ in planned.after])
        except BaseException:
            self._put_back(reversed(calls))
            raise
        for index, answer in planned.at_once:
            self._answer(calls[index], answer)
        self._put_back(calls[index] for index in reversed(planned.later))

    def _claimed_calls(self) -> list[Call]:
        """Take everything out of the inbox that its caller has not given up."""
        calls = []
        while self._inbox:
            call = self._inbox.popleft()
            if call.claim.take():
                calls.append(call)
        return calls

    def _put_back(self, calls: Iterable[Call]) -> None:
        for call in calls:
            call.claim.give()
            self._inbox.appendleft(call)

    def _setting(self) -> Setting:
        mark = int(self._dice() * 2**32) - 2**31  # any int; drawn anew for each batch, so that it never seems unmoved
        return Setting(self._client_id, self._port.now(), self._port.wall_ms(), mark, self._place)

    def _send(self, planned: Plan, calls: list[Call]) -> None:
        if planned.writes:
            batch = Batch(TOKENS, self.ref.partition, tuple(planned.writes))
            self._flight = Flight(planned, calls, batch, batch)
        elif planned.look:
            self._wanted = _Wanted()

    async def _known_state(self, deadline: float) -> State | None:
        """Return the state to plan from, read anew where that is wanted; None when the deadline comes first."""
        if self._state is None or self._wanted.look:
            self._state = await self._read(deadline, serial=self._wanted.serial or self._state is None)
            if self._state is not None:
                self._wanted = _Wanted(look=False)
        if self._state is not None and (self._state.closed_ms or 0) >= self.ref.created_ms:
            self._wanted = _Wanted()
            raise BeingDeleted(self.ref.semaphore)
        return self._state

    async def _read(self, deadline: float, *, serial: bool) -> State | None:
        began_at = self._port.now()
        rows = await self._slice(SNAPSHOT, deadline, serial=serial)
        if rows is None:
            return None
        state = from_rows(rows, self.ref.tokens, began_at=began_at)
        if state.last > state.head:
            rows = await self._slice(waiters_behind(state.head), deadline, serial=serial)
            if rows is None:
                return None
            for waiter in filter(None, map(waiter_from_row, rows)):
                state.join(waiter)
        return state

    async def _slice(self, part: Slice, deadline: float, *, serial: bool) -> list[Row] | None:
        pending = self._port.begin_read(TOKENS, self.ref.partition, (part,), serial=serial)
        return pending.result() if await pending.wait(deadline - self._port.now()) else None

    # --- taking the answer -------------------------------------------------------------------------------------------

    async def _land(self, flight: Flight, deadline: float) -> None:
        """Take the answer of the batch on its way; send it again where the last one left it open."""
        try:
            outcome = await self._outcome(flight, deadline)
        except DatabaseError as error:
            if flight.unsure:  # this attempt came to nothing, an earlier one is still open
                self._try_again_later(flight, answered=True)
            else:
                self._flight = None
                self._fail(flight.calls, error)
            return
        match outcome:
            case None:
                return
            case Applied() if flight.sent is flight.batch:
                self._landed(flight)
            case Applied():
                self._lost(flight)
            case Unknown(answered=answered):
                flight.unsure = True
                self._try_again_later(flight, answered=answered)
            case Refused() as refused if flight.unsure and flight.sent is flight.batch:
                self._settled(flight, refused)
            case Refused() as refused:
                self._count_blocked(flight, refused)
                self._lost(flight)
                if not flight.unsure:
                    await self._back_off(deadline)

    async def _outcome(self, flight: Flight, deadline: float) -> Outcome | None:
        if flight.pending is None:
            if (pause := min(flight.again_at, deadline) - self._port.now()) > 0:
                await self._port.sleep(pause)
            if self._port.now() < flight.again_at:
                return None
            flight.pending = self._port.begin_commit(flight.sent)
        if not await flight.pending.wait(deadline - self._port.now()):
            return None
        pending, flight.pending = flight.pending, None
        return pending.result()

    def _try_again_later(self, flight: Flight, *, answered: bool) -> None:
        flight.again_at = self._port.now() + pause_s(flight.attempts, self._dice(), answered=answered)
        flight.attempts += 1

    def _settled(self, flight: Flight, refused: Refused) -> None:
        """An attempt before this one may have applied, or may yet: make it certain that it may not."""
        if is_dead(flight.batch, refused):
            self._lost(flight)
        elif (killing := kill(flight.batch)) is not None:
            flight.sent, flight.attempts = killing, 0
        else:
            self._try_again_later(flight, answered=True)

    def _landed(self, flight: Flight) -> None:
        self._flight, self._refusals = None, 0
        assert self._state is not None
        flight.plan.apply(self._state)
        granted = [number for number, token in flight.plan.tokens.items() if token.holder is not None]
        if granted:
            self._place = granted[-1] + 1  # go on from there: fewer meet at one token
        for call, (_, answer) in zip(flight.calls, flight.plan.after, strict=True):
            self._answer(call, answer)

    def _lost(self, flight: Flight) -> None:
        """Plan its operations anew, from a new reading. Where an attempt did apply, that reading shows it."""
        self._flight = None
        self._wanted = _Wanted(serial=flight.unsure)
        if flight.unsure:
            for call, (_, answer) in zip(flight.calls, flight.plan.after, strict=True):
                call.unsure = True
                if isinstance(answer, Granted):
                    call.tried.add((answer.token, answer.fence))
        self._put_back(call for call in reversed(flight.calls) if not call.done and not call.abandoned)

    def _count_blocked(self, flight: Flight, refused: Refused) -> None:
        """Give up on an owner whose row stands in the way again and again, though no token names it."""
        for call in flight.calls:
            call.blocked += owner_key(call.operation.owner_id) in refused.rows
            if call.blocked > MOST_BLOCKED:
                call.fail(RowsDisagree(self.ref.semaphore, call.operation.owner_id))

    async def _back_off(self, deadline: float) -> None:
        self._refusals += 1
        longest = min(LONGEST_BACKOFF_S, 0.002 * 2 ** min(self._refusals, 10))
        await self._port.sleep(max(0.0, min(longest * self._dice(), deadline - self._port.now())))

    def _answer(self, call: Call, answer: Answer) -> None:
        call.answer = answer
        call.event.set()

    def _fail(self, calls: Iterable[Call], error: Exception) -> None:
        for call in calls:
            call.fail(error)
