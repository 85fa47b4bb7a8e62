"""A service's application: its endpoints, and around them what every service has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..errors import SlotkeeperError
from . import metrics as measuring
from .answers import answer, refusal, told
from .endpoint import Endpoint
from .instance import Instance
from .metrics import Metrics
from .openapi import description
from .problem import Problem
from .stopping import Stopping
from .tokens import Guard

READY_S = 5.0
CUT_OFF = "The service stopped before this was done. It may have happened, or not: look before you repeat it."
Sort = Callable[[SlotkeeperError], Response | None]


@dataclass(frozen=True, slots=True)
class Service:
    """What makes a service out of its endpoints.

    `ready` raises what keeps it from answering; `sorted_error` makes a response of our errors that are answers of their own.
    """

    title: str
    endpoints: Sequence[Endpoint]
    ready: Callable[[], Awaitable[object]]
    sorted_error: Sort
    stopping: Stopping
    metrics: Metrics
    tokens: Mapping[str, Any] = field(default_factory=dict)

    def application(self) -> ASGIApp:
        """Return it as an ASGI application."""
        everything = [*self.endpoints, *self._common()]
        document = description(self.title, everything)

        async def described(request: Request) -> Response:
            return answer(document)

        openapi = Endpoint("GET", "/openapi.json", described, "This description.")
        app = Starlette(
            routes=[self._route(endpoint) for endpoint in (*everything, openapi)],
            exception_handlers={
                HTTPException: told,
                Exception: told,
                Problem: told,
                SlotkeeperError: self._sorted,
            },
        )
        app.router.redirect_slashes = False
        return self.metrics.measured(Instance(Guard(app, self.tokens)))

    def _common(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/healthz", self._healthz, "Whether the process lives.", answers={200: dict[str, str]}),
            Endpoint("GET", "/readyz", self._readyz, "Whether it answers.", answers={200: dict[str, str]}),
            Endpoint("GET", "/metrics", self._metrics, "Numbers for Prometheus.", answers={200: None}),
        ]

    async def _healthz(self, request: Request) -> Response:
        return answer({"status": "ok"})

    async def _readyz(self, request: Request) -> Response:
        if self.stopping:
            raise Problem(503, "stopping", "This service is about to stop.")
        try:
            async with asyncio.timeout(READY_S):
                await self.ready()
        except TimeoutError:
            raise Problem(503, "slow", f"The service did not come to it within {READY_S:g} s.") from None
        return answer({"status": "ready"})

    async def _metrics(self, request: Request) -> Response:
        return Response(self.metrics.text(), media_type=measuring.MEDIA_TYPE)

    def _route(self, endpoint: Endpoint) -> Route:
        """Return a framework's route. It tells the metrics its name, and answers even when it is cut off."""
        template = endpoint.template

        async def run(request: Request) -> Response:
            request.scope[measuring.ROUTE] = template
            try:
                return await endpoint.handle(request)
            except asyncio.CancelledError:
                if not self.stopping:
                    raise
                return refusal(Problem(504, "outcome-unknown", CUT_OFF))

        return Route(endpoint.path, run, methods=[endpoint.method])

    async def _sorted(self, request: Request, error: Exception) -> Response:
        found = self.sorted_error(error) if isinstance(error, SlotkeeperError) else None
        if found is None:
            raise error
        return found


async def responded(carried_out: Awaitable[Response], sorted_error: Sort) -> Response:
    """Return the response, or the one that an error of ours makes: for who remembers responses."""
    try:
        return await carried_out
    except Problem as problem:
        return refusal(problem)
    except SlotkeeperError as error:
        if (response := sorted_error(error)) is None:
            raise
        return response
