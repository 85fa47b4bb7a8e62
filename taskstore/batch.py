"""What leaves for the journal together: records, how to take them back, and who is told when they are durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .call import Call
from .operations import Claim, Release
from .record import Record
from .state import State
from .task import Task

Apply = Callable[[Record], object]


class Batch:
    """Operations that were carried out on a state, one after the other, and are not answered yet."""

    __slots__ = ("answers", "freezing", "gone", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.gone: list[list[Task]] = []
        self.answers: list[tuple[Call, Any, Exception | None, bool]] = []
        self.freezing: list[Call] = []

    def applying(self, state: State) -> Apply:
        """Return how to apply a record so that it leaves with this batch."""

        def apply(record: Record) -> None:
            self.gone.append(state.apply(record))
            self.records.append(record)

        return apply

    def answer(self, call: Call, answer: Any, error: Exception | None = None, *, wrote: bool = False) -> None:
        """Note what a caller is to be told."""
        self.answers.append((call, answer, error, wrote))

    def undo(self, state: State) -> None:
        """Take every record back, the last one first."""
        for record, gone in zip(reversed(self.records), reversed(self.gone), strict=True):
            state.undo(record, gone)

    def tell(self) -> list[Release]:
        """Tell every caller. Return how to give back the tasks that nobody knows of, as their claimants are gone."""
        lost = []
        for call, answer, error, _ in self.answers:
            if not call.done:
                call.finish(answer, error)
            if call.left and isinstance(call.operation, Claim) and answer is not None:
                lost.append(Release(answer.owner, answer.id))
        return lost

    def fail(self, error: Exception) -> None:
        """Tell every caller why there is no answer."""
        for call, *_ in self.answers:
            call.finish(None, error)
