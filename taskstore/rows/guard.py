"""A row that guards its partition: every batch names the version that it knows, and moves it on."""

from __future__ import annotations

from collections.abc import Sequence

from ...database import (
    Applied,
    Batch,
    DatabaseError,
    Key,
    Port,
    Refused,
    Row,
    Table,
    Unknown,
    Value,
    Write,
    insert,
    update,
)
from ..journal import Unsettled

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
SILENT_PAUSE_S = 1.0  # a silent coordinator may still be at work: coming back sooner only adds contention


class Lost(Exception):  # between the guard and the journal: it reaches no caller
    """Somebody else has changed the row: nothing that names this version can apply any more."""


class Guard:
    """A row as it is known, `shown` with all its columns. `names` are the columns that each batch guards.

    Only one of its changes is on its way at a time; one that was left open is settled before the next.
    """

    def __init__(
        self, port: Port, table: Table, partition: Key, key: Key, shown: Row, names: Sequence[str], counter: str
    ) -> None:
        self.shown: dict[str, Value] = dict(shown)
        self._port, self._table, self._partition, self._key = port, table, partition, key
        self._names, self._counter = names, counter
        self._pending: tuple[Batch, dict[str, Value]] | None = None
        self._unsure = False
        self.was_unsure = False  # the change before this one, or it, had an unknown outcome on its way

    async def change(self, values: Row, rides: Sequence[Write], deadline: float) -> None:
        """Set values of the row, and let other writes of the partition ride along.

        Raises Lost, Unsettled at the deadline, or a DatabaseError when nothing happened.
        """
        if self._pending is not None:
            await self.settle(deadline)
        counted = self.shown.get(self._counter)
        after = {**values, self._counter: 1 + (counted if isinstance(counted, int) else 0)}
        expect = {name: (self.shown.get(name),) for name in self._names}
        batch = Batch(self._table, self._partition, (update(self._key, after, expect=expect), *rides))
        self._pending, self.was_unsure = (batch, after), False
        await self.settle(deadline)

    async def settle(self, deadline: float) -> None:
        """Commit what was left open, again and again, until it is certain. Raises as `change` does."""
        if self._pending is None:
            return
        batch, after = self._pending
        try:
            refused = await settled(self._port, batch, deadline, unsure=self._unsure)
        except DatabaseError:
            self._pending = None
            raise
        except BaseException:
            self._unsure = self.was_unsure = True
            raise
        self._pending, unsure = None, self._unsure or (refused is not None and refused.unsure)
        self._unsure, self.was_unsure = False, unsure
        if refused is not None and not self._is_ours(refused.row, after):
            raise Lost
        self.shown.update(after)

    def _is_ours(self, row: Row | None, after: Row) -> bool:
        """Tell whether a refused batch had applied before: nobody else writes this under our epoch."""
        wanted = {**self.shown, **after}
        return row is not None and all(row.get(name) == wanted.get(name) for name in self._names)


class Refusal:
    """A batch was refused; `row` is its guard's row, and `unsure` tells whether an earlier attempt was left open."""

    def __init__(self, row: Row | None, *, unsure: bool) -> None:
        self.row, self.unsure = row, unsure


async def settled(port: Port, batch: Batch, deadline: float, *, unsure: bool = False) -> Refusal | None:
    """Commit a batch until the database says what became of it. Return None when it applied with the last attempt.

    Raises Unsettled at the deadline, and a DatabaseError when nothing happened.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            outcome = await port.commit(batch)
        except DatabaseError as error:
            if not unsure:
                raise
            outcome = Unknown(error)  # this attempt came to nothing, an earlier one is still open
        if isinstance(outcome, Applied):
            return None
        if isinstance(outcome, Refused):
            return Refusal(outcome.rows.get(batch.writes[0].key), unsure=unsure)
        unsure, wait_s = True, pause_s + (0.0 if outcome.answered else SILENT_PAUSE_S)
        if port.now() + wait_s > deadline:
            raise Unsettled from outcome.cause
        await port.sleep(wait_s)
        pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)


async def created(port: Port, table: Table, partition: Key, key: Key, values: Row, deadline: float) -> Row | None:
    """Insert a row where there is none. Return None, or the row that was there: perhaps an earlier attempt's."""
    refused = await settled(port, Batch(table, partition, (insert(key, values, absent=True),)), deadline)
    return None if refused is None else refused.row or {}
