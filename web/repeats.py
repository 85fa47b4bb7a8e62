"""`Idempotency-Key`: a request that is sent again is answered again, and not carried out again.

An answer is remembered as long as the process lives and there is room, and in any case for two minutes; where even those
are too many, a request with a key is refused, and nothing happened. A repeat that comes while the first one is under way
waits for its answer. Not remembered is an answer that says that nothing happened (503), and one that found its client gone:
a repeat of those begins anew.
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
KEEP_S = 120.0
ROOM_BYTES, MOST_BYTES = 16 << 20, 128 << 20
AROUND = 400  # bytes that an answer takes beside its own
FORGOTTEN = (499, 503)
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Answered:
    body_hash: bytes
    status: int
    body: bytes
    media_type: str
    at: float

    @property
    def size(self) -> int:
        return len(self.body) + AROUND

    def again(self) -> Response:
        headers = {"content-type": self.media_type, "idempotency-replayed": "true"}
        return Response(self.body, self.status, headers)


@dataclass(slots=True)
class _UnderWay:
    body_hash: bytes
    answer: asyncio.Future[_Answered | None] = field(default_factory=asyncio.Future)


class Repeats:
    """The answers of one service, by route and key. For one loop."""

    def __init__(self, *, keep_s: float = KEEP_S, room_bytes: int = ROOM_BYTES, most_bytes: int = MOST_BYTES) -> None:
        self._keep_s, self._room_bytes, self._most_bytes = keep_s, room_bytes, most_bytes
        self._answered: OrderedDict[Key, _Answered] = OrderedDict()
        self._under_way: dict[Key, _UnderWay] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._answered) + len(self._under_way)

    async def once(
        self, request: Request, route: str, body: bytes, carry_out: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Carry a request out, or answer as the first one of its key was answered. Raises Problem 422 or 503."""
        name = request.headers.get(HEADER)
        if name is None:
            return await carry_out()
        if not 0 < len(name) <= LONGEST_KEY:
            raise Problem(422, "idempotency-key", f"An Idempotency-Key has 1 to {LONGEST_KEY} characters.")
        # The token is part of it: nobody is shown what somebody else was answered.
        body_hash = sha256(request.headers.get("authorization", "").encode() + b"\0" + body).digest()
        answered = await self._known((route, name), body_hash)
        return answered.again() if answered is not None else await self._first((route, name), body_hash, carry_out)

    async def _known(self, key: Key, body_hash: bytes) -> _Answered | None:
        while (known := self._answered.get(key) or self._under_way.get(key)) is not None:
            if known.body_hash != body_hash:
                text = "This Idempotency-Key was used with another body. A new request wants a new key. Nothing was changed."
                raise Problem(422, "idempotency-key", text)
            answered = known if isinstance(known, _Answered) else await asyncio.shield(known.answer)
            if answered is not None:
                return answered
        return None

    async def _first(self, key: Key, body_hash: bytes, carry_out: Callable[[], Awaitable[Response]]) -> Response:
        if not self._has_room():
            text = (
                "More answers are remembered by Idempotency-Key than there is room for. Nothing was changed; try again."
            )
            raise Problem(503, "busy", text)
        under_way = self._under_way[key] = _UnderWay(body_hash)
        answered: _Answered | None = None
        try:
            response = await carry_out()
            answered = self._kept(key, body_hash, response)
        finally:
            del self._under_way[key]
            under_way.answer.set_result(answered)
        return response

    def _kept(self, key: Key, body_hash: bytes, response: Response) -> _Answered | None:
        if response.status_code in FORGOTTEN:
            return None
        now, media_type = asyncio.get_running_loop().time(), response.headers.get("content-type", "")
        answered = _Answered(body_hash, response.status_code, bytes(response.body), media_type, now)
        self._answered[key] = answered
        self._bytes += answered.size
        return answered

    def _has_room(self) -> bool:
        """Forget what is old, where there is too much; tell whether there is room now."""
        old = asyncio.get_running_loop().time() - self._keep_s
        while self._bytes > self._room_bytes and next(iter(self._answered.values())).at <= old:
            self._bytes -= self._answered.popitem(last=False)[1].size
        return self._bytes <= self._most_bytes
