"""A partition of its own for each test, seen through one store and one port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from slotkeeper.database import (
    Applied,
    Batch,
    Key,
    Outcome,
    Port,
    Refused,
    Row,
    Slice,
    Value,
    Write,
    delete,
    insert,
    update,
)

from .faces import Face
from .lamps import LAMPS
from .worlds import World

Values = Mapping[str, Value]
Expected = Mapping[str, tuple[Value, ...]]
UNMET: Expected = {"holder": ("somebody whom no row names",)}


def lamp(shelf: int, name: str = "") -> Key:
    """Spell the key of a row."""
    return (shelf, name)


@dataclass(frozen=True, slots=True)
class Room:
    """One partition: commit to it, look at it, wait for it."""

    world: World
    face: Face
    house: UUID = field(default_factory=uuid4)
    name: str = "hall"

    @property
    def port(self) -> Port:
        """A port over the store. Cheap: ports keep nothing."""
        return self.face.port_over(self.world.store)

    @property
    def partition(self) -> Key:
        """The partition's key."""
        return (self.house, self.name)

    def commit(self, *writes: Write) -> Outcome:
        """Commit the writes as one batch."""
        return self.face.run(self.port.commit(Batch(LAMPS, self.partition, writes)))

    def rows(self, *slices: Slice, serial: bool = True) -> list[Row]:
        """Read slices, the whole partition unless told otherwise."""
        return self.face.run(self.port.read(LAMPS, self.partition, slices or (Slice(),), serial=serial))

    def keys(self, *slices: Slice) -> list[Key]:
        """Read the clustering keys of slices, in the order they come."""
        return [(row["shelf"], row["name"]) for row in self.rows(*slices)]

    def state(self) -> dict[Key, dict[str, Value]]:
        """Read every row that exists: its values that are not null, by its key."""
        return {
            (row["shelf"], row["name"]): {c: row[c] for c in LAMPS.values if row[c] is not None} for row in self.rows()
        }

    def put(self, key: Key, values: Values | None = None, *, ttl_s: int | None = None) -> None:
        """Insert a row, beside a guard on some other row that holds."""
        self.must(insert(key, values or {}, ttl_s=ttl_s), _free_guard())

    def set(self, key: Key, values: Values, *, ttl_s: int | None = None) -> None:
        """Update a row, beside a guard on some other row that holds."""
        self.must(update(key, values, ttl_s=ttl_s), _free_guard())

    def must(self, *writes: Write) -> None:
        """Commit what sets the scene; a scene that is refused is no test."""
        outcome = self.commit(*writes)
        assert outcome == Applied(), outcome

    def shown(self, *writes: Write) -> dict[Key, Row]:
        """Commit a batch that must be refused, and return the rows that the refusal shows."""
        outcome = self.commit(*writes)
        assert isinstance(outcome, Refused), outcome
        return dict(outcome.rows)

    def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until `holds` does."""
        self.world.until(holds)

    def elsewhere(self, name: str) -> Room:
        """Give another partition of the same house."""
        return Room(self.world, self.face, self.house, name)


def _free_guard() -> Write:
    """Guard a batch with what is always so: a row that nobody writes has no holder."""
    return delete(lamp(-(2**31), "guard"), expect={"holder": (None,)})
