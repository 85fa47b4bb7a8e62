"""What a caller learns when the answer to a transaction is lost, late, or never comes, and that the store works on."""

from __future__ import annotations

import gc
import time
from threading import Event

import cassandra
import cqlserver
import pytest
from cassandra.connection import ConnectionShutdown
from contract.faces import Face
from cqlserver import CutAfter, CutBefore, Late, Request, ScriptedServer, Silence
from scriptedstore import HOSTS, SERVED, TOKENS, Bench, grant, opened, silent, told

from slotkeeper.database import (
    Applied,
    Batch,
    ClosedError,
    Kind,
    Outcome,
    Refused,
    Table,
    TableMissing,
    Unavailable,
    delete,
    insert,
)

BOUND_S = 10.0


# Silence and late answers


def test_silence_ends_as_an_unknown_outcome_after_the_request_timeout(hasty: Bench) -> None:
    assert hasty.told(Silence()) == silent(cassandra.OperationTimedOut)
    assert len(hasty.sent) == 1
    assert hasty.commit() == Applied()


def test_late_answer_is_nobodys_and_the_next_answers_find_their_requests(hasty: Bench) -> None:
    gate, came = Event(), Event()

    def answer(_: Request) -> cqlserver.Answer:
        came.set()
        return cqlserver.Applied()

    assert hasty.told(Late(gate, answer), batch=grant(name="s")) == silent(cassandra.OperationTimedOut)
    gate.set()
    assert came.wait(BOUND_S)

    answers = [cqlserver.Refused() if each % 2 else cqlserver.Applied() for each in range(6)]
    outcomes = [hasty.commit(answer, batch=grant(each, name="s")) for each, answer in enumerate(answers, 2)]
    assert outcomes == [Refused({}) if each % 2 else Applied() for each in range(6)]
    assert len({request.host for request in hasty.sent}) == 1
    assert len(hasty.sent) == 7


def test_late_answer_does_not_hold_up_other_requests(fresh: Bench) -> None:
    gate = Event()
    fresh.server.script(Late(gate, cqlserver.Applied()))

    async def core() -> Outcome:
        pending = fresh.port.begin_commit(grant(name="s"))
        fresh.server.wait_for(1)
        assert await fresh.port.commit(grant(2, name="s")) == Applied()
        assert not pending.done()
        gate.set()
        assert await pending.wait(BOUND_S)
        return pending.result()

    assert fresh.face.run(core()) == Applied()


# Connections that are cut


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("processed", [False, True], ids=["before", "after"])
def test_cut_leaves_the_outcome_unknown_and_no_other_host_is_asked(fresh: Bench, processed: bool, reset: bool) -> None:
    effects: list[Request] = []

    outcome = fresh.told(CutAfter(effects.append, reset) if processed else CutBefore(reset))

    assert outcome == silent(ConnectionShutdown)
    assert len(fresh.sent) == 1
    assert effects == (fresh.sent if processed else [])
    assert fresh.commit() == Applied()


def test_cut_ends_every_request_in_flight(fresh: Bench) -> None:
    fresh.server.script(Silence(), Silence(), Silence())

    async def core() -> list[object]:
        pending = [fresh.port.begin_commit(grant(each)) for each in range(3)]
        fresh.server.wait_for(3)
        fresh.server.cut()
        assert [await each.wait(BOUND_S) for each in pending] == [True] * 3
        return [told(each.result()) for each in pending]

    assert fresh.face.run(core()) == [silent(ConnectionShutdown)] * 3
    assert len(fresh.sent) == 3


@pytest.mark.parametrize("down", HOSTS)
def test_other_hosts_serve_while_one_is_down(fresh: Bench, down: str) -> None:
    fresh.server.stop(down)
    for _ in range(2):  # by these the driver learns that the connection is gone
        fresh.probe()

    assert [fresh.commit() for _ in range(8)] == [Applied()] * 8
    assert {request.host for request in fresh.sent} == set(HOSTS) - {down}


def test_nothing_is_sent_and_nothing_happened_when_no_host_is_up(fresh: Bench) -> None:
    assert fresh.commit() == Applied()
    for host in fresh.server.hosts:
        fresh.server.stop(host.address)
    for _ in range(2):  # by these the driver learns that its connections are gone
        fresh.probe()

    with pytest.raises(Unavailable, match="Nothing was changed; try again"):
        fresh.commit()
    assert len(fresh.sent) == 1


# The store is closed


def test_closing_with_a_request_in_flight_leaves_it_unknown(face: Face) -> None:
    with ScriptedServer([SERVED], hosts=HOSTS) as server, opened(server) as store:
        server.script(Silence())
        bench = Bench(server, store, face)

        async def core() -> Outcome:
            pending = bench.port.begin_commit(grant())
            server.wait_for(1)
            store.close()
            assert await pending.wait(BOUND_S)
            return pending.result()

        assert told(face.run(core())) == silent(ConnectionShutdown)
        assert len(server.lwts) == 1
        with pytest.raises(ClosedError):
            bench.commit()


# Statements that must be prepared


def test_forgotten_statements_are_prepared_again_and_the_batch_applies_once(fresh: Bench) -> None:
    def batch() -> Batch:
        partition = grant().partition
        gone, new = delete((1, 2), expect={"holder": ("me",)}), insert((2, 3), {"holder": "me"}, absent=True)
        return Batch(TOKENS, partition, (*grant().writes, gone, new))

    assert fresh.commit(batch=batch()) == Applied()
    gc.collect()  # the driver itself keeps statements weakly
    fresh.server.forget_prepared()

    assert fresh.commit(batch=batch()) == Applied()
    assert len(fresh.sent) == 2
    assert len(fresh.server.seen("unprepared")) == 3


def test_cut_while_preparing_again_sends_the_batch_once(fresh: Bench) -> None:
    assert fresh.commit() == Applied()
    fresh.server.forget_prepared()
    cuts = iter([CutBefore()])
    fresh.server.on_prepare = lambda request: next(cuts, cqlserver.Done())

    assert fresh.commit() == Applied()
    assert len(fresh.sent) == 2


def test_preparing_again_that_fails_is_no_success(fresh: Bench) -> None:
    assert fresh.commit() == Applied()
    fresh.server.forget_prepared()
    fresh.server.on_prepare = lambda request: cqlserver.invalid("unconfigured table tokens")

    assert fresh.told() == TableMissing
    assert len(fresh.sent) == 1


ABSENT = Table("absent", {"name": Kind.TEXT}, {"id": Kind.INT}, {"holder": Kind.TEXT})


def test_table_that_does_not_exist_is_named_and_nothing_is_sent(fresh: Bench) -> None:
    with pytest.raises(TableMissing, match="absent"):
        fresh.commit(batch=Batch(ABSENT, ("s",), (insert((1,), {}, absent=True),)))
    assert fresh.sent == []


@pytest.mark.parametrize(
    "answer",
    [cqlserver.overloaded(), cqlserver.server_error(), CutBefore(), Silence()],
    ids=["overloaded", "error", "cut", "silence"],
)
def test_preparing_that_fails_means_that_nothing_happened(hasty: Bench, answer: cqlserver.Answer) -> None:
    hasty.server.on_prepare = lambda request: answer
    with pytest.raises(Unavailable):
        hasty.commit()
    assert hasty.sent == []


def test_preparing_waits_no_longer_than_a_request(hasty: Bench) -> None:
    hasty.server.on_prepare = lambda request: Silence()
    started = time.monotonic()

    assert hasty.told() == Unavailable
    assert time.monotonic() - started < 5


def test_form_whose_preparing_failed_is_prepared_by_the_next_commit(fresh: Bench) -> None:
    fresh.server.on_prepare = lambda request: cqlserver.overloaded()
    assert fresh.told() == Unavailable
    fresh.server.on_prepare = None

    assert fresh.commit() == Applied()


def test_new_forms_are_not_held_up_by_those_that_wait_for_an_answer(fresh: Bench) -> None:
    gate = Event()
    fresh.server.script(*[Late(gate, cqlserver.Applied())] * 3)
    forms = [
        insert((1, 1), {}, absent=True),
        insert((1, 1), {}, absent=True, ttl_s=9),
        delete((1, 1), expect={"holder": ("me",)}),
    ]

    async def core() -> list[Outcome]:
        pending = [fresh.port.begin_commit(Batch(TOKENS, grant().partition, (form,))) for form in forms]
        fresh.server.wait_for(3)
        gate.set()
        return [each.result() for each in pending if await each.wait(BOUND_S)]

    assert fresh.face.run(core()) == [Applied()] * 3
