"""`slotkeeper tasks serve`: a task store over HTTP, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .commands import Command, example
from .opening import set_up_logging
from .options import OUTPUT, SECONDS, Choices, shared
from .output import emit, tell

if TYPE_CHECKING:
    from ..database import SqliteSettings
    from ..taskstore import AsyncTaskStore, Journal
    from ..taskstore.service import Limits
    from ..web.serving import Certificate

JOURNAL, TOKEN, TOKEN_FILE = "SLOTKEEPER_TASKS_JOURNAL", "SLOTKEEPER_TASKS_TOKEN", "SLOTKEEPER_TASKS_TOKEN_FILE"
LOG = "%(asctime)s %(levelname)s %(name)s: %(message)s"
PORT = 8048


@dataclass(frozen=True, slots=True)
class Serving:
    """What is served, where and for whom."""

    journal: str
    host: str
    port: int
    token: str | None
    certificate: Certificate | None
    limits: Limits
    grace_s: int


@click.command(
    cls=Command,
    epilog=example(
        "slotkeeper tasks serve --journal disk:/var/lib/tasks",
        "slotkeeper tasks serve --journal cassandra://localhost/slots?local_dc=dc1#mail --host 0.0.0.0 --token-file token",
    ),
)
@click.option(
    "--journal",
    required=True,
    envvar=JOURNAL,
    show_envvar=True,
    metavar="NAME",
    help="disk:DIR, cassandra://HOST/KEYSPACE#STORE, sqlite:///FILE, or memory, which keeps nothing.",
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="NAME", help="Where to listen.")
@click.option(
    "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), metavar="NUMBER", help="0: a free one."
)
@click.option(
    "--token-file",
    envvar=TOKEN_FILE,
    show_envvar=True,
    metavar="PATH",
    help=f"File with the token that callers must know, which {TOKEN} may hold too. Needed unless it listens on loopback.",
)
@click.option("--opportunistic", is_flag=True, help="Answer before the journal has it: a crash loses the last moments.")
@click.option(
    "--lag", "lag_s", type=SECONDS, metavar="SECONDS", help="How much a crash may lose then. Without it: 0.1."
)
@click.option(
    "--most-attempts",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="A task that failed so often goes to quarantine.",
)
@click.option("--tls-cert", metavar="PATH", help="Certificate to show, with those of its issuers: PEM.")
@click.option("--tls-key", metavar="PATH", help="Its key: PEM.")
@click.option(
    "--most-bytes", type=click.IntRange(min=1024), metavar="NUMBER", help="Of one request. Without it: 8 MiB."
)
@click.option(
    "--most-named", type=click.IntRange(min=1), metavar="NUMBER", help="Tasks in one request. Without it: 10000."
)
@click.option(
    "--most-wait", "most_wait_s", type=SECONDS, metavar="SECONDS", help="In line for a claim. Without it: 300."
)
@click.option(
    "--grace",
    "grace_s",
    default=30,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="How long requests under way have when it is stopped.",
)
@shared(OUTPUT)
@click.pass_obj
def serve(
    choices: Choices,
    journal: str,
    host: str,
    port: int,
    token_file: str | None,
    opportunistic: bool,
    lag_s: float | None,
    most_attempts: int | None,
    tls_cert: str | None,
    tls_key: str | None,
    most_bytes: int | None,
    most_named: int | None,
    most_wait_s: float | None,
    grace_s: int,
) -> None:
    """Serve a task store over HTTP until it is stopped: by Ctrl-C or SIGTERM, after requests under way are answered.

    Prints the address when it listens. One process at a time has a journal open: who opens one in a database takes it over.
    """
    from ..taskstore import AsyncTaskStore
    from ..taskstore.service import Limits
    from ..taskstore.store import LAG_S

    choices.given["journal"] = journal  # its password is kept out of what is printed
    if lag_s is not None and not opportunistic:
        raise click.UsageError("--lag says how much may be lost, and nothing may unless it is --opportunistic.")
    _set_up_logging(choices)
    given: dict[str, Any] = {"most_bytes": most_bytes, "most_named": most_named, "most_wait_s": most_wait_s}
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    serving = Serving(journal, host, port, _token(token_file), _certificate(tls_cert, tls_key), limits, grace_s)
    store = AsyncTaskStore(
        _journal(choices, journal), strict=not opportunistic, lag_s=lag_s or LAG_S, most_attempts=most_attempts
    )
    asyncio.run(_serve(choices, serving, store))
    tell(choices, "stopped; all that was answered is in the journal")


async def _serve(choices: Choices, serving: Serving, store: AsyncTaskStore) -> None:
    from ..taskstore.service import application
    from ..web.serving import Server, address_of, bound
    from ..web.stopping import Stopping
    from ..web.tokens import check_reach

    tokens, stopping = {serving.token: None} if serving.token is not None else {}, Stopping()
    with closing(bound(serving.host, serving.port)) as sock:  # first: nobody is fenced by who cannot listen
        check_reach(sock.getsockname()[0], tokens)
        async with store:
            app = application(store, stopping=stopping, limits=serving.limits, tokens=tokens)
            server = Server(app, stopping, certificate=serving.certificate, grace_s=serving.grace_s)
            url = address_of(sock, tls=serving.certificate is not None)
            await server.run_on(sock, lambda: _announce(choices, url, store))


def _announce(choices: Choices, url: str, store: AsyncTaskStore) -> None:
    for line in store.told:
        tell(choices, line)
    document = {"url": url, "strict": store.is_strict, "told": list(store.told), "pid": os.getpid()}
    emit(choices, document, lambda: click.echo(url))
    sys.stdout.flush()


def _token(path: str | None) -> str | None:
    from ..web.tokens import checked_token, read_token

    if path is not None:
        return read_token(path)
    given = os.environ.get(TOKEN, "")
    return checked_token(given, TOKEN) if given else None


def _certificate(cert: str | None, key: str | None) -> Certificate | None:
    from ..web.serving import Certificate

    if (cert is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    return Certificate(cert, key) if cert is not None and key is not None else None


def _journal(choices: Choices, name: str) -> Journal:
    """Return the journal. A password may come from the environment; an embedded file that is new gets its tables."""
    from ..database import SqliteSettings, load
    from ..taskstore.opening import journal_of
    from ..taskstore.rows import DatabaseJournal

    url, _, store = name.partition("#")
    if name.partition(":")[0] not in ("cassandra", "sqlite"):
        return journal_of(name)
    found = load(url, {}, os.environ)
    assert found is not None  # a URL names one
    if isinstance(found, SqliteSettings):
        _prepare(choices, found)
    return DatabaseJournal(found, store or "tasks")


def _prepare(choices: Choices, found: SqliteSettings) -> None:
    from .. import schema
    from ..database import open_store

    with closing(open_store(found)) as store:
        if schema.status(store).installed is None:
            schema.setup(store)
            tell(choices, f"made the embedded store {found.path}")


def _set_up_logging(choices: Choices) -> None:
    """Log to stderr, with the time: what a service has to say comes between its start and its end, in any format."""
    level = logging.INFO if choices.verbose else logging.ERROR if choices.quiet else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format=LOG)
    set_up_logging(choices)
