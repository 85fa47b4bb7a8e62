"""The scripted server is what the other tests of the driver stand on, so it is tested with the real driver first."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Event
from typing import Any
from uuid import UUID

import cassandra
import cqlserver
import pytest
import trustme
from cassandra import ConsistencyLevel, protocol
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.connection import ConnectionShutdown
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, RetryPolicy, RoundRobinPolicy
from cassandra.query import UNSET_VALUE, BatchStatement, dict_factory
from cqlserver import (
    UNSET,
    Applied,
    CutAfter,
    CutBefore,
    Host,
    Late,
    Refused,
    Request,
    Rows,
    ScriptedServer,
    Silence,
    Table,
)

DOMAIN = UUID("30000000-0000-0000-0000-000000000001")
WHEN = datetime(2026, 1, 2, 3, 4, 5, 6000)
TOKENS = Table.from_cql(
    """CREATE TABLE IF NOT EXISTS slots.tokens (
        domain_id uuid, -- whose
        name text,
        kind int,
        token_id int,
        holder text,
        updated_time timestamp,
        PRIMARY KEY ((domain_id, name), kind, token_id)
    ) WITH CLUSTERING ORDER BY (kind ASC, token_id ASC) AND compaction = {'class': 'LeveledCompactionStrategy'}"""
)
GRANT = (
    "UPDATE tokens USING TTL ? SET holder = ?, updated_time = ? WHERE domain_id = ? AND name = ? AND kind = ? "
    "AND token_id = ? IF holder IN (?, null) AND updated_time = ?"
)
INSERT = "INSERT INTO tokens (domain_id, name, kind, token_id, holder) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?"
SELECT = "SELECT token_id, holder, ttl(holder) FROM slots.tokens WHERE domain_id = ? AND name = ? AND kind = 1 LIMIT ?"

# What the applied row of a batch looks like: the first column alone.
APPLIED = [{"[applied]": True}]


def profile(retry: RetryPolicy, timeout_s: float = 10.0) -> ExecutionProfile:
    return ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        retry_policy=retry,
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=timeout_s,
        row_factory=dict_factory,
    )


@contextmanager
def connect(
    server: ScriptedServer, keyspace: str | None = "slots", retry: RetryPolicy | None = None, **options: Any
) -> Iterator[Session]:
    options = {"protocol_version": 4, "reconnection_policy": ConstantReconnectionPolicy(0.05, None)} | options
    options = {name: value for name, value in options.items() if value is not None}
    profiles = {EXEC_PROFILE_DEFAULT: profile(retry or FallthroughRetryPolicy())}
    cluster = Cluster([server.host], port=server.port, execution_profiles=profiles, **options)
    try:
        yield cluster.connect(keyspace, wait_for_all_pools=True)
    finally:
        cluster.shutdown()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([TOKENS]) as server:
        yield server


@pytest.fixture
def session(server: ScriptedServer) -> Iterator[Session]:
    with connect(server) as session:
        yield session


def grant(session: Session, *token_ids: int) -> BatchStatement:
    """Make a batch that gives each token to `me`."""
    update, batch = session.prepare(GRANT), BatchStatement()
    for token_id in token_ids:
        batch.add(update, (30, "me", WHEN, DOMAIN, "s", 1, token_id, "FREE", None))
    return batch


def insert(session: Session, token_id: int = 7) -> Any:
    return session.prepare(INSERT).bind((DOMAIN, "s", 2, token_id, "me", 60))


def rows_of(session: Session, statement: Any) -> list[dict[str, Any]]:
    return list(session.execute(statement))


# --- connecting -------------------------------------------------------------------------------------------------------


def test_the_driver_learns_schema_and_ring(server: ScriptedServer, session: Session) -> None:
    metadata = session.cluster.metadata
    table = metadata.keyspaces["slots"].tables["tokens"]
    assert [column.name for column in table.partition_key] == ["domain_id", "name"]
    assert [column.name for column in table.clustering_key] == ["kind", "token_id"]
    assert table.columns["updated_time"].cql_type == "timestamp"
    assert [host.release_version for host in metadata.all_hosts()] == ["5.0.8"]
    assert [host.address for host in metadata.get_replicas("slots", b"any")] == [server.host]


def test_an_unknown_keyspace_is_refused(server: ScriptedServer, session: Session) -> None:
    with pytest.raises(cassandra.InvalidRequest, match="Keyspace 'nowhere' does not exist"):
        session.execute("USE nowhere")
    # The driver's connect() hides the server's error, and takes the host for one that is down.
    with pytest.raises(NoHostAvailable, match="using keyspace 'nowhere'"), connect(server, "nowhere"):
        pass


def test_a_driver_that_starts_too_high_comes_down_to_version_4(server: ScriptedServer) -> None:
    with connect(server, protocol_version=None) as session:
        assert session.cluster.protocol_version == 4


def test_credentials_are_checked() -> None:
    with ScriptedServer([TOKENS], credentials=("app", "secret")) as server:
        with connect(server, auth_provider=PlainTextAuthProvider("app", "secret")) as session:
            assert rows_of(session, insert(session)) == APPLIED
        with pytest.raises(NoHostAvailable) as raised, connect(server, auth_provider=PlainTextAuthProvider("app", "x")):
            pass
        assert isinstance(raised.value.errors[f"{server.host}:{server.port}"], cassandra.AuthenticationFailed)


def test_tls_encrypts_the_connection() -> None:
    authority = trustme.CA()
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("127.0.0.1").configure_cert(ours)
    authority.configure_trust(theirs)
    with ScriptedServer([TOKENS], tls=ours) as server:
        options: dict[str, Any] = {"ssl_context": theirs, "ssl_options": {"server_hostname": "127.0.0.1"}}
        with connect(server, **options) as session:
            assert rows_of(session, insert(session)) == APPLIED


def test_tls_fails_for_a_client_that_does_not_trust_the_server() -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(ours)
    hostname = {"server_hostname": "127.0.0.1"}
    options: dict[str, Any] = {"ssl_context": ssl.create_default_context(), "ssl_options": hostname}
    with ScriptedServer([TOKENS], tls=ours) as server, pytest.raises(NoHostAvailable), connect(server, **options):
        pass


def test_hosts_may_stand_in_different_datacenters() -> None:
    hosts = [Host("127.0.0.1", "east", "r1"), Host("127.0.0.2", "west", "r2")]
    with ScriptedServer([TOKENS], hosts=hosts) as server, connect(server) as session:
        seen = {(host.address, host.datacenter, host.rack) for host in session.cluster.metadata.all_hosts()}
    assert seen == {("127.0.0.1", "east", "r1"), ("127.0.0.2", "west", "r2")}


def test_settings_of_the_server_can_be_read(server: ScriptedServer, session: Session) -> None:
    query = "SELECT value FROM system_views.settings WHERE name = 'paxos_variant'"
    assert rows_of(session, query) == [{"value": "v2"}]
    server.system.settings["paxos_variant"] = "v1"
    assert rows_of(session, query) == [{"value": "v1"}]


def test_each_host_has_a_clock_of_its_own() -> None:
    query = "SELECT rack, toUnixTimestamp(now()) AS clock_ms FROM system.local"
    with ScriptedServer([TOKENS], hosts=["127.0.0.1", "127.0.0.2"]) as server, connect(server) as session:
        server.system.clock_ms = lambda host: int(host.address[-1])
        asked = [session.execute(query, host=host).one() for host in session.cluster.metadata.all_hosts()]
    assert sorted(row["clock_ms"] for row in asked) == [1, 2]


def test_a_schema_may_be_applied(server: ScriptedServer) -> None:
    with connect(server, None) as session:
        session.execute("CREATE KEYSPACE IF NOT EXISTS fresh WITH replication = {'class': 'SimpleStrategy'}")
        session.set_keyspace("fresh")
        session.execute(
            f'CREATE TABLE t (k text PRIMARY KEY, "values" frozen<map<text, int>>, tags set<text>) WITH id = {DOMAIN}'
        )
        assert rows_of(session, "UPDATE t SET tags = null WHERE k = 'a' IF EXISTS") == APPLIED
        server.on_read = lambda request: [{"k": "a", "values": {"x": 1}, "tags": {"y"}}]
        assert rows_of(session, "SELECT * FROM t") == [{"k": "a", "tags": {"y"}, "values": {"x": 1}}]
        known = "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"
        assert list(session.execute(known, ("fresh", "t"))) == [{"id": DOMAIN}]
    assert [request.statement.verb for request in server.seen("schema")] == ["create", "create"]


# --- prepared statements ----------------------------------------------------------------------------------------------


def test_markers_have_the_types_of_their_columns(session: Session) -> None:
    update = session.prepare(GRANT)
    assert [(marker.name, marker.type.typename) for marker in update.column_metadata] == [
        ("[ttl]", "int"),
        ("holder", "varchar"),
        ("updated_time", "timestamp"),
        ("domain_id", "uuid"),
        ("name", "varchar"),
        ("kind", "int"),
        ("token_id", "int"),
        ("holder", "varchar"),
        ("updated_time", "timestamp"),
    ]
    assert update.routing_key_indexes == [3, 4]
    assert session.prepare(INSERT).routing_key_indexes == [0, 1]


@pytest.mark.parametrize(
    ("cql", "markers"),
    [
        ("DELETE holder FROM tokens WHERE domain_id = ? AND name = 'it''s' IF holder = ?", ["domain_id", "holder"]),
        ("DELETE FROM tokens WHERE name = ? AND (kind, token_id) >= (?, ?)", ["name", "kind", "token_id"]),
        ("SELECT * FROM tokens WHERE name = ? AND token_id IN ? LIMIT ?", ["name", "in(token_id)", "[limit]"]),
        ("SELECT holder AS h FROM tokens WHERE (kind, token_id) IN ((1, ?), (2, ?))", ["token_id", "token_id"]),
        ("UPDATE tokens SET holder = :new WHERE name = :name IF holder = :old", ["new", "name", "old"]),
        ("INSERT INTO tokens (name, holder) VALUES (?, null) USING TTL 0 AND TIMESTAMP ?", ["name", "[timestamp]"]),
    ],
)
def test_statements_are_understood(session: Session, cql: str, markers: list[str]) -> None:
    assert [marker.name for marker in session.prepare(cql).column_metadata] == markers


@pytest.mark.parametrize(
    ("cql", "error", "message"),
    [
        ("SELEKT * FROM tokens", protocol.SyntaxException, "no viable alternative"),
        ("SELECT * FROM tokens WHERE", protocol.SyntaxException, "no viable alternative"),
        ("SELECT nothing FROM tokens", cassandra.InvalidRequest, "Undefined column name nothing in table slots.tokens"),
        ("SELECT * FROM absent", cassandra.InvalidRequest, "table absent does not exist"),
        ("SELECT * FROM nowhere.absent", cassandra.InvalidRequest, "keyspace nowhere does not exist"),
    ],
)
def test_wrong_statements_are_refused(session: Session, cql: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        session.prepare(cql)


def test_a_forgotten_statement_is_prepared_again_and_runs_once(server: ScriptedServer, session: Session) -> None:
    statement = insert(session)
    server.forget_prepared()
    assert rows_of(session, statement) == APPLIED
    assert len(server.lwts) == len(server.seen("unprepared")) == 1
    server.script(cqlserver.unprepared)
    assert rows_of(session, statement) == APPLIED
    assert len(server.repeated_lwts) == 2


def test_a_batch_of_forgotten_statements_runs_once(server: ScriptedServer, session: Session) -> None:
    # Both names keep their statements alive: the driver looks them up by weak references when it prepares again.
    update, owner = session.prepare(GRANT), session.prepare(INSERT)
    batch = BatchStatement()
    batch.add(update, (30, "me", WHEN, DOMAIN, "s", 1, 1, "FREE", None))
    batch.add(owner, (DOMAIN, "s", 2, 1, "me", 30))
    server.forget_prepared()
    assert rows_of(session, batch) == APPLIED
    assert len(server.seen("unprepared")) == 2
    assert len(server.lwts) == 1


# --- what a request says ----------------------------------------------------------------------------------------------


def test_a_request_is_decoded(server: ScriptedServer, session: Session) -> None:
    session.execute(grant(session, 3))
    (request,) = server.lwts
    assert (request.kind, request.consistency, request.serial_consistency) == ("batch", "LOCAL_QUORUM", "LOCAL_SERIAL")
    assert (request.host, request.keyspace) == (server.host, "slots")
    statement = request.statement
    assert statement.cql == GRANT
    assert statement.values == (30, "me", WHEN, DOMAIN, "s", 1, 3, "FREE", None)
    assert (statement.verb, statement.table, statement.ttl) == ("update", "tokens", 30)
    assert statement.key == {"domain_id": DOMAIN, "name": "s", "kind": 1, "token_id": 3}
    assert statement.sets == {"holder": "me", "updated_time": WHEN}
    conditions = [(condition.column, condition.operator, condition.value) for condition in statement.conditions]
    assert conditions == [("holder", "in", ("FREE", None)), ("updated_time", "=", None)]


def test_unset_is_told_from_null(server: ScriptedServer, session: Session) -> None:
    session.execute(session.prepare(INSERT), (DOMAIN, "s", 2, 7, UNSET_VALUE, None))
    assert server.lwts[0].statement.values == (DOMAIN, "s", 2, 7, UNSET, None)
    assert server.lwts[0].statement.sets == {}


def test_a_conditional_statement_of_plain_text_is_an_lwt(server: ScriptedServer, session: Session) -> None:
    session.execute(
        f"DELETE FROM tokens WHERE domain_id = {DOMAIN} AND name = 's' AND kind = 1 AND token_id = 3 IF EXISTS"
    )
    (request,) = server.lwts
    assert (request.kind, request.statement.exists) == ("query", True)
    assert request.statement.key == {"domain_id": DOMAIN, "name": "s", "kind": 1, "token_id": 3}


def test_plain_writes_are_no_lwts(server: ScriptedServer, session: Session) -> None:
    session.execute("UPDATE tokens SET holder = 'x' WHERE name = 's'")
    server.on_write = lambda request: cqlserver.write_timeout("SIMPLE", "LOCAL_QUORUM")
    with pytest.raises(cassandra.WriteTimeout):
        session.execute("UPDATE tokens SET holder = 'x' WHERE name = 's'")
    assert (len(server.writes), server.lwts) == (2, [])


# --- outcomes ---------------------------------------------------------------------------------------------------------


def test_an_applied_lwt_has_one_column(session: Session) -> None:
    assert rows_of(session, grant(session, 1, 2)) == APPLIED
    assert rows_of(session, insert(session)) == APPLIED


def test_a_refused_batch_shows_the_existing_rows_in_clustering_order(server: ScriptedServer, session: Session) -> None:
    server.script(Refused([{"kind": 1, "token_id": 2, "holder": "b"}, {"kind": 1, "token_id": 1, "holder": "a"}]))
    result = rows_of(session, grant(session, 1, 2, 3))
    assert [list(row) for row in result] == [
        ["[applied]", "domain_id", "name", "kind", "token_id", "holder", "updated_time"]
    ] * 2
    assert [(row["token_id"], row["holder"], row["updated_time"]) for row in result] == [(1, "a", None), (2, "b", None)]
    assert {(row["[applied]"], row["domain_id"], row["name"]) for row in result} == {(False, DOMAIN, "s")}


def test_a_refused_batch_shows_all_columns_when_one_asks_for_existence(
    server: ScriptedServer, session: Session
) -> None:
    release = (
        "UPDATE tokens SET holder = ? WHERE domain_id = ? AND name = ? AND kind = ? AND token_id = ? IF holder = ?"
    )
    batch = BatchStatement()
    batch.add(session.prepare(release), ("FREE", DOMAIN, "s", 1, 1, "me"))
    server.script(Refused([{"kind": 1, "token_id": 1, "holder": "x"}]), Refused([{"kind": 1, "token_id": 1}]))
    assert "updated_time" not in rows_of(session, batch)[0]
    batch.add(session.prepare(INSERT), (DOMAIN, "s", 2, 7, "me", 60))
    assert "updated_time" in rows_of(session, batch)[0]


def test_a_refused_statement_shows_its_condition_columns(server: ScriptedServer, session: Session) -> None:
    server.script(Refused([{"holder": "x"}]), Refused([{"holder": "x"}]))
    single = session.prepare(GRANT).bind((30, "me", WHEN, DOMAIN, "s", 1, 3, "FREE", None))
    assert rows_of(session, single) == [{"[applied]": False, "holder": "x", "updated_time": None}]
    (row,) = rows_of(session, insert(session))
    assert row == {"[applied]": False, "updated_time": None} | server.lwts[1].statement.key | {"holder": "x"}


def test_a_refusal_for_a_missing_row_says_no_more(server: ScriptedServer, session: Session) -> None:
    server.script(Refused(), Refused())
    refused = [{"[applied]": False}]
    assert rows_of(session, grant(session, 1, 2)) == refused
    assert rows_of(session, insert(session)) == refused


def test_scylla_shows_one_row_a_statement_also_when_applied() -> None:
    with ScriptedServer([TOKENS], dialect="scylla") as server, connect(server) as session:
        server.script(Refused([{"kind": 1, "token_id": 2, "holder": "x"}]), Applied(), Applied())
        refused = rows_of(session, grant(session, 3, 2, 1))
        assert [(row["[applied]"], row["token_id"], row["holder"]) for row in refused] == [
            (False, None, None),
            (False, 2, "x"),
            (False, None, None),
        ]
        applied = rows_of(session, grant(session, 1, 2))
        assert [(row["[applied]"], row["name"], row["holder"]) for row in applied] == [(True, None, None)] * 2
        assert rows_of(session, insert(session))[0]["token_id"] is None


ERRORS = [
    (cqlserver.server_error(), protocol.ServerError),
    (cqlserver.unavailable("LOCAL_SERIAL"), cassandra.Unavailable),
    (cqlserver.overloaded(), protocol.OverloadedErrorMessage),
    (cqlserver.bootstrapping(), protocol.IsBootstrappingErrorMessage),
    (cqlserver.truncate_error(), protocol.TruncateError),
    (cqlserver.read_timeout(), cassandra.ReadTimeout),
    (cqlserver.read_failure(), cassandra.ReadFailure),
    (cqlserver.write_failure(), cassandra.WriteFailure),
    (cqlserver.cas_write_unknown(), protocol.ErrorMessage),
    (cqlserver.syntax_error(), protocol.SyntaxException),
    (cqlserver.unauthorized(), cassandra.Unauthorized),
    (cqlserver.invalid(), cassandra.InvalidRequest),
    (cqlserver.config_error(), protocol.ConfigurationException),
]


@pytest.mark.parametrize(("answer", "expected"), ERRORS, ids=lambda value: getattr(value, "__name__", None))
def test_errors_reach_the_caller(
    server: ScriptedServer, session: Session, answer: cqlserver.ErrorFrame, expected: type[Exception]
) -> None:
    server.script(answer)
    with pytest.raises(expected) as raised:
        session.execute(grant(session, 1))
    assert type(raised.value) is expected
    assert len(server.lwts) == 1


@pytest.mark.parametrize(
    "write_type", ["CAS", "SIMPLE", "BATCH", "UNLOGGED_BATCH", "BATCH_LOG", "COUNTER", "VIEW", "CDC"]
)
def test_a_write_timeout_carries_its_type(server: ScriptedServer, session: Session, write_type: Any) -> None:
    server.script(cqlserver.write_timeout(write_type, "QUORUM", received=1, required=3))
    with pytest.raises(cassandra.WriteTimeout) as raised:
        session.execute(grant(session, 1))
    assert cassandra.WriteType.value_to_name[raised.value.write_type] == write_type
    assert raised.value.consistency == ConsistencyLevel.QUORUM
    assert (raised.value.received_responses, raised.value.required_responses) == (1, 3)


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
