"""The scripted server is what the other tests of the driver stand on, so it is tested with the real driver first."""

from __future__ import annotations

import ssl
from typing import Any

import cassandra
import cqlserver
import pytest
import trustme
from cassandra import ConsistencyLevel, protocol
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable, Session
from cassandra.query import UNSET_VALUE, BatchStatement
from cqlserver import UNSET, Applied, Host, Refused, ScriptedServer
from scriptedtokens import APPLIED, DOMAIN, GRANT, INSERT, TOKENS, WHEN, connect, grant, insert, rows_of

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
