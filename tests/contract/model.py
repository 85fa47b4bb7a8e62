"""The verb on a plain dict: what the stores must agree with, and batches to try them with."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import strategies as st

from slotkeeper.database import Absent, Applied, Batch, Expect, Key, Outcome, Refused, Value, Verb, Write

from .lamps import LAMPS
from .rooms import lamp

ALWAYS = float("inf")
PARTITION: Key = (UUID(int=1), "anywhere")
KEYS = [lamp(1), lamp(1, "é"), lamp(-2)]
CELLS: dict[str, list[Value]] = {"holder": ["ada", "ben", "", None], "slot": [1, -1, None]}


@dataclass(slots=True)
class Cell:
    """A value and the moment of its end."""

    value: Value
    end: float


@dataclass(slots=True)
class Lamp:
    """A row: its cells, and until when an insert makes it exist without any."""

    cells: dict[str, Cell] = field(default_factory=dict)
    inserted_until: float = 0


@dataclass(slots=True)
class Model:
    """One partition, as Cassandra keeps it."""

    now_s: float = 1
    lamps: dict[Key, Lamp] = field(default_factory=dict)

    def state(self) -> dict[Key, dict[str, Value]]:
        """Return each row that exists: its values that are not null, by its key."""
        return {key: values for key in self.lamps if (values := self._seen(key)) is not None}

    def commit(self, writes: tuple[Write, ...]) -> Outcome:
        """Apply all, or show the guarded rows."""
        guarded = {write.key for write in writes if write.condition is not None}
        if not all(self._lets_through(write) for write in writes):
            return Refused({key: seen for key in guarded if (seen := self._seen(key)) is not None})
        for write in writes:
            self._apply(write)
        return Applied()

    def _seen(self, key: Key) -> dict[str, Value] | None:
        row = self.lamps.get(key, Lamp())
        values: dict[str, Value] = {c: cell.value for c, cell in row.cells.items() if cell.end > self.now_s}
        values = {column: value for column, value in values.items() if value is not None}
        return values if values or row.inserted_until > self.now_s else None

    def _lets_through(self, write: Write) -> bool:
        seen = self._seen(write.key)
        match write.condition:
            case Absent():
                return seen is None
            case Expect(columns):
                return all((seen or {}).get(column) in values for column, values in columns.items())
            case None:
                return True

    def _apply(self, write: Write) -> None:
        if write.verb is Verb.DELETE:
            self.lamps.pop(write.key, None)
            return
        row = self.lamps.setdefault(write.key, Lamp())
        end = ALWAYS if write.ttl_s is None else self.now_s + write.ttl_s
        row.cells.update({column: Cell(value, end) for column, value in write.values.items()})
        if write.verb is Verb.INSERT:
            row.inserted_until = end


def values() -> st.SearchStrategy[dict[str, Value]]:
    """Draw some cells, perhaps none."""
    return st.fixed_dictionaries({}, optional={column: st.sampled_from(cells) for column, cells in CELLS.items()})


def expectations() -> st.SearchStrategy[dict[str, tuple[Value, ...]]]:
    """Draw a guard on one column or several."""
    some = {column: st.lists(st.sampled_from(cells), max_size=3).map(tuple) for column, cells in CELLS.items()}
    return st.fixed_dictionaries({}, optional=some).filter(bool)


def writes(ttls: st.SearchStrategy[int | None]) -> st.SearchStrategy[Write]:
    """Draw one write, guarded or not."""
    keys, unguarded = st.sampled_from(KEYS), st.none()
    guards = unguarded | expectations().map(Expect)
    return st.one_of(
        st.builds(Write, st.just(Verb.INSERT), keys, values(), unguarded | st.just(Absent()), ttls),
        st.builds(Write, st.just(Verb.UPDATE), keys, values().filter(bool), guards, ttls),
        st.builds(Write, st.just(Verb.DELETE), keys, st.just({}), guards),
    )


def batches(ttls: st.SearchStrategy[int | None]) -> st.SearchStrategy[tuple[Write, ...]]:
    """Draw writes that a batch may hold together: of each that clashes with an earlier one, the earlier is kept."""
    return st.lists(writes(ttls), min_size=1, max_size=5).map(_compatible).filter(bool)


def _compatible(drawn: list[Write]) -> tuple[Write, ...]:
    kept: tuple[Write, ...] = ()
    for write in sorted(drawn, key=lambda write: write.condition is None):  # a batch has a guard
        if _is_batch((*kept, write)):
            kept = (*kept, write)
    return kept


def _is_batch(writes: tuple[Write, ...]) -> bool:
    try:
        Batch(LAMPS, PARTITION, writes)
    except ValueError:
        return False
    return True


def steps(*, ttl_s: tuple[int, ...], most_pause_s: int = 0) -> st.SearchStrategy[list[tuple[int, tuple[Write, ...]]]]:
    """Draw what happens to one partition: batches, with pauses of whole seconds before them."""
    ttls = st.none() | st.sampled_from(ttl_s)
    return st.lists(st.tuples(st.integers(0, most_pause_s), batches(ttls)), min_size=1, max_size=12)
