"""What the commands have in common that ask a task service: where it is, who asks, and how tasks are shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .options import OUTPUT, SECONDS, TIMEOUT_S, shared
from .output import local_time, print_table

if TYPE_CHECKING:
    from ..taskstore import Task
    from ..taskstore.remote import TaskClient

F = TypeVar("F", bound=Callable[..., Any])
URL = "http://127.0.0.1:8048"
TOKEN, OWNER = "SLOTKEEPER_TASKS_TOKEN", "SLOTKEEPER_TASKS_OWNER"
SHOWN_DATA = 60  # characters of it, in a table
SERVICE_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--url",),
        {
            "default": URL,
            "envvar": "SLOTKEEPER_TASKS_URL",
            "metavar": "URL",
            "help": f"The service. Without it: {URL}.",
        },
    ),
    (
        ("--token-file",),
        {
            "envvar": f"{TOKEN}_FILE",
            "metavar": "PATH",
            "help": f"File with the token that the service wants, which {TOKEN} may hold too.",
        },
    ),
    (
        ("--tls-ca-file",),
        {
            "envvar": "SLOTKEEPER_TASKS_TLS_CA_FILE",
            "metavar": "PATH",
            "help": "Certificates to trust, for an https:// URL.",
        },
    ),
    (
        ("--timeout", "timeout_s"),
        {
            "type": SECONDS,
            "default": TIMEOUT_S,
            "metavar": "SECONDS",
            "help": f"How long to go on when the service is slow or silent. Without it: {TIMEOUT_S:g}.",
        },
    ),
)


class _ServiceOption(click.Option):
    section = "Service"


def at_service(command: F) -> F:
    """Give a command the options that name a service; it gets `service`, which opens a client of it."""

    @wraps(command)
    def with_service(
        *args: Any, url: str, token_file: str | None, tls_ca_file: str | None, timeout_s: float, **others: Any
    ) -> Any:
        service = Service(url, token_file, tls_ca_file, timeout_s)
        return command(*args, service=service, **others)

    found: Any = shared(OUTPUT)(with_service)
    for names, attributes in reversed(SERVICE_OPTIONS):
        shown = {"show_envvar": True} if "envvar" in attributes else {}
        found = click.option(*names, cls=_ServiceOption, **shown, **attributes)(found)
    return found  # type: ignore[no-any-return]


def owner_option(*, required: bool) -> Callable[[F], F]:
    """Give a command the option that says who asks. Without one, and not `required`, a random one is drawn."""
    if required:
        text = "Who claimed it: the owner that `claim` was given, or has printed. Nobody else may, before its time is over."
    else:
        text = (
            "Who you are: any text. Without it a random one is drawn and printed; renew and done want the same again."
        )
    return click.option("--owner", envvar=OWNER, show_envvar=True, required=required, metavar="TEXT", help=text)


class Service:
    """A service, as options name it."""

    def __init__(self, url: str, token_file: str | None, tls_ca_file: str | None, timeout_s: float) -> None:
        self.url, self._token_file, self._tls_ca_file, self._timeout_s = url, token_file, tls_ca_file, timeout_s

    @contextmanager
    def opened(self) -> Iterator[TaskClient]:
        """Open a client. A request that can never be carried out is a matter of usage."""
        from ..taskstore import UpdateError
        from ..taskstore.remote import TaskClient

        token, trust = self._token(), self._tls_ca_file
        with TaskClient(self.url, token=token, tls_ca_file=trust, timeout_s=self._timeout_s) as client:
            try:
                yield client
            except UpdateError as error:
                if error.has_bugs:
                    raise click.UsageError(str(error)) from error
                raise

    def _token(self) -> str | None:
        if self._token_file is None:
            return os.environ.get(TOKEN) or None
        try:
            return Path(self._token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise click.UsageError(f"the token file {self._token_file} cannot be read: {why}.") from error


def owner_or_new(owner: str | None) -> str:
    """Return the owner, or a random one."""
    from ..taskstore.remote import new_client_id

    return new_client_id() if owner is None else owner


def document(task: Task) -> dict[str, Any]:
    """Return a task for programs. Data that is no text is in `data_base64`."""
    from ..taskstore.wire import spelled_data

    text, raw = spelled_data(task.data)
    return {
        "id": task.id,
        "group": task.group,
        "owner": task.owner,
        "available_at_ns": task.available_at_ns,
        "data": text,
        "data_base64": raw,
        "claims": task.claims,
        "attempt": task.attempt,
        "error": task.error,
    }


def pairs(task: Task) -> dict[str, object]:
    """Return a task for people."""
    failed = {"attempt": task.attempt, "error": task.error} if task.error else {}
    shown = {"id": task.id, "group": task.group, "owner": task.owner, "until": available(task)}
    return {**shown, "claims": task.claims, **failed, "data": in_brief(task.data)}


def print_tasks(tasks: Sequence[Task]) -> None:
    """Print a table of tasks."""
    rows = [
        (task.id, task.group, task.owner, available(task), task.claims, task.attempt, task.error, in_brief(task.data))
        for task in tasks
    ]
    print_table(("#id", "group", "owner", "available at", "#claims", "#attempt", "error", "data"), rows)


def available(task: Task) -> str:
    """Return the time from which anybody may have a task."""
    return local_time(task.available_at_ns // 1_000_000)


def in_brief(data: bytes) -> str:
    """Return the beginning of data that is text; of other data, how much there is."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes)"
    return text if len(text) <= SHOWN_DATA else f"{text[:SHOWN_DATA]}... ({len(data)} bytes)"
