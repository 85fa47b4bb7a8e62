"""Which database, and how to reach it: from a URL, from flags, from environment variables.

    cassandra://[user[:password]@]host[:port][,host...]/keyspace?local_dc=dc1&consistency=LOCAL_QUORUM&sslmode=verify-full
    sqlite:///relative/path.db        sqlite:////absolute/path.db

Each part may also be given by itself; a flag beats the URL, and the URL beats the variables of the environment.
Nothing here reads the environment unasked: `load` is given it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from ipaddress import IPv6Address
from math import inf
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from .errors import SettingsError

DEFAULT_PORT = 9042
# No message quotes what it cannot read: a password may be in it.
UNQUOTED = "In the database URL write the signs / ? # @ : of a user, a password or a path as %2F %3F %23 %40 %3A."
NAMED_FOR_TLS = {"tls_ca_file", "tls_cert_file", "tls_key_file", "tls_server_name"}

# Ours first, then the names that Cadence's and cqlsh's users have set already. An empty variable counts as unset.
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "hosts": ("SLOTKEEPER_HOSTS", "CASSANDRA_HOST", "CQLSH_HOST"),
    "port": ("SLOTKEEPER_PORT", "CASSANDRA_DB_PORT", "CQLSH_PORT"),
    "keyspace": ("SLOTKEEPER_KEYSPACE", "CASSANDRA_KEYSPACE"),
    "local_dc": ("SLOTKEEPER_LOCAL_DC",),
    "user": ("SLOTKEEPER_USER", "CASSANDRA_USER"),
    "password": ("SLOTKEEPER_PASSWORD", "CASSANDRA_PASSWORD"),
    "password_file": ("SLOTKEEPER_PASSWORD_FILE",),
    "consistency": ("SLOTKEEPER_CONSISTENCY",),
    "tls": ("SLOTKEEPER_TLS", "CASSANDRA_ENABLE_TLS"),
    "tls_ca_file": ("SLOTKEEPER_TLS_CA_FILE", "CASSANDRA_TLS_CA"),
    "tls_cert_file": ("SLOTKEEPER_TLS_CERT_FILE", "CASSANDRA_TLS_CERT"),
    "tls_key_file": ("SLOTKEEPER_TLS_KEY_FILE", "CASSANDRA_TLS_KEY"),
    "tls_verify_host": ("SLOTKEEPER_TLS_VERIFY_HOST", "CASSANDRA_TLS_VERIFY_HOST"),
    "tls_server_name": ("SLOTKEEPER_TLS_SERVER_NAME", "CASSANDRA_TLS_SERVER_NAME"),
    "connect_timeout_s": ("SLOTKEEPER_CONNECT_TIMEOUT",),
    "request_timeout_s": ("SLOTKEEPER_REQUEST_TIMEOUT", "CASSANDRA_TIMEOUT"),
}


class Consistency(StrEnum):
    """The pair of levels of a keyspace, named by the one that commits. One pair for all its clients: quorums of
    different pairs need not meet.
    """

    LOCAL_QUORUM = "LOCAL_QUORUM"
    QUORUM = "QUORUM"

    @property
    def serial(self) -> str:
        """The level that decides: LOCAL_SERIAL within the data centre, SERIAL across all of them."""
        return "LOCAL_SERIAL" if self is Consistency.LOCAL_QUORUM else "SERIAL"


@dataclass(frozen=True, kw_only=True, slots=True)
class CassandraSettings:
    """A Cassandra cluster and a keyspace. `request_timeout_s` is longer than the server's own, so that errors come answered."""

    hosts: tuple[str, ...]
    port: int = DEFAULT_PORT
    keyspace: str = ""
    local_dc: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: str | None = None
    consistency: Consistency = Consistency.LOCAL_QUORUM
    tls: bool = False
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    tls_verify: bool = True
    tls_verify_host: bool = True
    tls_server_name: str | None = None
    connect_timeout_s: float = 5.0
    request_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        _check_hosts(self)
        if self.keyspace and not self.keyspace.replace("_", "").isalnum():
            raise SettingsError(f"The keyspace {self.keyspace!r} has other characters than letters, digits and _.")
        if self.user is not None and self.password is None and self.password_file is None:
            raise SettingsError(f"User {self.user!r} has no password: set SLOTKEEPER_PASSWORD or a password file.")
        if not all(0 < timeout_s < inf for timeout_s in (self.connect_timeout_s, self.request_timeout_s)):
            raise SettingsError("A timeout must be a number of seconds, more than 0.")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise SettingsError("A client certificate needs its key and a key its certificate: give both files.")

    def contact_points(self) -> list[tuple[str, int]]:
        """Return host and port of each node to ask first."""
        return [_host_and_port(host, self.port) for host in self.hosts]

    def secret(self) -> str | None:
        """Return the password, from its file where one is named. Raises SettingsError for a file that cannot be read."""
        if self.password_file is None:
            return self.password
        try:
            return Path(self.password_file).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The password file {self.password_file} cannot be read: {error}.") from error

    def __str__(self) -> str:
        """Spell the URL, without the password."""
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        options = {"local_dc": self.local_dc} if self.local_dc else {}
        hosts = ",".join(f"{h}:{p}" if ":" not in h else f"[{h}]:{p}" for h, p in self.contact_points())
        return f"cassandra://{user}{hosts}/{self.keyspace}{'?' + urlencode(options) if options else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SqliteSettings:
    """A file of the embedded store. `busy_timeout_s` is how long a writer waits for another process."""

    path: str
    busy_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        if not 0 <= self.busy_timeout_s < inf:
            raise SettingsError("The busy timeout must be a number of seconds, at least 0.")

    def __str__(self) -> str:
        return f"sqlite:///{quote(self.path)}"


Settings = CassandraSettings | SqliteSettings
Chosen = TypeVar("Chosen", CassandraSettings, SqliteSettings)


def load(
    url: str | None = None,
    parts: Mapping[str, str | None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings | None:
    """Return the settings that a URL, single parts and the environment name together, or None when none names a database.

    `parts` has the names of CassandraSettings' fields. Raises SettingsError, which says what is wrong and where.
    """
    given = {name: value for name, value in (parts or {}).items() if value}
    variables = {name: value for name, value in (environment or {}).items() if value}
    url = url or variables.get("SLOTKEEPER_DATABASE")
    named = _parse(url) if url else None
    if isinstance(named, SqliteSettings):
        if given:
            raise SettingsError(
                f"{', '.join(sorted(given))}: an embedded store has no such setting. The database is {named}."
            )
        return named
    if named is None and not given.get("hosts") and not variables.get("SLOTKEEPER_HOSTS"):
        if given:
            raise SettingsError(
                f"{', '.join(sorted(given))}: for which database? Name it: --database cassandra://HOST/KEYSPACE."
            )
        return None
    return _cassandra(_layered(_from_variables(variables), named or {}, given))


def parse(url: str) -> Settings:
    """Return the settings that a URL names. Raises SettingsError."""
    named = _parse(url)
    return named if isinstance(named, SqliteSettings) else _cassandra(named)


def _parse(url: str) -> dict[str, str] | SqliteSettings:
    try:
        split = urlsplit(url)
    except ValueError:
        raise SettingsError(f"The database URL cannot be read: are its [] closed? {UNQUOTED}") from None
    if split.fragment:
        raise SettingsError(f"The database URL has a #. {UNQUOTED}")
    match split.scheme:
        case "cassandra":
            return _cassandra_parts(split)
        case "sqlite":
            return _sqlite(split)
        case scheme:
            instead = f", not with {scheme}:" if scheme else ""
            raise SettingsError(f"A database URL starts with cassandra:// or sqlite:///{instead}.")


def _sqlite(split: SplitResult) -> SqliteSettings:
    if split.netloc or not split.path.startswith("/") or split.path == "/":
        raise SettingsError(
            "A sqlite URL has three slashes, then the path: sqlite:///folder/file.db, sqlite:////tmp/file.db."
        )
    return _converted({"path": unquote(split.path[1:]), **_options(split)}, SqliteSettings)


def _cassandra_parts(split: SplitResult) -> dict[str, str]:
    if "@" in split.path or ("@" in split.query and "@" not in split.netloc):
        raise SettingsError(f"The database URL has an @ behind its hosts. {UNQUOTED}")
    login, _, hosts = split.netloc.rpartition("@")  # urlsplit's own .hostname and .port fail on a list of hosts
    user, colon, password = login.partition(":")
    parts = {"hosts": hosts, "keyspace": unquote(split.path.strip("/")), "user": unquote(user)}
    if colon:
        parts["password"] = unquote(password)
    return {**{name: value for name, value in parts.items() if value}, **_ssl(_options(split))}


def _options(split: SplitResult) -> dict[str, str]:
    try:
        return dict(parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query)))
    except ValueError:
        raise SettingsError(
            f"The options behind the ? of the database URL are no NAME=VALUE joined by &. {UNQUOTED}"
        ) from None


def _ssl(options: dict[str, str]) -> dict[str, str]:
    """Translate the names that libpq's and golang-migrate's users know."""
    for theirs, ours in {"sslrootcert": "tls_ca_file", "sslcert": "tls_cert_file", "sslkey": "tls_key_file"}.items():
        if theirs in options:
            options[ours] = options.pop(theirs)
    modes = {
        "disable": {"tls": "false"},
        "require": {"tls": "true", "tls_verify": "false"},
        "verify-ca": {"tls": "true", "tls_verify": "true", "tls_verify_host": "false"},
        "verify-full": {"tls": "true", "tls_verify": "true", "tls_verify_host": "true"},
    }
    mode = options.pop("sslmode", None)
    if mode is not None and mode not in modes:
        raise SettingsError(f"sslmode is one of {', '.join(modes)}, not {mode!r}.")
    return {**options, **(modes[mode] if mode else {})}


def _from_variables(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        part: next(variables[name] for name in names if name in variables)
        for part, names in VARIABLES.items()
        if any(name in variables for name in names)
    }


def _layered(*layers: Mapping[str, str]) -> dict[str, str]:
    """Join settings, the later layers above the earlier.

    A password hides a password file below it, and the reverse; a port hides those that stand beside the hosts below it.
    """
    merged: dict[str, str] = {}
    for layer in layers:
        if "password" in layer or "password_file" in layer:
            merged = {name: value for name, value in merged.items() if name not in ("password", "password_file")}
        if "port" in layer and "hosts" in merged:
            merged["hosts"] = ",".join(_without_port(host.strip()) for host in merged["hosts"].split(","))
        merged.update(layer)
    return merged


def _without_port(text: str) -> str:
    host, _ = _host_and_port(text, DEFAULT_PORT)
    return f"[{host}]" if ":" in host else host


def _cassandra(parts: Mapping[str, str]) -> CassandraSettings:
    if "tls" not in parts and NAMED_FOR_TLS & parts.keys():
        parts = {**parts, "tls": "true"}  # who names a certificate does not mean to send the password in the open
    hosts = [host.strip() for host in parts.get("hosts", "").split(",")]
    if "consistency" in parts:
        parts = {**parts, "consistency": parts["consistency"].upper()}
    return _converted({**parts, "hosts": [host for host in hosts if host]}, CassandraSettings)


def _converted(parts: Mapping[str, object], kind: type[Chosen]) -> Chosen:
    known = [f.name for f in fields(kind)]
    if strange := sorted(set(parts) - set(known)):
        raise SettingsError(f"The database has no setting {', '.join(strange)}. There are: {', '.join(known)}.")
    try:
        return msgspec.convert(parts, kind, strict=False)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SettingsError):  # ours, from __post_init__: it says all that is to say
            raise error.__cause__ from None
        raise SettingsError(f"A setting of the database is wrong: {error}.") from error


def _check_hosts(settings: CassandraSettings) -> None:
    if not settings.hosts:
        raise SettingsError("The database URL names no host: cassandra://HOST[:PORT]/KEYSPACE.")
    for _, port in settings.contact_points():
        if not 0 < port < 65536:
            raise SettingsError(f"A port is between 1 and 65535, not {port}.")


def _host_and_port(text: str, default: int) -> tuple[str, int]:
    if text.startswith("["):  # [::1]:9042
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, port = text.split(":")
    else:
        host, port = text, ""
    if ":" in host and not _is_ipv6(host):
        raise SettingsError(
            f"{host.partition(':')[0]!r} is no host: a comma stands between hosts, and [] around an IPv6 address."
        )
    if not port:
        return host, default
    if not (port.isascii() and port.isdecimal()):
        raise SettingsError(f"{host!r} is no host: what is behind its colon is no port, which would be a number.")
    return host, int(port)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
