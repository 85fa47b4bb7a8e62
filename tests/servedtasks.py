"""A task service in a thread of its own: the real application on a real server, over a store that the test names."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from slotkeeper.taskstore import AsyncTaskStore, Journal
from slotkeeper.taskstore.service import Limits, application
from slotkeeper.web.serving import Server, address_of, bound
from slotkeeper.web.stopping import Stopping

BOUND_S = 30.0


@dataclass(frozen=True)
class Behind:
    """A journal that is reached through a service only."""

    journal: Journal


class ServedTasks:
    """A service that answers from its making on; what keeps it from doing so is raised there."""

    def __init__(
        self,
        journal: Journal | str,
        *,
        port: int = 0,
        token: str | None = None,
        most_wait_s: float = 300.0,
        **options: Any,
    ) -> None:
        self._limits = Limits(most_wait_s=most_wait_s)
        self.store = AsyncTaskStore(journal, **options)
        self._sock, self._token = bound("127.0.0.1", port), token
        self.url, self.port = address_of(self._sock, tls=False), self._sock.getsockname()[1]
        self._server: Server | None = None
        self._ready, self._failure = threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._run, name="task service")
        self._thread.start()
        assert self._ready.wait(BOUND_S)
        if self._failure:
            self._thread.join()
            raise self._failure[0]

    def stop(self) -> None:
        """End it, as a signal would."""
        if self._server is not None:
            self._server.stop()
        self._thread.join(BOUND_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure.append(error)
        finally:
            self._sock.close()
            self._ready.set()

    async def _serve(self) -> None:
        async with self.store:
            stopping = Stopping()
            tokens = {self._token: None} if self._token else {}
            app = application(self.store, stopping=stopping, limits=self._limits, tokens=tokens)
            self._server = Server(app, stopping)
            await self._server.run_on(self._sock, self._ready.set)


@contextmanager
def served(journal: Journal | str = "memory", **options: Any) -> Iterator[ServedTasks]:
    """Run a service."""
    service = ServedTasks(journal, **options)
    try:
        yield service
    finally:
        service.stop()
