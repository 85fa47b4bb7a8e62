"""Random batches on a small partition, on the stores and on a plain dict: same outcomes, same refusals, same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from contract.faces import blocking_face
from contract.model import CELLS, Model, steps
from contract.rooms import Room
from contract.worlds import Clock, cassandra_world, sqlite_world
from hypothesis import HealthCheck, given, settings

from slotkeeper.database import Key, Outcome, Refused, Value, Write

Steps = list[tuple[int, tuple[Write, ...]]]
A_DAY_S = 86_400


def test_sqlite_does_what_the_model_does(tmp_path: Path) -> None:
    clock = Clock()

    @settings(deadline=None, max_examples=200)
    @given(steps(ttl_s=(1, 2, 3, 60), most_pause_s=3))
    def follow(happened: Steps) -> None:
        room, model = Room(world, face), Model()
        for pause_s, writes in happened:
            clock.move(ms=pause_s * 1000)
            model.now_s += pause_s
            agree(room, model, writes)

    with sqlite_world(tmp_path / "lamps.db", clock) as world, blocking_face() as face:
        follow()


@pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module"
)  # a thread of the driver does, when a table is made
def test_cassandra_does_what_the_model_does(cassandra_url: str) -> None:
    """No TTL ends here: real seconds are dear."""

    @settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
    @given(steps(ttl_s=(A_DAY_S,)))
    def follow(happened: Steps) -> None:
        room, model = Room(world, face), Model()
        for _, writes in happened:
            agree(room, model, writes)

    with cassandra_world(cassandra_url) as world, blocking_face() as face:
        follow()


def agree(room: Room, model: Model, writes: tuple[Write, ...]) -> None:
    """Commit to both, and compare all that can be seen."""
    expected, seen = model.commit(writes), room.commit(*writes)
    assert told(seen, writes) == told(expected, writes)
    assert room.state() == model.state()


def told(outcome: Outcome, writes: tuple[Write, ...]) -> str | dict[Key, dict[str, Value]]:
    """Reduce an outcome to what is promised: the name, and for a refusal each row's columns that the guards name."""
    if not isinstance(outcome, Refused):
        return type(outcome).__name__
    named = {key: set[str]() for key in outcome.rows}
    for write in writes:
        if write.key in named and write.condition is not None:
            named[write.key] |= set(getattr(write.condition, "columns", CELLS))
    return {key: {c: outcome.rows[key].get(c) for c in sorted(columns)} for key, columns in named.items()}
