"""One bucket, one writer at a time in this process: what callers ask meanwhile leaves together in the next batch.

There is no thread for it. The first caller that finds the bucket idle leads: it reads, plans, commits and answers, until
its own operation is answered; then it wakes another caller to lead (flat combining). The batch on its way belongs to the
bucket: a leader that is cancelled or late leaves it there, and the next one takes its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from ..database import (
    Applied,
    Batch,
    ClosedError,
    DatabaseError,
    Outcome,
    Port,
    Refused,
    StatementRejected,
    Unavailable,
    Unknown,
)
from .answered import Answered
from .call import Call
from .cancellation import Cancellation
from .errors import BeingDeleted, HoldUnknown, RowsDisagree
from .flight import Flight
from .inbox import Inbox
from .layout import BucketRef
from .mark import is_kept
from .operations import Answer, Cancel, Granted, Operation, Queued, Renewed, Stay, Stayed
from .plan import plan
from .planned import Plan, Setting
from .reading import read_bucket
from .refusal import correct, note_last
from .rows import TOKENS, owner_key
from .settle import is_dead, kill
from .state import State
from .told import Told
from .waiting import WaitingHere

Dice = Callable[[], float]
MOST_CORRECTIONS = 3  # refusals in a row whose rows are taken for all that has changed
MOST_BLOCKED = 10  # times that an owner's row refuses a batch and no reading shows its token
LONGEST_BACKOFF_S = 0.25


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
        self._inbox, self._told = Inbox(), Told()
        self._line = WaitingHere(port, ref.semaphore)
        self._leading = port.mutex()
        self._poller: Call | None = None  # the one of those in line that looks for all of them
        self._poll_due = False
        self._state: State | None = None
        self._wanted = _Wanted()
        self._flight: Flight | None = None
        self._refusals = 0
        self._closed = False
        self._cancellation = Cancellation(port, self, self._inbox, self._told)
        self._answered = Answered(port, self._inbox)
        # Free tokens are taken from here on, always: it keeps to those that it gave back itself, and leaves others theirs.
        self._place = ref.tokens.start + int(dice() * len(ref.tokens))

    async def ask(self, operation: Operation, deadline: float, stand_until: float | None = None) -> Answer:
        """Carry an operation out, or raise what kept it from being carried out.

        A waiting Acquire stands in line until `stand_until` (on the port's clock). Raises Unavailable when nothing happened
        before `deadline`, HoldUnknown when something may have, WaitCancelled, BeingDeleted, RowsDisagree, DatabaseError.
        """
        call = Call.begun(self._port, operation, deadline, stand_until)
        self._inbox.enter(call)
        self._answered.wake_one()
        try:
            await self.until_answered(call)
        except BaseException:
            self._cancellation.begin(call)
            raise
        if call.error is not None:
            raise call.error
        return call.answer or Stayed()

    def close(self) -> None:
        """End all waiting here: everybody is told ClosedError, and places in line end by their TTL."""
        self._closed = True
        self._wake(self._line)

    # --- who leads ---------------------------------------------------------------------------------------------------

    async def until_answered(self, call: Call) -> None:
        """Wait for a call's answer, and lead where nobody does."""
        while not call.done:
            if self._leading.take():
                try:
                    await self._lead(call)
                finally:
                    self._leading.give()
                    self._wake_a_leader()
            if not call.done:
                await self._wait_for_news(call)
        self._stop_polling(call)

    async def _lead(self, call: Call) -> None:
        try:
            while not call.done and (now := self._port.now()) < call.deadline:
                if self._flight is not None:
                    self._answered.wake_all()
                    await self._land(self._flight, call.deadline)
                elif self._is_idle(call, now):
                    return
                else:
                    await self._take_off(call.deadline)
            await self._answered.wake_until_back()
        except BaseException:  # interrupted somewhere: what is known may be half of what happened
            self._wanted = _Wanted()
            if self._flight is not None and self._flight.pending is None:
                self._flight.unsure = True  # its answer may be lost
            if not self._is_on_its_way(call):
                self._inbox.enter_again([call])
            raise

    def _is_on_its_way(self, call: Call) -> bool:
        """Tell whether a call is where somebody will come upon it. An interrupt may have caught it between two places."""
        flying = self._flight is not None and call in self._flight.calls
        return flying or _is_placed(call) or call in self._inbox

    def _is_idle(self, call: Call, now: float) -> bool:
        """Tell whether a caller that stands in line has nothing to do meanwhile."""
        work = self._inbox or self._poll_due or self._line.leaving or self._closed
        return call.ticket is not None and (now >= call.stand_until or not work)

    async def _wait_for_news(self, call: Call) -> None:
        """Wait until it is answered or has to lead. One of those in line also looks now and then, for all of them."""
        queued, now = call.ticket is not None, self._port.now()
        stands = queued or now < call.stand_until  # it may get its place meanwhile, and is not woken for that
        left_s = (call.stand_until if stands else call.deadline) - now
        if left_s <= 0:
            (self._line.leave_soon if queued else self._give_up)(call)
            return
        if queued and self._poller is None:
            self._poller = call
        polls = self._poller is call
        pause = self._line.poll_pause_s(self._dice()) if polls else left_s
        if await call.event.wait(min(left_s, pause)):
            call.event.clear()
        elif polls:
            self._poll_due = True

    def _stop_polling(self, call: Call) -> None:
        """Let somebody else in line look for all of them, where this one did or would have."""
        if self._poller is call:
            self._poller = None
        if self._poller is None:
            self._wake(self._line)

    def _wake_a_leader(self) -> None:
        """Let another one lead, who also wakes the answered; where there is none, wake them."""
        if not self._wake((*(self._flight.calls if self._flight else ()), *self._inbox)):
            self._answered.wake_all()

    def _wake(self, calls: Iterable[Call]) -> bool:
        for call in list(calls):
            if call.attended and not call.done:
                call.event.set()
                return True
        return False

    def _give_up(self, call: Call) -> None:
        """End a call at its deadline, and nobody else's."""
        if call.claim.take() and not call.unsure and not call.stood:
            text = f"Semaphore {self.ref.semaphore!r}: the database did not come to it in time. Nothing was changed; try again."
            call.fail(Unavailable(text))
        else:
            call.attended = False
            call.fail(self._unknown(call))
        self._wake_a_leader()  # it may have been its turn

    def seen_off(self, call: Call) -> None:
        """Go on without a caller that was cancelled: others may have counted on it to look or to lead."""
        self._stop_polling(call)
        self._wake_a_leader()

    # --- reading, planning, sending ----------------------------------------------------------------------------------

    async def _take_off(self, deadline: float) -> None:
        """Send the next batch, after reading what it needs; answer what needs none."""
        self._inbox.enter_again(self._line.leavers())
        await self._answered.gather()
        try:
            state = await self._known_state(deadline)
        except (DatabaseError, BeingDeleted) as error:
            self._fail_all(error)
            return
        if state is None:
            return
        calls = self._inbox.claimed(self._told)
        try:
            planned = plan(state, [call.asked(state) for call in calls], self._setting())
            self._send(planned, [calls[index] for index, _ in planned.after])
            for index, answer in planned.at_once:
                self._answer(calls[index], answer, state.as_of)
            self._inbox.enter_again(calls[index] for index in reversed(planned.later))
        except BaseException:
            leaving = self._flight.calls if self._flight is not None else ()
            self._inbox.enter_again(call for call in reversed(calls) if call not in leaving and not _is_placed(call))
            raise

    def _fail_all(self, error: Exception) -> None:
        """Answer everybody who waits for the database now; those who stand in line go on doing so while that makes sense."""
        self._poll_due = False
        if isinstance(error, ClosedError):
            self._line.fail_all(error)
        for call in self._inbox.claimed(self._told):
            self._fail(call, error)

    def _fail(self, call: Call, error: Exception) -> None:
        if isinstance(call.operation, Cancel) and call.operation.keep:  # it may be handed a slot yet
            error = HoldUnknown(self.ref.semaphore, call.operation.owner_id, wanted="leaving the line")
        elif call.unsure:  # what failed now came to nothing; an attempt before it may have applied
            error = self._unknown(call)
        call.fail(error)

    def _unknown(self, call: Call) -> HoldUnknown:
        return HoldUnknown(self.ref.semaphore, call.operation.owner_id, wanted=type(call.operation).__name__.lower())

    def _setting(self) -> Setting:
        mark = int(self._dice() * 2**32) - 2**31  # any int; drawn anew for each batch, so that it never seems unmoved
        now, wall_ms = self._port.now(), self._port.wall_ms()
        return Setting(self._client_id, now, wall_ms, mark, self._place, self._line.leases(), self._told)

    def _send(self, planned: Plan, calls: list[Call]) -> None:
        if planned.writes:
            batch = Batch(TOKENS, self.ref.partition, tuple(planned.writes))
            self._flight = Flight(planned, calls, batch, batch, self._port.now())
        if planned.look:
            self._wanted = _Wanted()

    async def _known_state(self, deadline: float) -> State | None:
        """Return the state to plan from, read anew where that is wanted; None when the deadline comes first."""
        if self._closed:
            raise ClosedError
        if self._state is None or self._wanted.look or self._poll_due:
            serial = self._state is None or (self._wanted.look and self._wanted.serial)
            self._state = await read_bucket(self._port, self.ref, self._state, deadline, serial=serial)
            if self._state is None:
                return None
            self._wanted, self._poll_due = _Wanted(look=False), False
            self._inbox.enter_again(self._line.tend(self._state))
            if self._line.is_puzzled:
                self._wanted, self._poll_due = _Wanted(), True
        if self._state.closed_ms is not None and self._state.closed_ms >= self.ref.created_ms:
            self._wanted, error = _Wanted(), BeingDeleted(self.ref.semaphore)
            self._line.fail_all(error)
            raise error
        return self._state

    # --- taking the answer -------------------------------------------------------------------------------------------

    async def _land(self, flight: Flight, deadline: float) -> None:
        """Take the answer of the batch on its way; send it again where the last one left it open."""
        if flight.pending is None and flight.is_for_nobody and not self._still_flies(flight):
            return
        try:
            outcome: Outcome | DatabaseError | None = await flight.outcome(self._port, deadline)
        except DatabaseError as error:
            outcome = error
        try:
            self._take_in(flight, outcome)
        except BaseException:  # Ctrl-C, at any line
            self._lose_track(flight)
            raise
        if isinstance(outcome, Refused) and not flight.unsure:
            await self._back_off(deadline)

    def _take_in(self, flight: Flight, outcome: Outcome | DatabaseError | None) -> None:
        match outcome:
            case None:
                return
            case DatabaseError() as error:
                self._failed(flight, error)
            case Applied() if flight.sent is flight.batch:
                self._landed(flight)
            case Applied():
                self._lost(flight)
            case Unknown(answered=answered):
                flight.unsure = True
                flight.again_later(self._port.now(), self._dice(), answered=answered)
            case Refused() as refused if flight.unsure and flight.sent is flight.batch:
                self._settled(flight, refused)
            case Refused() as refused:
                self._count_blocked(flight, refused)
                self._lost(flight, refused)

    def _lose_track(self, flight: Flight) -> None:
        """Go on from an interrupt that came while an answer was taken in: nobody knows how much of it was.

        A batch that is still ours is sent again, and then its rows tell; of any other, its calls look for themselves.
        """
        flight.unsure = True
        if self._flight is None:
            self._lost(flight)
        for call in flight.calls:
            if call.done:
                call.event.set()

    def _failed(self, flight: Flight, error: DatabaseError) -> None:
        if flight.unsure:  # this attempt came to nothing, an earlier one is still open
            flight.again_later(self._port.now(), self._dice(), answered=True)
        elif isinstance(error, StatementRejected) and len(flight.calls) > 1:
            self._part(flight)
        else:
            self._flight = None
            for call in flight.calls:
                self._fail(call, error)

    def _still_flies(self, flight: Flight) -> bool:
        """Let a batch whose callers have all given up grant nothing any more. Tell whether it is still on its way."""
        if not flight.unsure:
            self._lost(flight)
        elif flight.sent is flight.batch and (killing := kill(flight.batch, Refused({}))) is not None:
            flight.sent = killing
        return self._flight is not None

    def _part(self, flight: Flight) -> None:
        """Plan the operations of a batch that the server rejects one by one: the rejection is the answer to one of them."""
        self._flight = None
        for call in flight.calls:
            call.alone = True
        self._inbox.enter_again(reversed(flight.calls))

    def _settled(self, flight: Flight, refused: Refused) -> None:
        """An attempt before this one may have applied, or may yet: make it certain that it may not."""
        if is_dead(flight.batch, refused):
            self._lost(flight)
        elif (killing := kill(flight.batch, refused)) is not None:
            flight.sent, flight.attempts = killing, 0
        else:
            flight.again_later(self._port.now(), self._dice(), answered=True)

    def _landed(self, flight: Flight) -> None:
        self._flight, self._refusals = None, 0
        company = len(flight.calls) + len(flight.plan.served) + len(self._inbox)
        self._answered.expect(company, self._port.now() - flight.began_at)
        assert self._state is not None
        flight.plan.apply(self._state)
        for owner_id, granted in flight.plan.served:
            self._told.tell(granted, self._line.serve(owner_id, replace(granted, began_at=flight.began_at)))
        for call, (_, answer) in zip(flight.calls, flight.plan.after, strict=True):
            if isinstance(answer, Granted | Renewed):
                answer = replace(answer, began_at=flight.began_at)
            self._answer(call, answer, flight.began_at, written=True)

    def _lost(self, flight: Flight, refused: Refused | None = None) -> None:
        """Plan its operations anew: from what a refusal shows, or a new reading, which shows also what did apply."""
        self._flight = None
        if flight.unsure or refused is None or not self._corrected(flight, refused):
            self._wanted = _Wanted(serial=flight.unsure)
        if flight.unsure:
            for call, (_, answer) in zip(flight.calls, flight.plan.after, strict=True):
                call.unsure = True
                if isinstance(answer, Granted) and not is_kept(answer.mark):
                    call.may_have_granted((answer.token, answer.fence, answer.mark))
                elif isinstance(answer, Queued):
                    call.stood = True
            for owner_id, granted in flight.plan.served:
                self._line.note_tried(owner_id, (granted.token, granted.fence, granted.mark))
        self._inbox.enter_again(call for call in reversed(flight.calls) if not _is_placed(call))

    def _corrected(self, flight: Flight, refused: Refused) -> bool:
        if self._state is None or self._refusals >= MOST_CORRECTIONS:
            return False
        note_last(self._state, refused)
        return correct(self._state, flight.batch, refused, self._port.now())

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

    def _answer(self, call: Call, answer: Answer, true_at: float, *, written: bool = False) -> None:
        if isinstance(answer, Queued):
            call.stood = True
            if isinstance(call.operation, Cancel):  # cancelled meanwhile: it gives the place up at once
                self._inbox.enter_again([call])
            elif not call.done:  # one that was given up meanwhile leaves its place to its TTL
                self._line.join(call, answer.ticket, true_at, kept=written)
                if self._poller is None:
                    call.event.set()
            return
        if isinstance(call.operation, Stay):
            self._line.kept(true_at)
        if isinstance(answer, Granted):
            self._told.tell(answer)
        call.settle(answer)
        self._answered.add(call)


def _is_placed(call: Call) -> bool:
    """Tell whether a call is answered, or stands in line: nobody need plan it."""
    return call.done or call.ticket is not None
