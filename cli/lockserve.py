"""`slotkeeper lock serve`: a node of a lock cluster, until it is stopped."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from .commands import Command, example
from .opening import opened_store, set_up_logging
from .options import DATABASE, OUTPUT, Choices, shared
from .output import emit, tell

if TYPE_CHECKING:
    from ..database import Store
    from ..locktable.node.terms import Terms
    from ..locktable.service.grants import Permit
    from ..locktable.service.running import LockServer, NodeSettings
    from ..web.serving import Certificate

TOKEN_FILE, PEER_TOKEN_FILE = "SLOTKEEPER_LOCK_TOKENS_FILE", "SLOTKEEPER_LOCK_PEER_TOKEN_FILE"
LISTEN = "127.0.0.1:8049"


@click.command(
    cls=Command,
    epilog=example(
        "slotkeeper lock serve --node n1 --cluster home",
        "slotkeeper lock serve --node n1 --cluster prod --listen 0.0.0.0:8049 --advertise http://n1:8049 "
        "--token-file tokens.json --peer-token-file peer.token --database cassandra://c1/slots?local_dc=dc1",
    ),
)
@click.option("--node", required=True, metavar="NAME", help="This node's name: no two nodes of a cluster share one.")
@click.option(
    "--cluster", required=True, metavar="NAME", help="The cluster: nodes that name the same one are together."
)
@click.option(
    "--listen", default=LISTEN, show_default=True, metavar="HOST:PORT", help="Where to listen. Port 0: a free one."
)
@click.option("--advertise", metavar="URL", help="Where the other nodes reach this one. Without it: where it listens.")
@click.option(
    "--election-lease",
    "election_lease_s",
    type=click.IntRange(min=3, max=600),
    metavar="SECONDS",
    help="How long the others wait for a speaker that has vanished. The same for all nodes. Without it: 6.",
)
@click.option(
    "--token-file",
    envvar=TOKEN_FILE,
    show_envvar=True,
    metavar="PATH",
    help="JSON file of tokens and the locks that each may ask for. Needed unless it listens on loopback.",
)
@click.option(
    "--peer-token-file",
    envvar=PEER_TOKEN_FILE,
    show_envvar=True,
    metavar="PATH",
    help="File with the token that the nodes of the cluster share.",
)
@click.option("--tls-cert", metavar="PATH", help="Certificate to show, with those of its issuers: PEM.")
@click.option("--tls-key", metavar="PATH", help="Its key: PEM.")
@click.option(
    "--peer-ca-file", metavar="PATH", help="Certificates to trust of the other nodes, where theirs are https."
)
@click.option(
    "--grace",
    "grace_s",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="How long requests under way have when it is stopped.",
)
@shared(OUTPUT, DATABASE)
@click.pass_obj
def serve(
    choices: Choices,
    node: str,
    cluster: str,
    listen: str,
    advertise: str | None,
    election_lease_s: int | None,
    token_file: str | None,
    peer_token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    peer_ca_file: str | None,
    grace_s: int,
) -> None:
    """Run a node of a lock cluster until it is stopped: by Ctrl-C or SIGTERM, after it has handed over.

    Prints the address when it listens. The nodes of a cluster share a database, which says who speaks for it: that node grants
    the locks, and every other one asks it. Which locks are held is in the nodes' memory, not in the database.
    """
    import asyncio

    from ..locktable.service.running import NodeSettings
    from ..web.address import Address

    _set_up_logging(choices)
    for what, name in (("--node", node), ("--cluster", cluster)):
        if not name.isprintable() or not 1 <= len(name) <= 256 or "/" in name:
            raise click.UsageError(f"{what} is 1 to 256 printable characters without a slash.")
    settings = NodeSettings(
        node,
        cluster,
        advertise=str(Address.parse(advertise)) if advertise else None,
        terms=_terms(election_lease_s),
        tokens=_permits(token_file, peer_token_file),
        peer_token=_peer_token(peer_token_file),
        peer_ca_file=_readable(peer_ca_file),
        certificate=_certificate(tls_cert, tls_key),
        grace_s=grace_s,
    )
    host, port = _host_and_port(listen)
    with opened_store(choices) as store:
        asyncio.run(_serve(choices, store, host, port, settings))
    tell(choices, "stopped")


async def _serve(choices: Choices, store: Store, host: str, port: int, settings: NodeSettings) -> None:
    from ..locktable.service.running import serve as served
    from ..web.serving import bound
    from ..web.tokens import check_reach

    with closing(bound(host, port)) as sock:
        check_reach(sock.getsockname()[0], settings.tokens)
        await served(store, sock, settings, lambda server, url: _announce(choices, settings, server, url))


def _announce(choices: Choices, settings: NodeSettings, server: LockServer, url: str) -> None:
    document = {"url": url, "node": settings.node, "cluster": settings.cluster, "pid": os.getpid()}
    emit(choices, document, lambda: click.echo(url))
    sys.stdout.flush()


def _terms(election_lease_s: int | None) -> Terms:
    from ..locktable.node.terms import Terms

    if election_lease_s is None:
        return Terms()
    return Terms(speaker_lease_s=election_lease_s, margin_s=min(0.5, election_lease_s / 3 - 0.5))


def _permits(token_file: str | None, peer_token_file: str | None) -> dict[str, Permit]:
    from ..locktable.service.grants import read_permits, with_peers

    return with_peers(read_permits(token_file) if token_file else {}, _peer_token(peer_token_file))


def _peer_token(path: str | None) -> str | None:
    from ..web.tokens import read_token

    return read_token(path) if path else None


def _readable(ca_file: str | None) -> str | None:
    """Return the file if it holds certificates: a node that cannot trust the others is to say so at its start."""
    import ssl

    from ..web.failures import BadTrust

    try:
        ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # also what ssl raises
        raise BadTrust(f"{ca_file} cannot be read ({error.strerror or error}). {BadTrust.__doc__}") from error
    return ca_file


def _certificate(cert: str | None, key: str | None) -> Certificate | None:
    from ..web.serving import Certificate

    if (cert is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    return Certificate(cert, key) if cert is not None and key is not None else None


def _host_and_port(listen: str) -> tuple[str, int]:
    host, separator, port = listen.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise click.UsageError("--listen is HOST:PORT, as in 127.0.0.1:8049.")
    return host.strip("[]") or "0.0.0.0", int(port)


def _set_up_logging(choices: Choices) -> None:
    set_up_logging(choices)
    if not choices.verbose:
        logging.basicConfig(stream=sys.stderr, level=logging.ERROR if choices.quiet else logging.WARNING)
