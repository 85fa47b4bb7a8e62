"""Reading a request: not more than is good for the service, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request

from .problem import Problem

LONGEST_HEAD = 64 << 10  # its path included: a group's name may be long, and a list of ids
IN_VAIN = 8  # times the most that may be sent


class Gone(Problem):
    """The client is gone: nobody reads this answer."""

    def __init__(self) -> None:
        super().__init__(499, "client-gone", "The client left before it was answered.")


@dataclass(frozen=True, slots=True)
class Intake:
    """What a service takes in: how many bytes, and for how long it waits for them."""

    most_bytes: int = 8 << 20
    patience_s: float = 30.0

    async def body(self, request: Request) -> bytes:
        """Read the body. Raises Problem 413 or 408, or Gone."""
        try:
            async with asyncio.timeout(self.patience_s):
                return await self._read(request)
        except TimeoutError:
            text = f"The body did not come within {self.patience_s:g} s."
            raise Problem(408, "body-too-slow", text, {"connection": "close"}) from None

    async def _read(self, request: Request) -> bytes:
        """Read all of it: whoever still sends when the connection ends does not see the answer. In vain, up to a bound."""
        body, size, goes_on = bytearray(), 0, True
        while goes_on:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            piece, goes_on = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            if size <= self.most_bytes:
                body += piece
            elif size > IN_VAIN * self.most_bytes:
                raise self._too_large({"connection": "close"})
        if size > self.most_bytes:
            raise self._too_large()
        return bytes(body)

    def _too_large(self, headers: Mapping[str, str] | None = None) -> Problem:
        text = f"A request may have {self.most_bytes} bytes; send it in several. Nothing was changed."
        return Problem(413, "body-too-large", text, headers)
