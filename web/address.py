"""Where a service is: `http://127.0.0.1:8048`, or `https://tasks.example.org/prefix`."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from .failures import BadAddress

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """The root of a service. It holds no user, no password and no token: it may be shown and logged."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read a URL. Raises BadAddress, which quotes nothing that could be a secret."""
        parts = _split(url)
        if parts.scheme not in PORTS:
            raise BadAddress(
                f"The address of a service begins with http:// or https://, not with {parts.scheme!r:.20}."
            )
        if parts.username is not None or parts.password is not None:
            raise BadAddress("The address of a service holds no user or password. Give a token instead.")
        if parts.query or parts.fragment:
            raise BadAddress("The address of a service ends with its host, port or path: no ? and no # behind it.")
        if not parts.hostname or not _is_plain(parts.hostname) or not _is_plain(parts.path):
            raise BadAddress("The address of a service names a host: http://HOST:PORT.")
        return cls(parts.scheme, parts.hostname, _port(parts), parts.path.rstrip("/"))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    @property
    def is_secure(self) -> bool:
        """Tell whether what is said there is encrypted."""
        return self.scheme == "https"

    @property
    def is_loopback(self) -> bool:
        """Tell whether it is this host itself: no proxy stands between."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")


def _split(url: object) -> SplitResult:
    if not isinstance(url, str) or "//" not in url:
        raise BadAddress
    try:
        return urlsplit(url)
    except ValueError as error:
        raise BadAddress from error


def _port(parts: SplitResult) -> int:
    try:
        port = PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError as error:
        raise BadAddress("The port of a service is a number from 1 to 65535.") from error
    if port == 0:
        raise BadAddress("The port of a service is a number from 1 to 65535.")
    return port


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
