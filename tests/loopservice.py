"""A task service on the loop of its test: real sockets, and everything behind them within reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from taskstores import FailingJournal

from slotkeeper.taskstore import AsyncTaskStore, Journal
from slotkeeper.taskstore.record import Record
from slotkeeper.taskstore.service import Limits, application
from slotkeeper.web.serving import Certificate, Server, address_of, bound
from slotkeeper.web.stopping import Stopping

BOUND_S = 30.0


class Holding(FailingJournal):
    """A journal whose appends take until they are let go. `held` tells that one has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.go = asyncio.Event(), asyncio.Event()

    async def append(self, records: Sequence[Record], deadline: float) -> None:
        """Append when it is let go."""
        self.held.set()
        await self.go.wait()
        await super().append(records, deadline)


@dataclass(frozen=True)
class OnLoop:
    """A service that runs. `http` is a client of it; `ended` is done when it has stopped by itself."""

    url: str
    store: AsyncTaskStore
    server: Server
    stopping: Stopping
    http: httpx2.AsyncClient
    ended: asyncio.Task[None]

    async def stopped(self) -> None:
        """Stop it as a signal would, and wait until it has."""
        self.server.stop()
        async with asyncio.timeout(BOUND_S):
            await asyncio.shield(self.ended)


@asynccontextmanager
async def on_loop(
    journal: Journal | str = "memory",
    *,
    limits: Limits | None = None,
    tokens: Mapping[str, Any] | None = None,
    certificate: Certificate | None = None,
    verify: Any = True,
    grace_s: int = 10,
    **options: Any,
) -> AsyncIterator[OnLoop]:
    """Run a service, and stop it. Its store stays open until then."""
    stopping, listening = Stopping(), asyncio.Event()
    sock = bound("127.0.0.1", 0)
    url = address_of(sock, tls=certificate is not None)
    async with AsyncTaskStore(journal, **options) as store, client(url, verify=verify) as http:
        app = application(store, stopping=stopping, limits=limits, tokens=tokens)
        server = Server(app, stopping, certificate=certificate, grace_s=grace_s)
        ended = asyncio.create_task(server.run_on(sock, listening.set))
        service = OnLoop(url, store, server, stopping, http, ended)
        async with asyncio.timeout(BOUND_S):
            await listening.wait()
        try:
            yield service
        finally:
            await service.stopped()


def client(url: str, **options: Any) -> httpx2.AsyncClient:
    """Return a client of HTTP that knows nothing of ours."""
    return httpx2.AsyncClient(base_url=url, timeout=BOUND_S, trust_env=False, **options)
