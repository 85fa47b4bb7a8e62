"""How the driver is set up, so that nothing is ever sent twice and no request waits for a delayed ACK."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import cassandra
from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    TokenAwarePolicy,
)
from cassandra.query import dict_factory

from ..errors import SettingsError, Unavailable
from ..settings import CassandraSettings
from .verdict import connect_failed, nothing_happened

WRITE, READ, SERIAL_READ = "write", "read", "serial read"
SHAPING_S = 60.0  # a statement that changes the schema waits for every node


def connect(settings: CassandraSettings, *, keyspace: bool = True) -> tuple[Cluster, Session]:
    """Connect to a cluster, and to its keyspace unless told otherwise.

    Raises SettingsError when several data centres answer and none is named, Unavailable, LoginRefused, KeyspaceMissing.
    """
    cluster = _cluster(settings)
    try:
        session = _session(cluster, settings)
        if keyspace:
            _use_keyspace(session, settings)
    except BaseException:
        cluster.shutdown()
        raise
    return cluster, session


def _session(cluster: Cluster, settings: CassandraSettings) -> Session:
    try:
        session = cluster.connect()
    except Exception as error:
        _check_data_centre(cluster, settings)
        raise connect_failed(error, settings.hosts) from error
    _check_data_centre(cluster, settings)
    session._default_timeout = settings.request_timeout_s  # for preparing; beside profiles its setter is barred
    return session


def _use_keyspace(session: Session, settings: CassandraSettings) -> None:
    if not settings.keyspace:
        raise SettingsError("The database URL names no keyspace: cassandra://HOST[:PORT]/KEYSPACE.")
    try:
        session.set_keyspace(settings.keyspace)
    except Exception as error:
        raise nothing_happened(error) from error


def _check_data_centre(cluster: Cluster, settings: CassandraSettings) -> None:
    """Raise SettingsError where LOCAL_SERIAL would leave open which nodes decide: one is never guessed."""
    known = sorted({host.datacenter for host in cluster.metadata.all_hosts() if host.datacenter})
    names = ", ".join(known)
    if settings.local_dc is None and len(known) > 1:
        raise SettingsError(
            f"Several data centres answer: {names}. Name yours: local_dc=... in the URL, or --local-dc."
        )
    if settings.local_dc is not None and known and settings.local_dc not in known:
        raise SettingsError(f"There is no data centre {settings.local_dc!r} (local_dc). The cluster has: {names}.")


def _cluster(settings: CassandraSettings) -> Cluster:
    options = _options(settings)
    try:
        return Cluster(**options)
    except (cassandra.UnresolvableContactPoints, UnicodeError) as error:  # the latter for what no name can be
        names = ", ".join(settings.hosts)
        raise Unavailable(f"No address is known for {names}. Is the name right, does the resolver answer?") from error


def _options(settings: CassandraSettings) -> dict[str, Any]:
    return {
        "contact_points": settings.contact_points(),
        "port": settings.port,
        "protocol_version": 4,  # on v5 an unknown outcome comes as error 0x1700, which the driver does not know
        "execution_profiles": _profiles(settings),
        "auth_provider": PlainTextAuthProvider(settings.user, settings.secret()) if settings.user else None,
        "ssl_context": tls_context(settings) if settings.tls else None,
        "ssl_options": _server_name(settings),
        # Without it every request over 4 KiB waits 40 ms for a delayed ACK.
        "sockopts": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        "reconnection_policy": ExponentialReconnectionPolicy(1, 60, max_attempts=None),  # the default gives up for ever
        "connect_timeout": settings.connect_timeout_s,
        "control_connection_timeout": settings.connect_timeout_s,
        "max_schema_agreement_wait": SHAPING_S,
        "monitor_reporting_enabled": False,
    }


def _profiles(settings: CassandraSettings) -> dict[str, ExecutionProfile]:
    commit = ConsistencyLevel.name_to_value[settings.consistency.value]
    serial = ConsistencyLevel.name_to_value[settings.consistency.serial]
    # Unshuffled: all clients then send the transactions of a partition to the same replica, which queues them.
    routing = TokenAwarePolicy(DCAwareRoundRobinPolicy(settings.local_dc or ""), shuffle_replicas=False)

    def profile(level: int) -> ExecutionProfile:
        return ExecutionProfile(
            load_balancing_policy=routing,
            retry_policy=FallthroughRetryPolicy(),  # the default sends a transaction again, to another node
            consistency_level=level,
            serial_consistency_level=serial,
            request_timeout=settings.request_timeout_s,
            row_factory=dict_factory,
        )

    # The driver's own default would guess a data centre, and send again.
    levels = {EXEC_PROFILE_DEFAULT: commit, WRITE: commit, READ: commit, SERIAL_READ: serial}
    return {name: profile(level) for name, level in levels.items()}


def tls_context(settings: CassandraSettings) -> ssl.SSLContext:
    """Return the context for TLS: both the certificate and the host's name are checked unless the settings say otherwise.

    Raises SettingsError for a certificate or key that cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file)
        if settings.tls_cert_file is not None:
            # A key under a pass phrase is refused. Without a password here, OpenSSL would ask the terminal for one.
            context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file, password="")
    except (OSError, ssl.SSLError) as error:
        files = [settings.tls_ca_file, settings.tls_cert_file, settings.tls_key_file]
        named = ", ".join(file for file in files if file)
        raise SettingsError(f"The TLS files cannot be used ({named}): {error}.") from error
    context.check_hostname = settings.tls_verify and settings.tls_verify_host
    if not settings.tls_verify:
        context.verify_mode = ssl.CERT_NONE
    return context


def _server_name(settings: CassandraSettings) -> Mapping[str, Any] | None:
    """Return the name that every certificate must have. Left alone, the driver checks each node for its own address."""
    name = settings.tls_server_name
    if name is None and len(settings.hosts) == 1:
        host = settings.contact_points()[0][0]
        name = None if _is_address(host) else host
    return {"server_hostname": name} if settings.tls and name else None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
