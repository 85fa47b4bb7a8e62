"""`Idempotency-Key`: a request that is sent again is answered again, and not carried out again.

What is remembered lives as long as the process, and is bounded: the oldest answers are forgotten first. A repeat that comes
while the first one is under way waits for its answer. Not remembered is an answer that says that nothing happened (503),
and one that found its client gone: a repeat of those begins anew.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from .problem import Problem

HEADER = "idempotency-key"
LONGEST_KEY = 255
MOST_ANSWERS, MOST_BYTES = 10_000, 16 << 20
FORGOTTEN = (499, 503)
Key = tuple[str, str]


@dataclass(slots=True)
class _Kept:
    body_hash: bytes
    answer: asyncio.Future[Response | None] = field(default_factory=asyncio.Future)
    size: int = 0


class Repeats:
    """The answers of one service, by route and key. For one loop."""

    def __init__(self, *, most_answers: int = MOST_ANSWERS, most_bytes: int = MOST_BYTES) -> None:
        self._most_answers, self._most_bytes = most_answers, most_bytes
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()  # answered ones; those under way are in _under_way
        self._under_way: dict[Key, _Kept] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept) + len(self._under_way)

    async def once(
        self, request: Request, route: str, body: bytes, carry_out: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Carry a request out, or answer as the first one of its key was answered. Raises Problem 422."""
        name = request.headers.get(HEADER)
        if name is None:
            return await carry_out()
        if not 0 < len(name) <= LONGEST_KEY:
            raise Problem(422, "idempotency-key", f"An Idempotency-Key has 1 to {LONGEST_KEY} characters.")
        # The token is part of it: nobody is shown what somebody else was answered.
        body_hash = sha256(request.headers.get("authorization", "").encode() + b"\0" + body).digest()
        key = route, name
        while (known := self._kept.get(key) or self._under_way.get(key)) is not None:
            if known.body_hash != body_hash:
                text = "This Idempotency-Key was used with another body. A new request wants a new key. Nothing was changed."
                raise Problem(422, "idempotency-key", text)
            if (answered := await asyncio.shield(known.answer)) is not None:
                return _again(answered)
        return await self._first(key, _Kept(body_hash), carry_out)

    async def _first(self, key: Key, kept: _Kept, carry_out: Callable[[], Awaitable[Response]]) -> Response:
        self._under_way[key] = kept
        response: Response | None = None
        try:
            response = await carry_out()
        finally:
            del self._under_way[key]
            if response is not None and response.status_code not in FORGOTTEN:
                self._keep(key, kept, response)
                kept.answer.set_result(response)
            else:
                kept.answer.set_result(None)
        return response

    def _keep(self, key: Key, kept: _Kept, response: Response) -> None:
        kept.size = len(response.body) + len(key[1])
        self._kept[key] = kept
        self._bytes += kept.size
        while len(self._kept) > 1 and (len(self._kept) > self._most_answers or self._bytes > self._most_bytes):
            self._bytes -= self._kept.popitem(last=False)[1].size


def _again(response: Response) -> Response:
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return Response(response.body, response.status_code, {**headers, "idempotency-replayed": "true"})
