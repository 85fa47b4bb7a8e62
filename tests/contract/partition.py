"""A bucket's partition on the model of the verb: plans applied to it, and the state read back as the bucket loop reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from slotkeeper.database import Batch, Key, Outcome, Row, Value, Write, delete
from slotkeeper.semaphore.rows import SNAPSHOT, TOKENS, WAITER, ticket_text
from slotkeeper.semaphore.state import State, from_rows, waiter_from_row

from .model import ALWAYS, Model

KEY: Key = (UUID(int=1), "sem", 0)
ALWAYS_TRUE = delete((-1, 0, "nobody"), expect={"holder": (None,)})


@dataclass(slots=True)
class Partition:
    """One bucket's rows, and the time they live in."""

    tokens: range
    model: Model = field(default_factory=Model)

    def commit(self, writes: Iterable[Write]) -> Outcome:
        """Apply a batch that the store would take, wholly or not at all."""
        return self.model.commit(Batch(TOKENS, KEY, tuple(writes)).writes)

    def put(self, *writes: Write) -> None:
        """Write rows whatever is there."""
        self.commit((ALWAYS_TRUE, *writes))

    def rows(self) -> dict[Key, dict[str, Value]]:
        """Return each row's values that are not null, by its key."""
        return self.model.state()

    def of_type(self, kind: int) -> dict[Key, dict[str, Value]]:
        """Return the rows of one type."""
        return {key: values for key, values in self.rows().items() if key[0] == kind}

    def read(self) -> State:
        """Read the state, as the loop does: tokens and single rows, then the line behind the head."""
        rows = self.rows()
        state = from_rows(
            [self._row(key) for key in sorted(rows, key=str) if key[0] in SNAPSHOT.among],
            self.tokens,
            began_at=self.model.now_s,
        )
        behind = (WAITER, 0, f"{ticket_text(state.head)}~")
        line = sorted(key for key in rows if key[0] == WAITER and str(key[2]) > behind[2])
        for waiter in filter(None, (waiter_from_row(self._row(key)) for key in line)):
            state.join(waiter)
        return state

    def _row(self, key: Key) -> Row:
        cell = self.model.lamps[key].cells.get("holder")
        end = ALWAYS if cell is None or cell.value is None else cell.end
        left = None if end in (ALWAYS, 0) or end <= self.model.now_s else int(end - self.model.now_s)
        named = dict(zip(TOKENS.clustering, key, strict=True))
        values = dict.fromkeys(TOKENS.values) | self.rows()[key]
        return {**named, **values, "ttl(holder)": left}
