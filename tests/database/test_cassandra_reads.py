"""Reads: whatever fails, nothing happened; several slices are asked for at once and joined in order."""

from __future__ import annotations

from threading import Event
from typing import Any

import cqlserver
import pytest
from cqlserver import CutBefore, Late, Request, Silence
from scriptedstore import DOMAIN, TOKENS, Bench

from slotkeeper.database import DatabaseError, Row, Slice, StatementRejected, TableMissing, Unavailable

BOUND_S = 10.0

FAILURES: dict[str, tuple[cqlserver.Answer, type[DatabaseError]]] = {
    "write timeout CAS": (cqlserver.write_timeout("CAS"), Unavailable),  # a serial read under contention
    "write failure CAS": (cqlserver.write_failure("CAS"), Unavailable),
    "CAS write unknown": (cqlserver.cas_write_unknown(), Unavailable),
    "read timeout": (cqlserver.read_timeout(), Unavailable),
    "read timeout with enough answers": (cqlserver.read_timeout(received=2), Unavailable),
    "read failure": (cqlserver.read_failure(), Unavailable),
    "unavailable": (cqlserver.unavailable("LOCAL_QUORUM"), Unavailable),
    "overloaded": (cqlserver.overloaded(), Unavailable),
    "bootstrapping": (cqlserver.bootstrapping(), Unavailable),
    "server error": (cqlserver.server_error(), Unavailable),
    "invalid": (cqlserver.invalid(), StatementRejected),
    "unauthorized": (cqlserver.unauthorized(), StatementRejected),
    "unconfigured table": (cqlserver.invalid("unconfigured table tokens"), TableMissing),
}
LOST = {"silence": Silence(), "cut": CutBefore(), "reset": CutBefore(reset=True)}


def token(id: int, **values: Any) -> dict[str, Any]:
    """Spell a row as the server has it."""
    return {"domain": DOMAIN, "name": "s", "kind": 1, "id": id, **values}


def whole(id: int, **values: Any) -> Row:
    """Spell a row as a reader has it."""
    return {**dict.fromkeys(TOKENS.columns), **token(id, **values)}


@pytest.mark.parametrize("serial", [True, False], ids=["serial", "plain"])
@pytest.mark.parametrize(("answer", "error"), FAILURES.values(), ids=FAILURES)
def test_read_that_fails_says_so_and_is_asked_once(
    bench: Bench, answer: cqlserver.Answer, error: type[DatabaseError], serial: bool
) -> None:
    before = len(bench.server.reads)
    bench.server.on_read = lambda request: answer

    with pytest.raises(error) as raised:
        bench.rows(serial=serial)

    assert type(raised.value) is error
    assert len(bench.server.reads) == before + 1


@pytest.mark.parametrize("answer", LOST.values(), ids=LOST)
def test_read_whose_answer_is_lost_is_unavailable_and_the_next_one_works(
    hasty: Bench, answer: cqlserver.Answer
) -> None:
    answers = iter([answer])
    hasty.server.on_read = lambda request: next(answers, cqlserver.Rows([token(1)]))

    with pytest.raises(Unavailable):
        hasty.rows()
    assert hasty.rows() == [whole(1)]


def test_slices_are_asked_for_at_once_and_joined_in_their_order(bench: Bench) -> None:
    before, gates = len(bench.server.reads), {each: Event() for each in (1, 2, 3)}

    def answer(request: Request) -> cqlserver.Answer:
        kind = request.statement.key["kind"]
        assert isinstance(kind, int)
        return Late(gates[kind], cqlserver.Rows([token(10 * kind), token(10 * kind + 1)]))

    async def core() -> list[Row]:
        slices = tuple(Slice((kind,)) for kind in gates)
        pending = bench.port.begin_read(TOKENS, (DOMAIN, "s"), slices, serial=True)
        bench.server.wait_for(before + 3, "read")
        for gate in reversed(gates.values()):
            assert not pending.done()
            gate.set()
        assert await pending.wait(BOUND_S)
        return pending.result()

    bench.server.on_read = answer
    assert [row["id"] for row in bench.face.run(core())] == [10, 11, 20, 21, 30, 31]


def test_one_slice_that_fails_fails_the_whole_read(bench: Bench) -> None:
    def answer(request: Request) -> cqlserver.server.ReadAnswer:
        return cqlserver.read_timeout() if request.statement.key["kind"] == 2 else [token(1)]

    bench.server.on_read = answer
    with pytest.raises(Unavailable):
        bench.rows(Slice((1,)), Slice((2,)), Slice((3,)))


def test_one_slice_that_is_silent_ends_the_whole_read_at_its_timeout(hasty: Bench) -> None:
    def answer(request: Request) -> cqlserver.server.ReadAnswer:
        return Silence() if request.statement.key["kind"] == 1 else [token(1)]

    hasty.server.on_read = answer
    with pytest.raises(Unavailable):
        hasty.rows(Slice((1,)), Slice((2,)))


def test_slice_asks_for_what_it_names(bench: Bench) -> None:
    bench.server.on_read = lambda request: [token(5, holder="me", **{"ttl(holder)": 30})]

    rows = bench.rows(Slice((1,), after=4, limit=2, ttl_of="holder"))

    assert rows == [{**whole(5, holder="me"), "ttl(holder)": 30}]
    statement = bench.server.reads[-1].statement
    where = [(each.column, each.operator, each.value) for each in statement.where]
    assert where == [("domain", "=", DOMAIN), ("name", "=", "s"), ("kind", "=", 1), ("id", ">", 4)]
    assert statement.limit == 2


def test_slice_of_some_rows_asks_for_them_alone(bench: Bench) -> None:
    bench.rows(Slice((1,), among=(3, 1)))

    *_, last = bench.server.reads[-1].statement.where
    assert (last.column, last.operator, last.value) == ("id", "in", (3, 1))
