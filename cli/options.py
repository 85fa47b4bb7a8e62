"""The options that all commands take, before the subcommand or after it: the nearer one wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DATABASE, SCOPE, OUTPUT = "Database", "Scope", "Output"
TIMEOUT_S = 20.0  # of the client; here for the help, which does not import it


class Choices:
    """What the shared options of a command line say. `given` has those that were typed, by name."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    @property
    def json(self) -> bool:
        """Whether a program reads the output."""
        return bool(self.given.get("json"))

    @property
    def verbose(self) -> bool:
        """Whether tracebacks and log lines are wanted."""
        return bool(self.given.get("verbose"))

    @property
    def quiet(self) -> bool:
        """Whether nothing but data and errors is wanted."""
        return bool(self.given.get("quiet"))

    @property
    def timeout_s(self) -> float:
        """How long one call to the database may take, repetitions included."""
        return float(self.given.get("timeout", TIMEOUT_S))

    @property
    def parts(self) -> dict[str, str]:
        """The single settings of the database, by the names of CassandraSettings' fields."""
        return {name: _spelled(value) for name, value in self.given.items() if name in PARTS}


class Shared(click.Option):
    """An option that is kept in Choices.

    Its variables are shown in the help and not read by click: the environment comes after the database's URL, and after
    what was typed before the subcommand.
    """

    def __init__(self, names: list[str], *, section: str, **attributes: Any) -> None:
        super().__init__(names, expose_value=False, callback=_keep, show_envvar=True, **attributes)
        self.section = section

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Read nothing."""
        return None


def _keep(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
    if option.name and ctx.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE:
        ctx.ensure_object(Choices).given[option.name] = value
    return value


def _spelled(value: Any) -> str:
    match value:
        case tuple():
            return ",".join(value)
        case bool():
            return str(value).lower()
    return str(value)


# Names, then what click is told. The variables are those of slotkeeper.database.settings, which a help does not import.
Option = tuple[tuple[str, ...], dict[str, Any]]
SECONDS = click.FloatRange(min=0, min_open=True)
OPTIONS: dict[str, tuple[Option, ...]] = {
    SCOPE: (
        (
            ("--domain",),
            {
                "metavar": "NAME|UUID",
                "envvar": ["SLOTKEEPER_DOMAIN"],
                "help": "Whose semaphores: a name, or a UUID. Without it: default.",
            },
        ),
        (
            ("--timeout",),
            {
                "type": SECONDS,
                "metavar": "SECONDS",
                "help": f"How long to go on when the database is slow or silent. Without it: {TIMEOUT_S:g}.",
            },
        ),
    ),
    OUTPUT: (
        (("--json",), {"is_flag": True, "is_eager": True, "help": "Print one JSON document instead of text."}),
        (("-q", "--quiet"), {"is_flag": True, "is_eager": True, "help": "Print nothing but data and errors."}),
        (
            ("-v", "--verbose"),
            {"is_flag": True, "is_eager": True, "help": "Print log lines, and where an error comes from."},
        ),
    ),
    DATABASE: (
        (
            ("--database",),
            {
                "metavar": "URL",
                "envvar": ["SLOTKEEPER_DATABASE"],
                "help": "cassandra://HOST/KEYSPACE?local_dc=NAME, or sqlite:///PATH. "
                "Without one: a file in your data folder.",
            },
        ),
        (
            ("--hosts",),
            {
                "multiple": True,
                "metavar": "HOST[:PORT],...",
                "envvar": ["SLOTKEEPER_HOSTS", "CASSANDRA_HOST", "CQLSH_HOST"],
                "help": "Nodes to ask first.",
            },
        ),
        (
            ("--port",),
            {
                "type": click.IntRange(1, 65535),
                "metavar": "NUMBER",
                "envvar": ["SLOTKEEPER_PORT", "CASSANDRA_DB_PORT", "CQLSH_PORT"],
                "help": "Port of the hosts that name none.",
            },
        ),
        (
            ("--keyspace",),
            {
                "metavar": "NAME",
                "envvar": ["SLOTKEEPER_KEYSPACE", "CASSANDRA_KEYSPACE"],
                "help": "Keyspace of the tables.",
            },
        ),
        (
            ("--local-dc",),
            {"metavar": "NAME", "envvar": ["SLOTKEEPER_LOCAL_DC"], "help": "Data centre that decides."},
        ),
        (
            ("--user",),
            {"metavar": "NAME", "envvar": ["SLOTKEEPER_USER", "CASSANDRA_USER"], "help": "User to log in as."},
        ),
        (
            ("--password-file",),
            {
                "metavar": "PATH",
                "envvar": ["SLOTKEEPER_PASSWORD_FILE"],
                "help": "File that holds the password, which SLOTKEEPER_PASSWORD may hold too.",
            },
        ),
        (
            ("--consistency",),
            {
                "type": click.Choice(["LOCAL_QUORUM", "QUORUM"], case_sensitive=False),
                "envvar": ["SLOTKEEPER_CONSISTENCY"],
                "help": "Level that commits. One for all clients of a keyspace.",
            },
        ),
        (
            ("--tls/--no-tls", "--ssl"),
            {"default": None, "envvar": ["SLOTKEEPER_TLS", "CASSANDRA_ENABLE_TLS"], "help": "Connect with TLS."},
        ),
        (
            ("--tls-ca-file",),
            {
                "metavar": "PATH",
                "envvar": ["SLOTKEEPER_TLS_CA_FILE", "CASSANDRA_TLS_CA"],
                "help": "Certificates to trust.",
            },
        ),
        (
            ("--tls-cert-file",),
            {
                "metavar": "PATH",
                "envvar": ["SLOTKEEPER_TLS_CERT_FILE", "CASSANDRA_TLS_CERT"],
                "help": "Client certificate.",
            },
        ),
        (
            ("--tls-key-file",),
            {
                "metavar": "PATH",
                "envvar": ["SLOTKEEPER_TLS_KEY_FILE", "CASSANDRA_TLS_KEY"],
                "help": "Key of the client certificate.",
            },
        ),
        (
            ("--tls-server-name",),
            {
                "metavar": "NAME",
                "envvar": ["SLOTKEEPER_TLS_SERVER_NAME", "CASSANDRA_TLS_SERVER_NAME"],
                "help": "Name that the server's certificate must have.",
            },
        ),
        (
            ("--tls-verify-host/--no-tls-verify-host", "--tls-enable-host-verification"),
            {
                "default": None,
                "envvar": ["SLOTKEEPER_TLS_VERIFY_HOST", "CASSANDRA_TLS_VERIFY_HOST"],
                "help": "Check that name. On unless turned off.",
            },
        ),
        (
            ("--connect-timeout", "connect_timeout_s"),
            {
                "type": SECONDS,
                "metavar": "SECONDS",
                "envvar": ["SLOTKEEPER_CONNECT_TIMEOUT"],
                "help": "How long a connection may take. Without it: 5.",
            },
        ),
        (
            ("--request-timeout", "request_timeout_s"),
            {
                "type": SECONDS,
                "metavar": "SECONDS",
                "envvar": ["SLOTKEEPER_REQUEST_TIMEOUT", "CASSANDRA_TIMEOUT"],
                "help": "How long one request may take: longer than the server's own limit. Without it: 10.",
            },
        ),
    ),
}
PARTS = (
    "hosts",
    "port",
    "keyspace",
    "local_dc",
    "user",
    "password_file",
    "consistency",
    "tls",
    "tls_ca_file",
    "tls_cert_file",
    "tls_key_file",
    "tls_server_name",
    "tls_verify_host",
    "connect_timeout_s",
    "request_timeout_s",
)


def shared(*sections: str, shown: tuple[str, ...] | None = None) -> Callable[[F], F]:
    """Give a command the options of some sections; with `shown`, only these names of them are in its help."""

    def decorate(command: F) -> F:
        for section in reversed(sections):
            for names, attributes in reversed(OPTIONS[section]):
                hidden = shown is not None and names[-1] not in shown
                command = click.option(*names, cls=Shared, section=section, hidden=hidden, **attributes)(command)
        return command

    return decorate
