"""Tasks that leave before their answer: the request goes on, the store works on, and nothing is reported as forgotten."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Coroutine, Iterator
from threading import Event
from typing import Any

import cassandra
import cqlserver
import pytest
from cassandra.connection import ConnectionShutdown
from contract.faces import Face
from cqlserver import CutAfter, Late, Request, ScriptedServer, Silence
from scriptedstore import DOMAIN, HASTY_S, HOSTS, SERVED, TOKENS, Bench, answered, checked, grant, opened, silent, told

from slotkeeper.database import (
    Applied,
    AsyncioPort,
    ClosedError,
    DatabaseError,
    Outcome,
    Refused,
    Row,
    Slice,
    Unavailable,
)
from slotkeeper.database.port import Pending

BOUND_S = 10.0


def run(core: Coroutine[Any, Any, Any]) -> Any:
    """Run in a loop that forgives nothing: what it would only log is an error."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        result = await core
        gc.collect()  # an exception that nobody retrieved is reported by its future's end
        return result

    result = asyncio.run(watched(), debug=True)
    gc.collect()
    assert not complaints
    return result


@pytest.fixture
def tasks(caplog: pytest.LogCaptureFixture) -> Iterator[Bench]:
    """A bench for tasks of one loop. Neither asyncio nor a future may have complained into the log."""
    with ScriptedServer([SERVED], hosts=HOSTS) as server, opened(server) as store:
        yield from checked(Bench(server, store, Face(AsyncioPort, run)))
    assert [record.message for record in caplog.records if record.name in ("asyncio", "concurrent.futures")] == []


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and see that it ends by that and at once."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, BOUND_S)


def came(bench: Bench, count: int) -> Awaitable[list[Request]]:
    """Wait until the server has that many transactions, without blocking the loop."""
    return asyncio.to_thread(bench.server.wait_for, count)


LATER: dict[str, cqlserver.Answer] = {
    "applied": cqlserver.Applied(),
    "refused": cqlserver.Refused(),
    "unknown": cqlserver.write_timeout("CAS"),
    "an error": cqlserver.unavailable("LOCAL_SERIAL"),
}


@pytest.mark.parametrize("answer", LATER.values(), ids=LATER)
@pytest.mark.parametrize("new", [True, False], ids=["new form", "known form"])
def test_answer_to_a_cancelled_commit_disturbs_nobody(tasks: Bench, answer: cqlserver.Answer, new: bool) -> None:
    gate = Event()

    async def core() -> Outcome:
        port = tasks.port
        if not new:
            assert await port.commit(grant(9)) == Applied()
        before = len(tasks.sent)
        tasks.server.script(Late(gate, answer))
        task = asyncio.create_task(port.commit(grant()))
        await came(tasks, before + 1)
        await cancelled(task)
        gate.set()
        return await port.commit(grant(2))

    assert tasks.face.run(core()) == Applied()
    assert len(tasks.sent) == (2 if new else 3)


def test_cut_under_a_cancelled_commit_leaves_the_store_usable(tasks: Bench) -> None:
    gate, was_cut = Event(), Event()
    tasks.server.script(Late(gate, CutAfter(lambda request: was_cut.set())))

    async def core() -> list[Outcome]:
        task = asyncio.create_task(tasks.port.commit(grant(1, name="s")))
        await came(tasks, 1)
        await cancelled(task)
        gate.set()
        assert await asyncio.to_thread(was_cut.wait, BOUND_S)
        return [await tasks.port.commit(grant(each, name="s")) for each in (2, 3)]

    first, second = tasks.face.run(core())
    assert told(first) in (Applied(), silent(ConnectionShutdown))  # sent before the driver saw the cut
    assert second == Applied()


def test_cancelled_commit_to_a_silent_server_leaves_the_store_usable(tasks: Bench) -> None:
    tasks.server.script(Silence())

    async def core() -> Outcome:
        task = asyncio.create_task(tasks.port.commit(grant()))
        await came(tasks, 1)
        await cancelled(task)
        return await tasks.port.commit(grant(2))

    assert tasks.face.run(core()) == Applied()


def test_cancelled_read_leaves_the_store_usable(tasks: Bench) -> None:
    gate = Event()
    tasks.server.on_read = lambda request: Late(gate, cqlserver.read_timeout())

    async def core() -> list[Row]:
        task = asyncio.create_task(tasks.port.read(TOKENS, (DOMAIN, "s"), (Slice((1,)), Slice((2,))), serial=True))
        await asyncio.to_thread(tasks.server.wait_for, 2, "read")
        await cancelled(task)
        gate.set()
        tasks.server.on_read = None
        return await tasks.port.read(TOKENS, (DOMAIN, "s"), (Slice((1,)),), serial=True)

    assert tasks.face.run(core()) == []


def test_commit_cancelled_while_its_form_is_prepared_is_sent_at_most_once(tasks: Bench) -> None:
    gate = Event()
    tasks.server.on_prepare = lambda request: Late(gate, cqlserver.Done())

    async def core() -> Outcome:
        task = asyncio.create_task(tasks.port.commit(grant()))
        await asyncio.to_thread(tasks.server.wait_for, 1, "prepare")
        await cancelled(task)
        gate.set()
        return await tasks.port.commit(grant(2))

    assert tasks.face.run(core()) == Applied()
    assert len(tasks.sent) in (1, 2)


def test_closing_while_a_form_is_prepared_means_that_nothing_happened() -> None:
    with ScriptedServer([SERVED], hosts=HOSTS) as server, opened(server, request_timeout_s=HASTY_S) as store:
        server.on_prepare = lambda request: Silence()

        async def core() -> list[type[BaseException]]:
            port = AsyncioPort(store)
            pending = [port.begin_commit(grant(each)) for each in range(3)]
            await asyncio.to_thread(server.wait_for, 1, "prepare")
            store.close()
            assert [await each.wait(BOUND_S) for each in pending] == [True] * 3
            return [error_of(each) for each in pending]

        preparing, *waiting = run(core())
        assert preparing is Unavailable
        assert waiting == [ClosedError] * 2
        assert server.lwts == []


def error_of(pending: Pending[Outcome]) -> type[BaseException]:
    with pytest.raises(DatabaseError) as raised:
        pending.result()
    return raised.type


def test_preparing_does_not_hold_up_the_loop(tasks: Bench) -> None:
    gate = Event()
    tasks.server.on_prepare = lambda request: Late(gate, cqlserver.Done())

    async def core() -> Outcome:
        task = asyncio.create_task(tasks.port.commit(grant()))
        await asyncio.to_thread(tasks.server.wait_for, 1, "prepare")
        gate.set()  # which a loop that waits for the server could not do
        return await task

    assert tasks.face.run(core()) == Applied()


def test_commit_that_was_begun_survives_its_waiter(tasks: Bench) -> None:
    gate = Event()
    tasks.server.script(Late(gate, cqlserver.Refused()))

    async def core() -> tuple[bool, Outcome]:
        pending = tasks.port.begin_commit(grant())
        first, second = (asyncio.create_task(pending.wait(BOUND_S)) for _ in range(2))
        await came(tasks, 1)
        await cancelled(first)
        assert not await pending.wait(0)
        gate.set()
        return await second, pending.result()

    assert tasks.face.run(core()) == (True, Refused({}))


def test_outcome_that_nobody_asks_for_is_not_reported(tasks: Bench) -> None:
    tasks.server.script(cqlserver.unavailable("SERIAL"), cqlserver.server_error())

    async def core() -> list[bool]:
        pending = [tasks.port.begin_commit(grant(each)) for each in range(2)]
        return [await each.wait(BOUND_S) for each in pending]

    assert tasks.face.run(core()) == [True, True]


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "awaited"])
def test_answer_after_the_end_of_its_loop_disturbs_nobody(tasks: Bench, begun: bool) -> None:
    gate, was_answered = Event(), Event()

    def answer(_: Request) -> cqlserver.Answer:
        was_answered.set()
        return cqlserver.unavailable("SERIAL")

    tasks.server.script(Late(gate, answer))
    left: list[object] = []

    async def core() -> None:
        port = tasks.port
        left.append(port.begin_commit(grant()) if begun else asyncio.create_task(port.commit(grant())))
        await came(tasks, 1)

    tasks.face.run(core())
    gate.set()
    assert was_answered.wait(BOUND_S)

    async def next_loop() -> Outcome:
        return await tasks.port.commit(grant(2))

    assert tasks.face.run(next_loop()) == Applied()


def test_many_tasks_share_a_store_and_each_learns_its_own_outcome(tasks: Bench) -> None:
    def answer(request: Request) -> cqlserver.Answer:
        token = request.statement.key["id"]
        assert isinstance(token, int)
        return (cqlserver.Applied(), cqlserver.Refused(), cqlserver.write_timeout("CAS"))[token % 3]

    tasks.server.on_lwt = answer

    async def core() -> list[Outcome]:
        return await asyncio.gather(*(tasks.port.commit(grant(each)) for each in range(60)))

    expected = [Applied(), Refused({}), answered(cassandra.WriteTimeout)]
    assert [told(each) for each in tasks.face.run(core())] == expected * 20
    assert len(tasks.sent) == 60
