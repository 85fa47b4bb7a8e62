"""A row that guards its partition: every batch names the version that it knows, and moves it on."""

from __future__ import annotations

from collections.abc import Sequence

from ...database import (
    Batch,
    DatabaseError,
    Key,
    Port,
    Refused,
    Row,
    Table,
    Value,
    Write,
    insert,
    update,
)
from ...database.settling import Settled, StillUnknown, settled
from ..journal import Unsettled


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
            outcome, unsure = await committed(self._port, batch, deadline, unsure=self._unsure)
        except DatabaseError:
            self._pending = None
            raise
        except BaseException:
            self._unsure = self.was_unsure = True
            raise
        self._pending, self._unsure, self.was_unsure = None, False, unsure
        if isinstance(outcome, Refused) and not self._is_ours(outcome.rows.get(self._key), after):
            raise Lost
        self.shown.update(after)

    def _is_ours(self, row: Row | None, after: Row) -> bool:
        """Tell whether a refused batch had applied before: nobody else writes this under our epoch."""
        wanted = {**self.shown, **after}
        return row is not None and all(row.get(name) == wanted.get(name) for name in self._names)


async def committed(port: Port, batch: Batch, deadline: float, *, unsure: bool = False) -> Settled:
    """See `settled`. Raises Unsettled at the deadline, and a DatabaseError when nothing happened."""
    try:
        return await settled(port, batch, deadline, unsure=unsure)
    except StillUnknown as error:
        raise Unsettled from error.__cause__


async def created(port: Port, table: Table, partition: Key, key: Key, values: Row, deadline: float) -> Row | None:
    """Insert a row where there is none. Return None, or the row that was there: perhaps an earlier attempt's."""
    batch = Batch(table, partition, (insert(key, values, absent=True),))
    outcome, _ = await committed(port, batch, deadline)
    return outcome.rows.get(key, {}) if isinstance(outcome, Refused) else None
