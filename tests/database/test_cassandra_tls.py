"""TLS: who is trusted by default, what each setting gives up, and failures that come soon and say why."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from cqlserver import ScriptedServer
from cryptography.hazmat.primitives import serialization
from scriptedstore import HOSTS, SERVED, grant, opened, settings

from slotkeeper.database import Applied, CassandraSettings, SettingsError, Unavailable, parse
from slotkeeper.database.cassandra import CassandraStore

HOST, NAME = "127.0.0.1", "cassandra.example"


@dataclass(frozen=True)
class Authority:
    """A certificate authority and the file that names it."""

    ca: trustme.CA
    file: str

    def server_context(self, name: str, *, demands: bool = False) -> ssl.SSLContext:
        """Return the context of a node with a certificate for a name; it may demand one of its clients."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(name).configure_cert(context)
        if demands:
            context.verify_mode = ssl.CERT_REQUIRED
            self.ca.configure_trust(context)
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return made(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return made(tmp_path_factory.mktemp("theirs"))


def made(folder: Path) -> Authority:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    return Authority(ca, str(folder / "ca.pem"))


@contextmanager
def server_with(context: ssl.SSLContext | None) -> Iterator[ScriptedServer]:
    with ScriptedServer([SERVED], tls=context) as server:
        yield server


@pytest.fixture(scope="module")
def by_address(authority: Authority) -> Iterator[ScriptedServer]:
    """A node whose certificate names its address."""
    with server_with(authority.server_context(HOST)) as server:
        yield server


@pytest.fixture(scope="module")
def by_name(authority: Authority) -> Iterator[ScriptedServer]:
    """A node whose certificate has a name that does not lead to it."""
    with server_with(authority.server_context(NAME)) as server:
        yield server


@pytest.fixture(scope="module")
def demanding(authority: Authority) -> Iterator[ScriptedServer]:
    """A node that demands a certificate of its clients."""
    with server_with(authority.server_context(HOST, demands=True)) as server:
        yield server


@pytest.fixture(scope="module")
def client_files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return written(authority, tmp_path_factory.mktemp("client"))


def written(authority: Authority, folder: Path) -> dict[str, str]:
    issued, certificate, key = authority.ca.issue_cert("client.example"), folder / "client.pem", folder / "client.key"
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    return {"tls_cert_file": str(certificate), "tls_key_file": str(key)}


def works(server: ScriptedServer, **changes: Any) -> bool:
    with opened(server, tls=True, **changes) as store:
        return store.commit(grant()) == Applied()


# Whom the client trusts


def test_right_authority_and_address_work(by_address: ScriptedServer, authority: Authority) -> None:
    assert works(by_address, tls_ca_file=authority.file)


def test_name_that_the_url_has_is_the_one_that_is_checked(authority: Authority) -> None:
    with server_with(authority.server_context("localhost")) as server:
        assert works(server, hosts=("localhost",), tls_ca_file=authority.file)


@pytest.mark.parametrize("trusted", [False, True], ids=["system's authorities", "stranger's authority"])
def test_server_of_another_authority_is_refused(by_address: ScriptedServer, stranger: Authority, trusted: bool) -> None:
    with pytest.raises(Unavailable, match="certificate verify failed"):
        works(by_address, tls_ca_file=stranger.file if trusted else None)


def test_certificate_of_another_name_is_refused(by_name: ScriptedServer, authority: Authority) -> None:
    with pytest.raises(Unavailable, match="certificate verify failed"):
        works(by_name, tls_ca_file=authority.file)


def test_certificate_of_another_name_is_taken_where_names_are_not_checked(
    by_name: ScriptedServer, authority: Authority
) -> None:
    assert works(by_name, tls_ca_file=authority.file, tls_verify_host=False)


def test_certificate_is_checked_for_the_given_server_name(by_name: ScriptedServer, authority: Authority) -> None:
    assert works(by_name, tls_ca_file=authority.file, tls_server_name=NAME)
    with pytest.raises(Unavailable, match="certificate verify failed"):
        works(by_name, tls_ca_file=authority.file, tls_server_name="other.example")


def test_authority_is_checked_where_names_are_not(by_name: ScriptedServer, stranger: Authority) -> None:
    with pytest.raises(Unavailable, match="certificate verify failed"):
        works(by_name, tls_ca_file=stranger.file, tls_verify_host=False)


def test_each_node_is_checked_for_its_own_address(authority: Authority) -> None:
    contexts = {host: authority.server_context(host) for host in HOSTS}
    with ScriptedServer([SERVED], hosts=HOSTS, tls=contexts) as server:
        with opened(server, tls=True, tls_ca_file=authority.file) as store:
            assert [store.commit(grant()) for _ in range(8)] == [Applied()] * 8
        assert {request.host for request in server.lwts} == set(HOSTS)


def test_node_with_the_certificate_of_another_is_not_used(authority: Authority) -> None:
    with ScriptedServer([SERVED], hosts=HOSTS, tls=authority.server_context(HOST)) as server:
        with opened(server, tls=True, tls_ca_file=authority.file) as store:
            assert [store.commit(grant()) for _ in range(8)] == [Applied()] * 8
        assert {request.host for request in server.lwts} == {HOST}


def url(server: ScriptedServer, options: str) -> CassandraSettings:
    named = parse(f"cassandra://{server.host}:{server.port}/slots?{options}")
    assert isinstance(named, CassandraSettings)
    return named


def test_sslmode_require_takes_any_certificate(by_name: ScriptedServer) -> None:
    store = CassandraStore(url(by_name, "sslmode=require"))
    assert store.commit(grant()) == Applied()
    store.close()


def test_sslmode_verify_ca_takes_any_name_of_the_authority(by_name: ScriptedServer, authority: Authority) -> None:
    store = CassandraStore(url(by_name, f"sslmode=verify-ca&sslrootcert={authority.file}"))
    assert store.commit(grant()) == Applied()
    store.close()


def test_sslmode_verify_full_checks_the_name(by_name: ScriptedServer, authority: Authority) -> None:
    with pytest.raises(Unavailable, match="certificate verify failed"):
        CassandraStore(url(by_name, f"sslmode=verify-full&sslrootcert={authority.file}"))


# Whom the server trusts


def test_client_shows_its_certificate_to_a_server_that_demands_one(
    demanding: ScriptedServer, authority: Authority, client_files: dict[str, str]
) -> None:
    assert works(demanding, tls_ca_file=authority.file, **client_files)


def test_server_that_demands_a_certificate_refuses_a_client_without(
    demanding: ScriptedServer, authority: Authority
) -> None:
    with pytest.raises(Unavailable):
        works(demanding, tls_ca_file=authority.file, connect_timeout_s=1.0)


def test_server_refuses_a_client_of_another_authority(
    demanding: ScriptedServer, authority: Authority, stranger: Authority, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable):
        works(demanding, tls_ca_file=authority.file, connect_timeout_s=1.0, **written(stranger, tmp_path))


# One side without TLS


def test_plain_client_of_a_tls_server_is_unavailable_soon(by_address: ScriptedServer) -> None:
    started = time.monotonic()
    with pytest.raises(Unavailable):
        CassandraStore(settings(by_address, connect_timeout_s=0.5))
    assert time.monotonic() - started < 5


def test_tls_client_of_a_plain_server_is_unavailable_soon(authority: Authority) -> None:
    started = time.monotonic()
    with server_with(None) as server, pytest.raises(Unavailable):
        works(server, tls_ca_file=authority.file, connect_timeout_s=0.5)
    assert time.monotonic() - started < 5


# Files


def refusal(**changes: Any) -> str:
    plain = CassandraSettings(hosts=(HOST,), port=1, keyspace="slots", tls=True, **changes)
    with pytest.raises(SettingsError, match="The TLS files cannot be used") as raised:
        CassandraStore(plain)
    return str(raised.value)


@pytest.mark.parametrize("content", [None, "", "no certificate"], ids=["absent", "empty", "garbage"])
def test_authority_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    assert str(file) in refusal(tls_ca_file=str(file))


def test_key_of_another_certificate_is_an_error_of_the_settings(
    authority: Authority, client_files: dict[str, str], tmp_path: Path
) -> None:
    files = client_files | {"tls_key_file": written(authority, tmp_path)["tls_key_file"]}
    assert files["tls_key_file"] in refusal(**files)


def test_key_under_a_pass_phrase_is_an_error_and_nobody_is_asked(client_files: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "locked.key"
    file.write_bytes(locked(Path(client_files["tls_key_file"]).read_bytes()))
    assert str(file) in refusal(**client_files | {"tls_key_file": str(file)})


def locked(key: bytes) -> bytes:
    """Put a pass phrase on a key."""
    loaded = serialization.load_pem_private_key(key, None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"open sesame"),
    )
