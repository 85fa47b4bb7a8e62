"""Which lock service a command asks and what it is known by there, or else which database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .options import Choices

if TYPE_CHECKING:
    from ..locktable import Locker
    from ..locktable.remote import LockClient

F = TypeVar("F", bound=Callable[..., Any])
URL, TOKEN, TOKEN_FILE, CA_FILE = (
    "SLOTKEEPER_LOCK_URL",
    "SLOTKEEPER_LOCK_TOKEN",
    "SLOTKEEPER_LOCK_TOKEN_FILE",
    "SLOTKEEPER_LOCK_CA_FILE",
)
DEFAULT_URL = "http://127.0.0.1:8049"


@dataclass(frozen=True, slots=True)
class Service:
    """Nodes of a lock cluster, any of which may answer; `direct`: no service, but the database itself."""

    urls: tuple[str, ...]
    token_file: str | None = None
    ca_file: str | None = None
    direct: bool = False

    @property
    def all_urls(self) -> list[str]:
        """The nodes' URLs."""
        named = [url.strip() for given in self.urls for url in given.split(",")]
        return named or [DEFAULT_URL]

    @property
    def told(self) -> dict[str, str]:
        """What tells a command below us whom to ask."""
        return {} if self.direct else {URL: ",".join(self.all_urls)}


class Seconds(click.ParamType[float]):
    """A duration: a number of seconds, or one with units, as Go spells it."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        from ..locktable import BadLockRequest
        from ..locktable.durations import parse_duration

        if isinstance(value, int | float):
            return float(value)
        try:
            seconds = parse_duration(f"{value}s" if value[-1:].isdigit() else value)
        except BadLockRequest as error:
            self.fail(str(error), param, ctx)
        if seconds < 0:
            self.fail(f"{value} is less than nothing", param, ctx)
        return seconds


SECONDS = Seconds()
OPTIONS = (
    click.option(
        "--url",
        "urls",
        multiple=True,
        envvar=URL,
        show_envvar=True,
        metavar="URL,...",
        help=f"Nodes of the cluster: another one is asked where one is silent. Without it: {DEFAULT_URL}.",
    ),
    click.option(
        "--token-file",
        envvar=TOKEN_FILE,
        show_envvar=True,
        metavar="PATH",
        help=f"File with the token to show, which {TOKEN} may hold too.",
    ),
    click.option(
        "--ca-file", envvar=CA_FILE, show_envvar=True, metavar="PATH", help="Certificates to trust, of https URLs."
    ),
    click.option(
        "--direct", is_flag=True, help="Ask no service, but --database: locks of one kind know nothing of the other."
    ),
)


def asks_service(command: F) -> F:
    """Give a command the options that say which service it asks; it gets them as one `service`."""

    @wraps(command)
    def run(
        *args: Any, urls: tuple[str, ...], token_file: str | None, ca_file: str | None, direct: bool, **given: Any
    ) -> Any:
        return command(*args, service=Service(urls, token_file, ca_file, direct), **given)

    decorated: Any = run
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


@contextmanager
def opened_locks(choices: Choices, service: Service) -> Iterator[Locker]:
    """Open what grants locks: a client of the chosen nodes, or of the database."""
    if not service.direct:
        with opened_client(choices, service) as client:
            yield client
        return
    from ..locktable.direct import DirectLocks
    from .opening import domain, opened_store

    with (
        opened_store(choices) as store,
        DirectLocks(store, cluster=domain(choices), timeout_s=choices.timeout_s) as locks,
    ):
        yield locks


@contextmanager
def opened_client(choices: Choices, service: Service) -> Iterator[LockClient]:
    """Open a client of the chosen nodes."""
    from ..locktable.remote import LockClient
    from .opening import set_up_logging

    if service.direct:
        raise click.UsageError("Without a service there is no node to ask: leave out --direct.")
    set_up_logging(choices)
    token, urls = token_of(service.token_file), service.all_urls
    with LockClient(urls, token=token, tls_ca_file=service.ca_file, timeout_s=choices.timeout_s) as client:
        yield client


def token_of(path: str | None) -> str | None:
    """Return the token to show: a file's, else the environment's. Raises BadTokenFile."""
    from ..web.tokens import checked_token, read_token

    if path is not None:
        return read_token(path)
    given = os.environ.get(TOKEN, "")
    return checked_token(given, TOKEN) if given else None
