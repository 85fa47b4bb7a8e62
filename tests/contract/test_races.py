"""Several writers at one row: exactly one wins each turn, and nothing that was applied is lost."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from contract.lamps import LAMPS
from contract.rooms import Room, lamp
from contract.worlds import World

from slotkeeper.database import (
    Applied,
    AsyncioPort,
    Batch,
    BlockingPort,
    Outcome,
    Refused,
    Unknown,
    drive,
    insert,
    update,
)

ROW = lamp(1)
ROUNDS = 25
WRITERS = 4


def step(room: Room, version: int, writer: int) -> Batch:
    """Move the row's version on, as one writer: its own marker row tells afterwards that it did."""
    return Batch(
        LAMPS,
        room.partition,
        (
            update(ROW, {"version": version + 1, "slot": writer}, expect={"version": (version,)}),
            insert(lamp(version + 100, str(writer)), {}),
        ),
    )


def assert_one_won(room: Room, version: int, outcomes: list[Outcome]) -> None:
    """Check a turn: one applied, the others refused, and the rows are the winner's."""
    winners = [writer for writer, outcome in enumerate(outcomes) if outcome == Applied()]
    losers = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    assert len(winners) == 1, outcomes
    assert len(losers) == len(outcomes) - 1, outcomes
    state = room.state()
    assert state[ROW] == {"version": version + 1, "slot": winners[0]}
    assert [name for shelf, name in state if shelf == version + 100] == [str(winners[0])]
    assert {row["version"] for lost in losers for row in lost.rows.values()} <= {version, version + 1}


def test_one_of_several_threads_wins_each_turn(world: World, room: Room) -> None:
    room.put(ROW, {"version": 0})
    port, barrier = BlockingPort(world.store), threading.Barrier(WRITERS, timeout=30)

    def race(version: int, writer: int) -> Outcome:
        barrier.wait()
        return drive(port.commit(step(room, version, writer)))

    with ThreadPoolExecutor(WRITERS) as threads:
        for version in range(ROUNDS):
            outcomes = list(threads.map(race, [version] * WRITERS, range(WRITERS)))
            assert_one_won(room, version, outcomes)


def test_one_of_several_tasks_wins_each_turn(world: World, room: Room) -> None:
    room.put(ROW, {"version": 0})

    async def race(version: int) -> list[Outcome]:
        port = AsyncioPort(world.store)
        return await asyncio.gather(*(port.commit(step(room, version, writer)) for writer in range(WRITERS)))

    with asyncio.Runner() as runner:
        for version in range(ROUNDS):
            assert_one_won(room, version, runner.run(race(version)))


def test_counter_that_threads_move_by_guards_loses_no_step(world: World, room: Room) -> None:
    room.put(ROW, {"total": 0})
    port = BlockingPort(world.store)

    def count(_: int) -> int:
        seen, refused = 0, 0
        while True:
            move = update(ROW, {"total": seen + 1}, expect={"total": (seen,)})
            match drive(port.commit(Batch(LAMPS, room.partition, (move,)))):
                case Applied():
                    return refused
                case Refused(rows):
                    seen, refused = int(str(rows[ROW]["total"])), refused + 1
                case Unknown(cause):
                    raise cause

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(count, range(60)))

    assert room.state() == {ROW: {"total": 60}}
