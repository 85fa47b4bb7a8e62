"""A scripted server that is silent or late, cuts connections, or computes what it answers: seen by the real driver."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import cassandra
import cqlserver
import pytest
from cassandra import ConsistencyLevel, protocol
from cassandra.cluster import NoHostAvailable, Session
from cassandra.connection import ConnectionShutdown
from cassandra.policies import RetryPolicy
from cqlserver import Applied, CutAfter, CutBefore, Late, Refused, Request, Rows, ScriptedServer, Silence
from scriptedtokens import APPLIED, DOMAIN, SELECT, TOKENS, WHEN, connect, grant, insert, rows_of

# --- lost, late and silent answers ------------------------------------------------------------------------------------


def test_silence_ends_by_the_clients_own_timeout(server: ScriptedServer, session: Session) -> None:
    server.script(Silence())
    with pytest.raises(cassandra.OperationTimedOut):
        session.execute(grant(session, 1), timeout=0.05)
    assert rows_of(session, grant(session, 2)) == APPLIED
    assert len(server.lwts) == 2


def test_a_late_answer_waits_for_the_event_and_lets_others_pass(server: ScriptedServer, session: Session) -> None:
    gate, answered = Event(), Event()
    server.script(Late(gate, Applied()))
    waiting = session.execute_async(grant(session, 1))
    waiting.add_callback(lambda rows: answered.set())
    server.wait_for(1)
    assert rows_of(session, grant(session, 2)) == APPLIED
    assert not answered.is_set()
    gate.set()
    assert list(waiting.result()) == APPLIED


def test_a_late_callable_is_called_when_it_is_due(server: ScriptedServer, session: Session) -> None:
    gate, ran = Event(), Event()

    def run(request: object) -> Silence:
        ran.set()
        return Silence()

    server.script(Late(gate, run), Late(0.01, Applied()))
    with pytest.raises(cassandra.OperationTimedOut):
        session.execute(grant(session, 1), timeout=0.05)
    assert not ran.is_set()
    gate.set()
    assert ran.wait(5)
    assert rows_of(session, grant(session, 1)) == APPLIED


def cut_before(_seen: list[Request], reset: bool) -> cqlserver.Answer:
    return CutBefore(reset)


def cut_after(seen: list[Request], reset: bool) -> cqlserver.Answer:
    return CutAfter(seen.append, reset)


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
@pytest.mark.parametrize(("cut", "processed"), [(cut_before, 0), (cut_after, 1)])
def test_a_cut_connection_ends_the_request(
    server: ScriptedServer, session: Session, cut: Callable[..., cqlserver.Answer], processed: int, reset: bool
) -> None:
    seen: list[Request] = []
    server.script(cut(seen, reset))
    batch = grant(session, 1)
    with pytest.raises(ConnectionShutdown):
        session.execute(batch)
    assert len(server.lwts) == 1
    assert len(seen) == processed


def test_the_default_retry_policy_sends_a_cut_lwt_to_the_next_host() -> None:
    with ScriptedServer([TOKENS], hosts=["127.0.0.1", "127.0.0.2"]) as server:
        with connect(server, retry=RetryPolicy()) as session:
            server.script(CutAfter())
            assert rows_of(session, grant(session, 1)) == APPLIED
        assert {request.host for request in server.lwts} == {"127.0.0.1", "127.0.0.2"}
        assert server.repeated_lwts == server.lwts[1:]
        assert len(server.lwts) == 2


def test_the_fallthrough_policy_sends_a_cut_lwt_once() -> None:
    with ScriptedServer([TOKENS], hosts=["127.0.0.1", "127.0.0.2"]) as server:
        with connect(server) as session:
            server.script(CutAfter())
            batch = grant(session, 1)
            with pytest.raises(ConnectionShutdown):
                session.execute(batch)
        assert len(server.lwts) == 1
        assert not server.repeated_lwts


def test_a_stopped_host_refuses_connections_until_it_is_started(server: ScriptedServer) -> None:
    server.stop(server.host)
    with pytest.raises(NoHostAvailable), connect(server):
        pass
    server.start(server.host)
    with connect(server) as session:
        assert rows_of(session, insert(session)) == APPLIED


def test_one_cut_ends_all_requests_in_flight(server: ScriptedServer, session: Session) -> None:
    server.script(Silence(), Silence())
    futures = [session.execute_async(grant(session, token_id)) for token_id in (1, 2)]
    server.wait_for(2)
    server.cut(server.host)
    for future in futures:
        with pytest.raises(ConnectionShutdown):
            future.result()


# --- computed answers -------------------------------------------------------------------------------------------------


def test_a_store_of_the_test_may_stand_behind_the_server(server: ScriptedServer, session: Session) -> None:
    store: dict[Any, dict[str, Any]] = {}

    def commit(request: Request) -> cqlserver.Answer:
        found = [store.get(each.key["token_id"], {}) for each in request.statements]
        guards = [each.conditions for each in request.statements]
        if all(condition.holds(row) for row, conditions in zip(found, guards, strict=True) for condition in conditions):
            store.update({each.key["token_id"]: each.key | each.sets for each in request.statements})
            return Applied()
        return Refused([row for row in found if row])

    server.on_lwt = commit
    server.script(lambda request: (commit(request), CutAfter())[1])
    batch = grant(session, 1)
    with pytest.raises(ConnectionShutdown):
        session.execute(batch)
    server.wait_for(1)
    with connect(server) as again:
        (row,) = rows_of(again, grant(again, 1, 2))
    assert (row["[applied]"], row["token_id"], row["holder"], row["updated_time"]) == (False, 1, "me", WHEN)
    assert list(store) == [1]


def test_reads_are_answered_with_rows(server: ScriptedServer, session: Session) -> None:
    select = session.prepare(SELECT)
    select.consistency_level = ConsistencyLevel.LOCAL_SERIAL
    assert rows_of(session, select.bind((DOMAIN, "s", 10))) == []
    server.on_read = lambda request: [{"token_id": 1, "holder": "me", "ttl(holder)": 30}, {"token_id": 2}]
    assert rows_of(session, select.bind((DOMAIN, "s", 10))) == [
        {"token_id": 1, "holder": "me", "ttl(holder)": 30},
        {"token_id": 2, "holder": None, "ttl(holder)": None},
    ]
    read = server.reads[1]
    assert read.is_serial
    assert read.statement.limit == 10
    assert [(condition.column, condition.value) for condition in read.statement.where] == [
        ("domain_id", DOMAIN),
        ("name", "s"),
        ("kind", 1),
    ]


def test_reads_may_fail_too(server: ScriptedServer, session: Session) -> None:
    server.on_read = lambda request: cqlserver.read_timeout(data=True)
    with pytest.raises(cassandra.ReadTimeout) as raised:
        session.execute(session.prepare(SELECT), (DOMAIN, "s", 10))
    assert raised.value.data_retrieved


def mistaken() -> None:
    with ScriptedServer([TOKENS]) as server, connect(server) as session:
        server.on_read = lambda request: Rows([{"holdre": "me"}])
        with pytest.raises(protocol.ServerError):
            session.execute(session.prepare(SELECT), (DOMAIN, "s", 10))


def test_a_mistake_in_a_script_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="1 requests failed") as raised:
        mistaken()
    assert "holdre" in str(raised.value.__cause__)


def test_waiting_for_a_request_is_bounded(server: ScriptedServer) -> None:
    with pytest.raises(AssertionError, match="0 of 1 lwt requests came"):
        server.wait_for(1, timeout_s=0.01)
