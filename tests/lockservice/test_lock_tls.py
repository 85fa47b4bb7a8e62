"""Nodes that speak TLS, to clients and among themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from locknodes import client_of, new_database, running_nodes

from slotkeeper.locktable.remote import ServiceUnreachable
from slotkeeper.web.serving import Certificate


def test_nodes_trust_one_another_by_a_file_of_certificates(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    cert, key, ca, stranger = (tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem", "stranger.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(ca)
    other.cert_pem.write_to_path(stranger)

    tls = {"certificate": Certificate(str(cert), str(key)), "peer_ca_file": str(ca)}
    with running_nodes(new_database(tmp_path), 2, **tls) as nodes:
        assert nodes[1].url.startswith("https://")
        with client_of(nodes[1], tls_ca_file=str(ca)) as client, client.hold("a", lease_s=1) as hold:
            assert client.renew(hold.lock).until > hold.trusted_until
        trusts_another = client_of(nodes[1], tls_ca_file=str(stranger), timeout_s=1)
        with trusts_another as client, pytest.raises(ServiceUnreachable, match=r"(?i)certificate"):
            client.acquire("a")
