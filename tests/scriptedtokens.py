"""The real driver before a scripted server that has one table, of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, RetryPolicy, RoundRobinPolicy
from cassandra.query import BatchStatement, dict_factory
from cqlserver import ScriptedServer, Table

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
    """Return how statements are executed."""
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
    """Connect the real driver to a scripted server."""
    options = {"protocol_version": 4, "reconnection_policy": ConstantReconnectionPolicy(0.05, None)} | options
    options = {name: value for name, value in options.items() if value is not None}
    profiles = {EXEC_PROFILE_DEFAULT: profile(retry or FallthroughRetryPolicy())}
    cluster = Cluster([server.host], port=server.port, execution_profiles=profiles, **options)
    try:
        yield cluster.connect(keyspace, wait_for_all_pools=True)
    finally:
        cluster.shutdown()


def grant(session: Session, *token_ids: int) -> BatchStatement:
    """Make a batch that gives each token to `me`."""
    update, batch = session.prepare(GRANT), BatchStatement()
    for token_id in token_ids:
        batch.add(update, (30, "me", WHEN, DOMAIN, "s", 1, token_id, "FREE", None))
    return batch


def insert(session: Session, token_id: int = 7) -> Any:
    """Make a statement that adds a waiter."""
    return session.prepare(INSERT).bind((DOMAIN, "s", 2, token_id, "me", 60))


def rows_of(session: Session, statement: Any) -> list[dict[str, Any]]:
    """Execute a statement, and return its rows."""
    return list(session.execute(statement))
