"""The port of a client: all that it may wait for is a request, a while, and a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .failures import BadToken

Params = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service has answered. The names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def retry_after_s(self) -> float | None:
        """How long the service wants to be left alone; None where it does not say, or says it with a date."""
        said = self.headers.get("retry-after", "")
        return float(said) if said.isascii() and said.isdigit() else None

    @property
    def is_problem(self) -> bool:
        """Tell whether the body is a problem document: the service itself says what went wrong."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower() == "application/problem+json"


class Caller(Protocol):
    """Asks one service. A face chooses one: `ThreadsCaller` blocks and never suspends, `LoopCaller` is for asyncio."""

    @property
    def is_closed(self) -> bool:
        """Tell whether it asks no more."""
        ...

    def now(self) -> float:
        """Return seconds on a clock that only goes forward."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Params = (),
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Answer:
        """Ask once, and return the answer whatever its status. A `body` is JSON; the path is percent-encoded already.

        Raises NotSent when nothing was sent, AnswerLost when the service may have carried it out, Unsendable
        when asking again would not help, and CallerClosed.
        """
        ...

    async def close(self) -> None:
        """Give up the connections, and whatever is waited for on them."""
        ...


def bearer(token: str) -> str:
    """Return the header that shows a token. Raises BadToken."""
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
        raise BadToken
    return f"Bearer {token}"
