"""What a service measures of itself. Labels have few values: routes, methods and statuses, never a name that a caller chose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))
ROUTE = "slotkeeper.route"
OTHER = "other"


class Metrics:
    """A registry of its own: several services of a process do not mix. `prefix` begins each name."""

    def __init__(self, prefix: str) -> None:
        self.registry = CollectorRegistry()
        self._prefix = prefix
        self._seconds = Histogram(
            f"{prefix}_request_seconds",
            "How long requests took, by route and status.",
            ("method", "route", "status"),
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self._counted: dict[tuple[str, str, int], Histogram] = {}  # looking for a label takes longer than counting
        self._under_way = 0
        under_way = Gauge(f"{prefix}_requests_under_way", "Requests being answered.", registry=self.registry)
        under_way.set_function(lambda: self._under_way)

    def measured(self, app: ASGIApp) -> ASGIApp:
        """Return an application that is measured. It sets the scope's ROUTE, or is counted as `other`."""

        async def run(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            began, status = time.perf_counter(), 499  # as long as nothing has been said

            async def watching(message: Message) -> None:
                nonlocal status
                status = message.get("status", status)
                await send(message)

            self._under_way += 1
            try:
                await app(scope, receive, watching)
            finally:
                self._under_way -= 1
                self._count(scope, status, time.perf_counter() - began)

        return run

    def watch(self, values: Callable[[], Mapping[str, tuple[str, float]]]) -> None:
        """Show numbers that are looked up when they are asked for: by name, with what they mean."""
        self.registry.register(_Looked(self._prefix, values))

    def text(self) -> bytes:
        """Return everything as Prometheus reads it."""
        return generate_latest(self.registry)

    def _count(self, scope: Scope, status: int, took_s: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else OTHER
        route: str = scope.get(ROUTE, OTHER)
        counted = self._counted.get((method, route, status))
        if counted is None:
            counted = self._counted[method, route, status] = self._seconds.labels(method, route, str(status))
        counted.observe(took_s)


class _Looked(Collector):
    def __init__(self, prefix: str, values: Callable[[], Mapping[str, tuple[str, float]]]) -> None:
        self._prefix, self._values = prefix, values

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for name, (meaning, value) in self._values().items():
            yield GaugeMetricFamily(f"{self._prefix}_{name}", meaning, value=value)
