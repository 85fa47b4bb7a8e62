"""Each outcome of the driver, sorted: applied, refused, unknown, or an error that says that nothing happened.

The rows are those of the specification's table. Behind each stands one request, whatever becomes of it: all benches have
two hosts, and their fixtures fail a test in which a transaction reached them twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import cassandra
import cqlserver
import pytest
from cassandra import protocol
from contract.faces import Face
from cqlserver import ScriptedServer, write_failure, write_timeout
from scriptedstore import HOSTS, SERVED, TOKENS, Bench, Told, answered, checked, grant, opened

from slotkeeper.database import (
    Applied,
    Batch,
    DatabaseError,
    KeyspaceMissing,
    Refused,
    Row,
    StatementRejected,
    TableMissing,
    Unavailable,
    delete,
    insert,
    update,
)

WRITE_TYPES: list[cqlserver.answers.WriteType] = [
    "CAS",
    "SIMPLE",
    "BATCH",
    "BATCH_LOG",
    "UNLOGGED_BATCH",
    "COUNTER",
    "VIEW",
    "CDC",
]
TIMED_OUT, FAILED = answered(cassandra.WriteTimeout), answered(cassandra.WriteFailure)

UNKNOWN: dict[str, tuple[cqlserver.ErrorFrame, Told]] = {
    **{f"write timeout {kind}": (write_timeout(kind), TIMED_OUT) for kind in WRITE_TYPES},
    **{f"write failure {kind}": (write_failure(kind), FAILED) for kind in WRITE_TYPES},
    "write timeout CAS at the commit level": (write_timeout("CAS", "LOCAL_QUORUM"), TIMED_OUT),
    "write timeout SIMPLE at QUORUM": (write_timeout("SIMPLE", "QUORUM"), TIMED_OUT),
    "CAS write unknown": (cqlserver.cas_write_unknown(), answered(protocol.ErrorMessage)),
    "unavailable at LOCAL_QUORUM": (cqlserver.unavailable("LOCAL_QUORUM"), answered(cassandra.Unavailable)),
    "unavailable at QUORUM": (cqlserver.unavailable("QUORUM"), answered(cassandra.Unavailable)),
    "overloaded": (cqlserver.overloaded(), answered(protocol.OverloadedErrorMessage)),
    "server error": (cqlserver.server_error(), answered(protocol.ServerError)),
    "truncate error": (cqlserver.truncate_error(), answered(protocol.TruncateError)),
}
NOTHING_HAPPENED: dict[str, tuple[cqlserver.ErrorFrame, type[DatabaseError]]] = {
    "unavailable at LOCAL_SERIAL": (cqlserver.unavailable("LOCAL_SERIAL"), Unavailable),
    "unavailable at SERIAL": (cqlserver.unavailable("SERIAL"), Unavailable),
    "bootstrapping": (cqlserver.bootstrapping(), Unavailable),
    "read timeout without data": (cqlserver.read_timeout(), Unavailable),
    "read timeout with enough answers": (cqlserver.read_timeout(received=2), Unavailable),
    "read failure": (cqlserver.read_failure(), Unavailable),
    "invalid": (cqlserver.invalid(), StatementRejected),
    "syntax error": (cqlserver.syntax_error(), StatementRejected),
    "unauthorized": (cqlserver.unauthorized(), StatementRejected),
    "configuration error": (cqlserver.config_error(), StatementRejected),
    "unconfigured table": (cqlserver.invalid("unconfigured table tokens"), TableMissing),
    "no such keyspace": (cqlserver.invalid("Keyspace 'slots' does not exist"), KeyspaceMissing),
}


# What the server answers


@pytest.mark.parametrize(("answer", "outcome"), UNKNOWN.values(), ids=UNKNOWN)
def test_error_that_leaves_it_open_is_an_unknown_outcome_sent_once(
    bench: Bench, answer: cqlserver.ErrorFrame, outcome: Told
) -> None:
    assert bench.told(answer) == outcome
    assert len(bench.sent) == 1


@pytest.mark.parametrize(("answer", "error"), NOTHING_HAPPENED.values(), ids=NOTHING_HAPPENED)
def test_error_that_settles_it_says_that_nothing_happened(
    bench: Bench, answer: cqlserver.ErrorFrame, error: type[DatabaseError]
) -> None:
    with pytest.raises(error) as raised:
        bench.commit(answer)

    assert type(raised.value) is error
    assert raised.value.__cause__ is not None
    assert len(bench.sent) == 1


def test_error_after_which_the_driver_drops_the_connection_is_an_unknown_outcome(fresh: Bench) -> None:
    assert fresh.told(cqlserver.protocol_error("what?")) == answered(protocol.ProtocolException)
    assert len(fresh.sent) == 1


def test_error_says_in_one_line_what_the_server_said(bench: Bench) -> None:
    with pytest.raises(StatementRejected, match=r"^The database rejected the statement: Unknown thing\. Nothing was"):
        bench.commit(cqlserver.invalid("Unknown thing\nat line 1"))


def test_batch_that_the_server_applies_is_applied(bench: Bench) -> None:
    assert bench.commit(cqlserver.Applied()) == Applied()
    assert len(bench.sent) == 1


def test_answer_that_is_none_leaves_the_outcome_unknown(bench: Bench) -> None:
    assert bench.told(cqlserver.Done()) == answered(LookupError)
    assert len(bench.sent) == 1


# What a refusal shows


def token(id: int, holder: str | None, version: int | None = None) -> Row:
    return {"kind": 1, "id": id, "holder": holder, "version": version}


def refused(batch: Batch, *rows: Row) -> Refused:
    """Return the refusal of a batch that shows these rows, whose partition is the batch's."""
    partition = dict(zip(TOKENS.partition, batch.partition, strict=True))
    return Refused({(row["kind"], row["id"]): {**partition, **row} for row in rows})


def test_refusal_shows_the_rows_that_exist_by_key(bench: Bench) -> None:
    batch = grant(1, 2, 3)
    first, third = token(1, None), token(3, "b", 9)

    assert bench.commit(cqlserver.Refused([third, first]), batch=batch) == refused(batch, first, third)
    assert len(bench.sent) == 1


def test_refusal_with_no_row_shows_that_none_exists(bench: Bench) -> None:
    assert bench.commit(cqlserver.Refused(), batch=grant(1, 2)) == Refused({})


def test_refusal_of_an_insert_shows_whole_rows(bench: Bench) -> None:
    guard = update((1, 2), {"version": 8}, expect={"version": (7,)})
    batch = Batch(TOKENS, grant().partition, (insert((1, 1), {"holder": "me"}, absent=True), guard))
    rows = [{**token(1, "you", 5), "seen_at": None}, {**token(2, "you", 7), "seen_at": None}]

    assert bench.commit(cqlserver.Refused(rows), batch=batch) == refused(batch, *rows)


def test_refusal_shows_the_columns_of_the_conditions_alone(bench: Bench) -> None:
    batch = Batch(TOKENS, grant().partition, (delete((1, 1), expect={"holder": ("me",)}),))

    outcome = bench.commit(cqlserver.Refused([token(1, "you", 5)]), batch=batch)

    assert outcome == refused(batch, {"kind": 1, "id": 1, "holder": "you"})


def test_time_in_a_refusal_is_the_milliseconds_that_were_written(bench: Bench) -> None:
    batch = Batch(TOKENS, grant().partition, (update((1, 1), {"seen_at": 1}, expect={"seen_at": (-1,)}),))
    answer = cqlserver.Refused([{"kind": 1, "id": 1, "seen_at": datetime(2026, 1, 2, 3, 4, 5, 6000)}])

    outcome = bench.commit(answer, batch=batch)

    assert outcome == refused(batch, {"kind": 1, "id": 1, "seen_at": 1_767_323_045_006})


@pytest.fixture
def scylla(face: Face) -> Iterator[Bench]:
    with ScriptedServer([SERVED], hosts=HOSTS, dialect="scylla") as server, opened(server) as store:
        yield from checked(Bench(server, store, face))


def test_scylla_shows_a_row_a_statement_and_those_of_nulls_do_not_exist(scylla: Bench) -> None:
    rider = insert((2, 9), {"holder": "me"})
    batch = Batch(TOKENS, grant().partition, (*grant(3, 2, 1).writes, rider))
    rows: list[Row] = [token(2, None, 6), {"kind": 2, "id": 9, "holder": "x"}]

    assert scylla.commit(cqlserver.Refused(rows), batch=batch) == refused(batch, rows[0])


@pytest.mark.parametrize("rows", [[], [token(1, "you", 7)]], ids=["none exists", "one exists"])
def test_scylla_shows_rows_also_when_the_batch_applied(scylla: Bench, rows: list[Row]) -> None:
    assert scylla.commit(cqlserver.Applied(rows), batch=grant(2, 1)) == Applied()


# Nothing is sent twice


def test_driver_sends_no_transaction_twice_whatever_is_answered(bench: Bench) -> None:
    answers = [answer for answer, _ in (*UNKNOWN.values(), *NOTHING_HAPPENED.values())]
    batches = [grant() for _ in answers]

    for answer, batch in zip(answers, batches, strict=True):
        bench.told(answer, batch=batch)

    assert [request.statement.key["name"] for request in bench.sent] == [batch.partition[1] for batch in batches]
    assert {request.host for request in bench.sent} == set(HOSTS)
    assert not bench.server.repeated_lwts
