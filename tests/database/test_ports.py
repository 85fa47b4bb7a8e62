"""The two ports: waiting, waking, clocks and clean-ups, the same promises whether threads or a loop wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import pytest
from contract import children
from contract.children import PARTITION, child
from contract.faces import FACES, Face
from contract.lamps import LAMPS, shape
from contract.rooms import lamp

from slotkeeper.database import (
    Applied,
    AsyncioPort,
    Batch,
    BlockingPort,
    ClosedError,
    Port,
    Refused,
    Slice,
    TableMissing,
    drive,
    insert,
)
from slotkeeper.database.sqlite import SqliteStore

LONG_S = 60.0
BATCH = Batch(LAMPS, PARTITION, (insert(lamp(1), {}, absent=True),))


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """A port, blocking or asyncio."""
    with FACES[request.param]() as face:
        yield face


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "lamps.db")
    shape(store)
    yield store
    store.close()


@pytest.fixture
def port(face: Face, store: SqliteStore) -> Port:
    return face.port_over(store)


@contextmanager
def thread(work: Any) -> Iterator[None]:
    """Run a function in another thread meanwhile."""
    running = threading.Thread(target=work)
    running.start()
    try:
        yield
    finally:
        running.join(LONG_S)
        assert not running.is_alive()


# Events


def test_event_that_is_set_is_not_waited_for(port: Port, face: Face) -> None:
    async def core() -> list[bool]:
        event = port.event()
        seen = [event.is_set()]
        event.set()
        return [*seen, event.is_set(), await event.wait(LONG_S), await event.wait(0), await event.wait(-1)]

    assert face.run(core()) == [False, True, True, True, True]


def test_event_wakes_who_waits_when_another_thread_sets_it(port: Port, face: Face) -> None:
    async def core() -> bool:
        event = port.event()
        with thread(event.set):
            return await event.wait(LONG_S)

    assert face.run(core()) is True


def test_event_that_nobody_sets_ends_the_wait(port: Port, face: Face) -> None:
    async def core() -> list[bool]:
        event = port.event()
        return [await event.wait(0.01), await event.wait(0), await event.wait(-inf), event.is_set()]

    assert face.run(core()) == [False] * 4


def test_event_may_be_waited_for_without_end(port: Port, face: Face) -> None:
    async def core() -> bool:
        event = port.event()
        with thread(event.set):
            return await event.wait(inf)

    assert face.run(core()) is True


def test_event_that_was_cleared_is_waited_for_again(port: Port, face: Face) -> None:
    async def core() -> list[bool]:
        event = port.event()
        event.set()
        event.clear()
        seen = [event.is_set(), await event.wait(0.01)]
        with thread(event.set):
            return [*seen, await event.wait(LONG_S)]

    assert face.run(core()) == [False, False, True]


def test_event_wakes_every_task_that_waits(store: SqliteStore) -> None:
    async def core() -> list[bool]:
        event = AsyncioPort(store).event()
        waiting = [asyncio.create_task(event.wait(LONG_S)) for _ in range(5)]
        await asyncio.sleep(0)
        waiting.pop().cancel()
        with thread(event.set):
            return await asyncio.gather(*waiting)

    assert asyncio.run(core()) == [True] * 4


def test_long_waits_of_a_loop_share_an_alarm_and_end_no_earlier_than_asked(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def waits() -> None:
        port, loop = AsyncioPort(store), asyncio.get_running_loop()
        alarms, call_at = list[float](), loop.call_at

        def noted(at: float, *rest: Any, **named: Any) -> asyncio.TimerHandle:
            alarms.append(at)
            return call_at(at, *rest, **named)

        monkeypatch.setattr(loop, "call_at", noted)

        async def wait() -> float:
            began = time.monotonic()
            assert not await port.event().wait(1.25)
            return time.monotonic() - began

        took = await asyncio.gather(*(wait() for _ in range(100)))
        assert min(took) >= 1.25
        shared = [at for at in alarms if at % 0.5 == 0]  # beside one each for the last moment
        assert len(shared) in (1, 2)  # two, where some began behind the half second

    asyncio.run(waits())


def test_long_wait_of_a_loop_that_is_over_leaves_the_others_alone(store: SqliteStore) -> None:
    async def waits() -> None:
        port = AsyncioPort(store)
        mine, other = port.event(), port.event()
        cancelled, others = asyncio.create_task(mine.wait(LONG_S)), asyncio.create_task(other.wait(1.25))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert not await others
        assert not mine.is_set()
        again = asyncio.create_task(mine.wait(LONG_S))
        await asyncio.sleep(0)
        mine.set()
        assert await again

    asyncio.run(waits())


def test_wait_that_was_woken_is_over_although_somebody_was_faster_to_clear(store: SqliteStore) -> None:
    async def waits() -> None:
        event = AsyncioPort(store).event()
        waiting = asyncio.create_task(event.wait(LONG_S))
        await asyncio.sleep(0)
        event.set()
        event.clear()
        assert not await asyncio.wait_for(waiting, 5)

    asyncio.run(waits())


def test_event_may_be_set_when_its_loop_is_gone(store: SqliteStore) -> None:
    async def core() -> Any:
        event = AsyncioPort(store).event()
        assert not await event.wait(0)
        return event

    event = asyncio.run(core())
    event.set()
    with thread(event.set):
        pass

    assert event.is_set()


def test_wait_for_an_event_lets_other_tasks_run(store: SqliteStore) -> None:
    async def core() -> bool:
        event = AsyncioPort(store).event()
        asyncio.get_running_loop().call_soon(event.set)
        return await event.wait(LONG_S)

    assert asyncio.run(core())


# Requests on their way


def test_request_belongs_to_nobody_and_its_answer_may_be_had_twice(port: Port, face: Face) -> None:
    async def core() -> list[object]:
        commit = port.begin_commit(BATCH)
        assert await commit.wait(LONG_S)
        read = port.begin_read(LAMPS, PARTITION, (Slice(),), serial=True)
        assert await read.wait(LONG_S)
        assert commit.done()
        assert read.done()
        return [commit.result(), commit.result(), [row["shelf"] for row in read.result()]]

    assert face.run(core()) == [Applied(), Applied(), [1]]


def test_request_that_fails_gives_its_error_to_who_asks(port: Port, face: Face, store: SqliteStore) -> None:
    store.shape("DROP TABLE lamps")

    async def core() -> None:
        for pending in (port.begin_commit(BATCH), port.begin_read(LAMPS, PARTITION, (Slice(),), serial=True)):
            assert await pending.wait(LONG_S)
            for _ in range(2):
                with pytest.raises(TableMissing):
                    pending.result()

    face.run(core())


def test_request_outlives_the_task_that_waits_for_it(store: SqliteStore) -> None:
    async def core() -> list[object]:
        port = AsyncioPort(store)
        with child(children.hold, store.path) as holder:
            assert holder.stdout
            assert await asyncio.to_thread(holder.stdout.readline) == "held\n"
            commit = port.begin_commit(BATCH)
            assert not await commit.wait(0.01)
            waiting = asyncio.create_task(commit.wait(LONG_S))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.to_thread(holder.communicate, timeout=LONG_S)
        assert await commit.wait(LONG_S)
        return [waiting.cancelled(), commit.result(), await port.commit(BATCH)]

    cancelled, begun, again = asyncio.run(core())

    assert (cancelled, begun) == (True, Applied())
    assert isinstance(again, Refused)


def test_loop_goes_on_while_the_store_waits(store: SqliteStore) -> None:
    async def core() -> None:
        port = AsyncioPort(store)
        with child(children.hold, store.path) as holder:
            assert holder.stdout
            assert await asyncio.to_thread(holder.stdout.readline) == "held\n"
            commit = asyncio.create_task(port.commit(BATCH))
            for _ in range(10):
                await port.sleep(0.001)
            assert not commit.done()
            await asyncio.to_thread(holder.communicate, timeout=LONG_S)
            assert await commit == Applied()

    asyncio.run(core())


# Mutexes, sleep and clocks


def test_mutex_has_one_holder_and_nobody_waits(port: Port, face: Face) -> None:
    async def core() -> list[bool]:
        mutex = port.mutex()
        seen = [mutex.take(), mutex.take()]
        mutex.give()
        return [*seen, mutex.take()]

    assert face.run(core()) == [True, False, True]


def test_mutex_of_threads_lets_one_of_many_in(store: SqliteStore) -> None:
    mutex, taken = BlockingPort(store).mutex(), []
    threads = [threading.Thread(target=lambda: taken.append(mutex.take())) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(LONG_S)

    assert sorted(taken) == [False] * 7 + [True]


def test_sleep_lasts_at_least_as_long_as_asked(port: Port, face: Face) -> None:
    async def core() -> float:
        begun = port.now()
        await port.sleep(0.02)
        return port.now() - begun

    assert 0.019 < face.run(core()) < LONG_S


def test_clocks_are_the_monotonic_one_and_the_wall(port: Port) -> None:
    before, wall_before = time.monotonic(), time.time()

    now, wall_ms = port.now(), port.wall_ms()

    assert before <= now <= time.monotonic()
    assert isinstance(wall_ms, int)
    assert wall_before - 0.001 <= wall_ms / 1000 <= time.time()


# Clean-ups


def test_clean_up_runs_to_its_end(port: Port, face: Face) -> None:
    done = []

    async def clean_up() -> None:
        await port.commit(BATCH)
        await port.sleep(0)
        done.append(await port.commit(BATCH))

    async def core() -> None:
        port.finish(clean_up())
        if isinstance(port, AsyncioPort):
            await port.finished()

    face.run(core())

    assert isinstance(done[0], Refused)


def test_clean_up_goes_on_when_its_caller_is_cancelled(store: SqliteStore) -> None:
    async def core() -> object:
        port, done = AsyncioPort(store), asyncio.get_running_loop().create_future()

        async def clean_up() -> None:
            await port.sleep(0)
            done.set_result(await port.commit(BATCH))

        async def caller() -> None:
            try:
                await port.sleep(LONG_S)
            finally:
                port.finish(clean_up())

        task = asyncio.create_task(caller())
        await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(LONG_S):
            await port.finished() if task.done() else await asyncio.wait([task])
            return await done

    assert asyncio.run(core()) == Applied()


# Driving


class Suspending:
    """What awaits something that is not its port's."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def test_drive_gives_the_result_of_a_core_that_never_suspends(store: SqliteStore) -> None:
    async def core() -> str:
        await BlockingPort(store).sleep(0)
        return "done"

    assert drive(core()) == "done"


def test_drive_lets_the_errors_of_a_core_through(store: SqliteStore) -> None:
    store.close()

    with pytest.raises(ClosedError):
        drive(BlockingPort(store).commit(BATCH))


def test_core_that_suspends_is_an_error_at_once_and_is_closed() -> None:
    closed = []

    async def core() -> None:
        try:
            await Suspending()
        finally:
            closed.append(True)

    with pytest.raises(RuntimeError, match="blocking port suspended"):
        drive(core())
    assert closed == [True]


def test_core_over_an_asyncio_port_cannot_be_driven(store: SqliteStore) -> None:
    slip: Coroutine[Any, Any, None] = AsyncioPort(store).sleep(1)

    with pytest.raises(RuntimeError):
        drive(slip)
