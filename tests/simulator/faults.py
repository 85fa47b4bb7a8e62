"""Faults to plant: each takes out one of the rules that the protocol rests on. A simulator that finds none of them is blind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from unittest.mock import patch

from slotkeeper.database import Expect, Write
from slotkeeper.database.simulated import Rows, SimulatedStore
from slotkeeper.semaphore import bucket, plan
from slotkeeper.semaphore.operations import Acquire, Cancel
from slotkeeper.semaphore.plan import _Planner
from slotkeeper.semaphore.planned import Ask
from slotkeeper.semaphore.rows import QUEUE, TOKEN


@dataclass(frozen=True, slots=True)
class Fault:
    """A store that leaves a guard out, or a planner or a settlement that leaves a step out."""

    name: str
    store: type[SimulatedStore] = SimulatedStore
    planted: Callable[[], AbstractContextManager[object]] = nullcontext


def _without_guard(kind: int, column: str) -> type[SimulatedStore]:
    class Forgetful(SimulatedStore):
        """A store that does not look at one column of the rows of one type."""

        def lets_through(self, rows: Rows, write: Write, now: float) -> bool:
            """Tell whether the other conditions hold."""
            if write.key[0] == kind and isinstance(write.condition, Expect):
                others = {name: values for name, values in write.condition.columns.items() if name != column}
                row = rows.get(write.key)
                return all((row.get(name, now) if row else None) in values for name, values in others.items())
            return super().lets_through(rows, write, now)

    return Forgetful


@contextmanager
def _hand_offs_are_final() -> Iterator[None]:
    confirmed = _Planner._acquire_again

    def unconfirmed(self: _Planner, index: int, ask: Ask, operation: Acquire | Cancel, number: int) -> None:
        if operation.lease_s is None:
            self._no(index, ask, self._granted_before(ask, number))
        else:
            confirmed(self, index, ask, operation, number)

    with patch.object(_Planner, "_acquire_again", unconfirmed):
        yield


@contextmanager
def _nobody_helps() -> Iterator[None]:
    served = _Planner._serve_line

    def only_what_is_given_back(self: _Planner) -> None:
        with patch.object(self, "_grantable", lambda: bool(self._released)):
            served(self)

    with patch.object(_Planner, "_serve_line", only_what_is_given_back):
        yield


@contextmanager
def _versions_stay() -> Iterator[None]:
    with patch.object(bucket, "is_dead", lambda batch, refused: True):
        yield


@contextmanager
def _told_without_a_mark() -> Iterator[None]:
    with patch.object(plan, "is_kept", lambda mark: True):
        yield


FAULTS = (
    Fault("version guard", _without_guard(TOKEN, "updated_time")),
    Fault("last-ticket guard", _without_guard(QUEUE, "holder")),
    Fault("free mark", _without_guard(QUEUE, "held_token")),
    Fault("confirmation", planted=_hand_offs_are_final),
    Fault("helping", planted=_nobody_helps),
    Fault("version move", planted=_versions_stay),
    Fault("word of another's hold", planted=_told_without_a_mark),
)
