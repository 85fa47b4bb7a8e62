"""What clients ask of the cluster: locks, renewals, releases, and what is held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from ...web.answers import JSON, PIECE, answer
from ...web.endpoint import Endpoint
from ...web.reading import Gone, Intake
from ...web.stopping import Stopping, while_wanted
from ...web.tokens import CALLER
from ..errors import NoName, NotHeld
from ..lock import Grant, Lock, Request
from ..node import Node, NodeLeaving
from ..wire import LOCKS, MS, AcquireDocument, LockDocument, LockList, RenewDocument, WaitingDocument
from .counts import Counts
from .grants import EVERYBODY, Permit
from .problems import forbidden, invalid_body
from .waits import KEEP_S, Waits

T = TypeVar("T")
MOST_BYTES = 64 << 10
ACQUIRE, RENEW = msgspec.json.Decoder(AcquireDocument), msgspec.json.Decoder(RenewDocument)


class Clients:
    """The endpoints of `/api/cluster/lock`."""

    def __init__(self, node: Node, stopping: Stopping, waits: Waits, counts: Counts) -> None:
        self._node, self._stopping, self._waits, self._counts = node, stopping, waits, counts
        self._intake = Intake(MOST_BYTES)

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        granted = {200: LockDocument, 202: WaitingDocument}
        named = ("name", "id", "request")
        return [
            Endpoint("POST", LOCKS, self.acquire, "Take a lock, or stand in line for it.", AcquireDocument, granted),
            Endpoint("PUT", LOCKS, self.renew, "Count a lease anew.", RenewDocument, {200: LockDocument}),
            Endpoint("DELETE", LOCKS, self.release, "Give a lock back.", answers={204: None}, query=named),
            Endpoint("GET", LOCKS, self.locks, "What is held, by name.", answers={200: LockList}),
        ]

    async def acquire(self, http: HttpRequest) -> Response:
        """Take a lock. What was granted to a client that has left, and cannot ask again, is given back."""
        asked = await self._read(http, ACQUIRE)
        request = asked.as_request()
        check(permit_of(http), request.name)
        if asked.node:
            raise invalid_body("node is set by the nodes themselves: leave it out.")
        grant = await self._granted(http, request, asked.slice_ms)
        if grant is None:
            return answer(WaitingDocument(kept_ms=int(KEEP_S * MS)), 202)
        self._counts.granted += 1
        if not request.request and await http.is_disconnected():
            await self._node.release(grant.lock.name, grant.lock.id)
            raise Gone
        return self._document(grant)

    async def renew(self, http: HttpRequest) -> Response:
        """Count a lease anew."""
        asked = await self._read(http, RENEW)
        check(permit_of(http), asked.name)
        if not asked.id:
            raise invalid_body("a renewal needs the lock's id")
        try:
            grant = await self._node.renew(asked.name, asked.id, asked.lease_s)
        except NotHeld:
            self._counts.lost += 1
            raise
        self._counts.renewed += 1
        return self._document(grant)

    async def release(self, http: HttpRequest) -> Response:
        """Give a lock back, by its id or its request's."""
        given = dict(parse_qsl(http.scope["query_string"].decode("latin-1"), keep_blank_values=True))
        name, lock_id, request = given.get("name", ""), given.get("id", ""), given.get("request", "")
        check(permit_of(http), name)
        if not (lock_id or request):
            raise invalid_body("a release needs the lock's id, or its request's")
        if not await self._node.release(name, lock_id, request=request):
            raise NotHeld(name, lock_id or request)
        self._counts.released += 1
        return Response(status_code=204)

    async def locks(self, http: HttpRequest) -> Response:
        """List what is held, of the names that the caller is granted."""
        return listed(await self._node.locks(), permit_of(http), self._node.port.now())

    async def _granted(self, http: HttpRequest, request: Request, slice_ms: int | None) -> Grant | None:
        if request.wait_s <= 0:
            return await self._node.acquire(request)
        if self._stopping:
            raise NodeLeaving
        slice_s = None if slice_ms is None or not request.request else max(0, slice_ms) / MS
        if slice_s is not None:
            request = replace(request, wait_s=min(request.wait_s, slice_s + KEEP_S))
        work = self._finished(request, slice_s)
        finished = await while_wanted(http, self._stopping, work)
        if finished is None:
            raise NodeLeaving
        return finished[0]

    async def _finished(self, request: Request, slice_s: float | None) -> tuple[Grant | None]:
        work = self._node.acquire(request)
        return (await self._waits.outcome(work, keep=bool(request.request), slice_s=slice_s),)

    async def _read(self, http: HttpRequest, kind: msgspec.json.Decoder[T]) -> T:
        body = await self._intake.body(http)
        try:
            return kind.decode(body)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise invalid_body(str(error)) from error

    def _document(self, grant: Grant) -> Response:
        return answer(LockDocument.of(grant.lock, self._node.port.now(), grant))


def permit_of(http: HttpRequest) -> Permit:
    """Return what the caller's token stands for."""
    permit = http.scope.get(CALLER)
    return permit if isinstance(permit, Permit) else EVERYBODY


def check(permit: Permit, name: str) -> None:
    """Refuse a name that is none, or is not granted."""
    if not name:
        raise NoName
    if not permit.allows(name):
        raise forbidden(f"Your token does not stand for the lock {name!r:.300}.")


def listed(locks: list[Lock], permit: Permit, now: float) -> Response:
    """Answer with those of some locks that a permit grants. A long list leaves in pieces, and does not hold the loop up."""
    shown = [lock for lock in locks if permit.allows(lock.name)]
    if len(shown) <= PIECE:
        return answer(LockList(items=[LockDocument.of(lock, now) for lock in shown]))
    return StreamingResponse(_pieces(shown, now), media_type=JSON)


async def _pieces(locks: list[Lock], now: float) -> AsyncIterator[bytes]:
    head, tail = msgspec.json.encode(LockList(items=[])).split(b"[]")
    for start in range(0, len(locks), PIECE):
        piece = msgspec.json.encode([LockDocument.of(lock, now) for lock in locks[start : start + PIECE]])
        yield (b"," if start else head + b"[") + piece[1:-1]
        await asyncio.sleep(0)
    yield b"]" + tail
