"""Carrying operations out on the state, one after the other, into one batch; those in line are served as tasks turn up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from . import rules
from .batch import Apply, Batch
from .call import Call
from .clock import Clock
from .errors import UpdateError
from .group import Dice
from .line import Line
from .operations import Claim, Freeze, Look, Operation, Release, Renew, Update
from .record import Record
from .rules import Terms
from .state import State
from .task import Task

T = TypeVar("T")


class Work:
    """The state, and who waits for something to turn up in it. Only who has the engine's turn touches it."""

    def __init__(self, clock: Clock, dice: Dice, terms: Terms) -> None:
        self.state, self.line = State(), Line()
        self.owed: list[Release] = []  # tasks that were claimed for callers who are gone
        self._clock, self._dice, self._terms = clock, dice, terms

    def replay(self, record: Record) -> None:
        """Take a record of the journal in."""
        self.state.apply(record)

    def is_due(self) -> bool:
        """Tell whether there is something to do that nobody has to ask for."""
        return bool(self.owed) or (bool(self.line) and self.line.next_due(self.state, self.now_ns()) is not None)

    def is_alone(self) -> bool:
        """Tell whether nobody stands in line, and nothing is owed."""
        return not self.line.by_group and not self.owed

    def done(self, calls: Sequence[Call]) -> Batch:
        """Carry everything out. Who looks for the last time comes first: it has waited longest."""
        batch, now_ns = Batch(), self.now_ns()
        while self.owed:
            with suppress(UpdateError):
                self.carry(self.owed.pop(), batch.applying(self.state), now_ns)
        if self.line:
            self._serve(batch, [call for call in calls if call.last_look], now_ns)
        for call in calls:
            if not call.last_look:  # those had theirs
                self._do(call, batch, now_ns)
        return batch

    def now_ns(self) -> int:
        """Return the time, no earlier than that of any record."""
        now_ns, at_ns = self._clock.now_ns(), self.state.at_ns
        return now_ns if now_ns > at_ns else at_ns

    def _serve(self, batch: Batch, leaving: Sequence[Call], now_ns: int) -> None:
        for call in leaving:
            self.line.leave(call)
            self._do(call, batch, now_ns)
        while self.line and (first := self.line.next_due(self.state, now_ns)) is not None:
            self.line.leave(first)
            self._do(first, batch, now_ns)

    def _do(self, call: Call, batch: Batch, now_ns: int) -> None:
        """Carry one operation out; what others of the batch have changed is there for it."""
        before = len(batch.records)
        try:
            answer = self.carry(call.operation, batch.applying(self.state), now_ns)
        except UpdateError as error:
            batch.answer(call, None, error)
            return
        wrote = len(batch.records) > before
        if answer is None and call.stand_until and not call.last_look:
            self.line.join(call)
            return
        batch.answer(call, answer, wrote=wrote)
        if isinstance(call.operation, Freeze):
            batch.freezing.append(call)
        if wrote and self.line:
            self._serve(batch, (), now_ns)

    def carry(self, operation: Operation[Any], apply: Apply, now_ns: int) -> Any:
        """Apply what an operation comes to, and return its answer. Raises UpdateError, and then has applied nothing."""
        kind, answer = type(operation), cast("Any", None)
        if kind is Claim:
            return self._claimed(cast("Claim", operation), apply, now_ns)
        if kind is Update:
            record, answer = rules.update(self.state, cast("Update", operation), now_ns)
        elif kind is Look:
            return cast("Look[Any]", operation).see(self.state, now_ns)
        elif kind is Renew:
            record, answer = rules.renew(self.state, cast("Renew", operation), now_ns)
        elif kind is Release:
            record, answer = rules.release(self.state, cast("Release", operation), now_ns, self._terms)
        else:
            return None
        if record is not None:
            apply(record)
        return answer

    def carry_at_once(self, operation: Operation[T]) -> T:
        """Carry an operation out that nobody could take back, as nothing keeps it."""
        answer: T = self.carry(operation, self.state.apply, self.now_ns())
        return answer

    def _claimed(self, operation: Claim, apply: Apply, now_ns: int) -> Task | None:
        while True:
            record, task = rules.claim(self.state, operation, now_ns, self._terms, self._dice)
            if record is None:
                return None
            apply(record)
            if task is not None:
                return task  # otherwise the record only set one aside
