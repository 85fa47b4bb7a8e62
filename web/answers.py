"""Responses: JSON, problem documents, and long ones that leave in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .problem import MEDIA_TYPE, Problem

T = TypeVar("T")
JSON, LINES = "application/json", "application/x-ndjson"
PIECE = 500  # values that are spelled between two turns of the loop
NAMES = {404: "not-found", 405: "method-not-allowed"}


def answer(value: Any, status: int = 200) -> Response:
    """Answer with a value as JSON."""
    return Response(msgspec.json.encode(value), status, media_type=JSON)


def refusal(problem: Problem) -> Response:
    """Answer with a problem."""
    return Response(msgspec.json.encode(problem.document()), problem.status, problem.headers, media_type=MEDIA_TYPE)


def listed(values: Sequence[T], spelled: Callable[[T], Any]) -> Response:
    """Answer with a JSON list. A long one leaves in pieces: it neither holds the loop up nor is there as a whole."""
    if len(values) <= PIECE:
        return answer([spelled(value) for value in values])
    return StreamingResponse(_list(values, spelled), media_type=JSON)


def lines(values: Sequence[T], spelled: Callable[[T], Any]) -> Response:
    """Answer with one line of JSON a value, in pieces."""
    return StreamingResponse(_lines(values, spelled), media_type=LINES)


async def told(request: Request, error: Exception) -> Response:
    """Answer what the framework raises, or we do."""
    if isinstance(error, Problem):
        return refusal(error)
    if isinstance(error, HTTPException):
        name = NAMES.get(error.status_code, "refused")
        return refusal(Problem(error.status_code, name, _about(request, error.status_code), error.headers))
    return refusal(Problem(500, "unexpected", "This is not foreseen; the service's log has more."))


def _about(request: Request, status: int) -> str:
    match status:
        case 404:
            return f"There is nothing at {request.url.path:.200}; /openapi.json has what there is."
        case 405:
            return f"{request.method:.20} means nothing here; the header Allow says what does."
    return f"Refused with status {status}."


async def _lines(values: Sequence[T], spelled: Callable[[T], Any]) -> AsyncIterator[bytes]:
    for start in range(0, len(values), PIECE):
        yield msgspec.json.Encoder().encode_lines([spelled(value) for value in values[start : start + PIECE]])
        await asyncio.sleep(0)


async def _list(values: Sequence[T], spelled: Callable[[T], Any]) -> AsyncIterator[bytes]:
    for start in range(0, len(values), PIECE):
        piece = msgspec.json.encode([spelled(value) for value in values[start : start + PIECE]])
        yield (b"," if start else b"[") + piece[1:-1]
        await asyncio.sleep(0)
    yield b"]"
