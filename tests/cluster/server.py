"""A server as tests see it: where it is, and the proof that it is ready."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from cassandra import DriverException, OperationTimedOut, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import DCAwareRoundRobinPolicy

DATACENTER = "datacenter1"
CQL_PORT = 9042

NOT_YET = (DriverException, RequestExecutionException, OperationTimedOut, NoHostAvailable, OSError)


class NotReady(Exception):
    """The server took no lightweight transaction in time. The cause and the server's log say why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A Cassandra that tests may use. `kind` says where it came from: given, container or local."""

    host: str
    port: int = CQL_PORT
    local_dc: str = DATACENTER
    kind: str = "given"

    @classmethod
    def parse(cls, url: str) -> Server:
        """Read `cassandra://host[:port]/[...][?local_dc=...]`; a keyspace in it is passed over: tests make their own."""
        parts = urlsplit(url)
        if parts.scheme != "cassandra" or not parts.hostname:
            raise ValueError(f"not a database URL like cassandra://host:9042/?local_dc={DATACENTER}: {url!r}")
        (local_dc, *_) = parse_qs(parts.query).get("local_dc", [DATACENTER])
        return cls(parts.hostname, parts.port or CQL_PORT, local_dc)

    def url(self, keyspace: str = "") -> str:
        """Give the URL that slotkeeper takes."""
        return f"cassandra://{self.host}:{self.port}/{keyspace}?local_dc={self.local_dc}"

    def __str__(self) -> str:
        return f"{self.kind} Cassandra at {self.url()}"

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Connect with the plain driver; slotkeeper's own client is what the tests test."""
        profile = ExecutionProfile(load_balancing_policy=DCAwareRoundRobinPolicy(self.local_dc), request_timeout=20)
        cluster = Cluster(
            [self.host],
            port=self.port,
            protocol_version=4,
            connect_timeout=10,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        )
        try:
            yield cluster.connect()
        finally:
            cluster.shutdown()

    def wait_for_lwt(self, *, timeout_s: float) -> None:
        """Return once a lightweight transaction has been applied: an open port promises less than that."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self._apply_lwt()
            except NOT_YET as error:
                if time.monotonic() > deadline:
                    raise NotReady(f"{self} took no lightweight transaction within {timeout_s:g} s") from error
                time.sleep(0.2)

    def _apply_lwt(self) -> None:
        with self.session() as session, fresh_keyspace(session, self.local_dc, "ready") as keyspace:
            session.execute(f"CREATE TABLE {keyspace}.ready (id int PRIMARY KEY)")
            answer = session.execute(f"INSERT INTO {keyspace}.ready (id) VALUES (1) IF NOT EXISTS")
            if not answer.was_applied:
                raise NotReady(f"{self} refused the first row of a new table")


@contextmanager
def fresh_keyspace(session: Session, local_dc: str, label: str) -> Iterator[str]:
    """Make a keyspace that nobody else has, with one replica; drop it at the end."""
    keyspace = f"{label}_{uuid.uuid4().hex[:12]}"
    replication = f"{{'class': 'NetworkTopologyStrategy', '{local_dc}': 1}}"
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
    try:
        yield keyspace
    finally:
        session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
