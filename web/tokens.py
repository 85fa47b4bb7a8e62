"""Who may ask: whoever knows a token. Only a service that none but this host reaches may go without."""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import SlotkeeperError
from .answers import refusal
from .problem import Problem

OPEN = ("/healthz", "/readyz")
CALLER = "slotkeeper.caller"
SHORTEST = 16


class TokenNeeded(SlotkeeperError):
    """A service that other hosts reach needs a token. Give it one, or let it listen on 127.0.0.1."""


class BadTokenFile(SlotkeeperError):
    """The token cannot be read. It is one line of at least 16 printable ASCII characters without blanks, in a file."""


def read_token(path: str | Path) -> str:
    """Return the token that a file holds. Raises BadTokenFile, which quotes nothing of it."""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII"
        raise BadTokenFile(
            f"{path} holds no token: {why}. A token is one line of at least {SHORTEST} characters."
        ) from error
    return checked_token(text, str(path))


def checked_token(text: str, where: str) -> str:
    """Return a token that can be one. Raises BadTokenFile, which quotes nothing of it."""
    if len(text) < SHORTEST or any(not "!" <= sign <= "~" for sign in text):
        raise BadTokenFile(
            f"{where} holds no token: it is one line of at least {SHORTEST} printable ASCII characters without blanks."
        )
    return text


def check_reach(host: str, tokens: Mapping[str, Any]) -> None:
    """Refuse to listen where other hosts can ask, without a token. Raises TokenNeeded."""
    if not tokens and not ip_address(host.partition("%")[0]).is_loopback:
        raise TokenNeeded(
            f"{host} is reached from other hosts, so a token is needed. Give one, or listen on 127.0.0.1."
        )


class Guard:
    """In front of an application: lets those in who know a token. What it stands for is in the scope, as CALLER.

    Without tokens everybody on this host may ask, but no web page that somebody here has open.
    """

    def __init__(self, app: ASGIApp, tokens: Mapping[str, Any]) -> None:
        self._app = app
        self._tokens = [(token.encode(), caller) for token, caller in tokens.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] == "http" and scope["path"] not in OPEN:
            try:
                scope[CALLER] = self._caller(dict(scope["headers"]))
            except Problem as problem:
                await refusal(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _caller(self, headers: Mapping[bytes, bytes]) -> Any:
        if not self._tokens:
            if b"origin" in headers:
                raise Problem(403, "web-page", "Without a token, this service takes nothing from web pages.")
            return None
        kind, _, shown = headers.get(b"authorization", b"").partition(b" ")
        found = [caller for token, caller in self._tokens if compare_digest(token, shown.strip())]
        if kind.lower() != b"bearer" or not found:
            text = "This service wants a token that it knows: Authorization: Bearer TOKEN."
            raise Problem(401, "token", text, {"www-authenticate": "Bearer"})
        return found[0]
