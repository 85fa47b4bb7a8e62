"""A store with a worker of either face behind one set of plain methods; handlers are plain functions for both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from eventually import until
from taskstores import Hands

from slotkeeper.taskstore import AsyncTaskStore, AsyncWorker, Task, TaskStore, Worker

BOUND_S = 20.0
Handler = Callable[[Any], Any]


class Troubled:
    """A store whose next calls fail as a test wants: `before` nothing has happened, or `after` all of it has."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.before: dict[str, list[BaseException]] = {}
        self.after: dict[str, list[BaseException]] = {}
        self.during: dict[str, Callable[[], None]] = {}  # runs once, when a call has come in
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.store, name)
        if asyncio.iscoroutinefunction(method):
            return lambda *values, **named: self._later(name, method, values, named)
        return lambda *values, **named: self._now(name, method, values, named)

    def _now(self, name: str, method: Callable[..., Any], values: Any, named: Any) -> Any:
        self._begin(name)
        self.during.pop(name, lambda: None)()
        answer = method(*values, **named)
        self._end(name)
        return answer

    async def _later(self, name: str, method: Callable[..., Any], values: Any, named: Any) -> Any:
        self._begin(name)
        await asyncio.to_thread(self.during.pop(name, lambda: None))
        answer = await method(*values, **named)
        self._end(name)
        return answer

    def _begin(self, name: str) -> None:
        self.calls.append(name)
        if failures := self.before.get(name):
            raise failures.pop(0)

    def _end(self, name: str) -> None:
        if failures := self.after.get(name):
            raise failures.pop(0)


class Shop:
    """A store in memory whose clock stands still, and workers on it."""

    def __init__(self, face: str, **options: Any) -> None:
        self.face, self.hands = face, Hands()
        self._loop = asyncio.new_event_loop() if face == "asyncio" else None
        self._thread = threading.Thread(target=self._loop.run_forever) if self._loop is not None else None
        if self._thread is not None:
            self._thread.start()
        kind = TaskStore if face == "threads" else AsyncTaskStore
        self.store: Any = kind("memory", clock=self.hands.clock(), **options)
        self.troubles = Troubled(self.store)
        self.call("open")

    def call(self, method: str, *values: Any, **named: Any) -> Any:
        """Call a method of the store."""
        made = getattr(self.store, method)(*values, **named)
        return made if self._loop is None else self.soon(made).result(BOUND_S)

    def soon(self, core: Any) -> Future[Any]:
        """Run something on the loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(core, self._loop)

    def add(self, *adds: Any) -> list[Task]:
        """Add tasks."""
        return self.call("update", "me", adds=adds)  # type: ignore[no-any-return]

    def every(self, group: str) -> list[Task]:
        """Return a group's tasks, owned ones too."""
        return self.call("group", group, owned=True)  # type: ignore[no-any-return]

    def made(self, handler: Handler, groups: Any = "g", **options: Any) -> Any:
        """Make a worker that looks often, so that a test is not kept waiting."""
        options = {"wait_s": 0.05, "dice": lambda: 0.0, "owner": "w", **options}
        if self._loop is None:
            return Worker(self.troubles, groups, handler, **options)

        async def handle(held: Any) -> Any:
            return await asyncio.to_thread(handler, held)

        return AsyncWorker(self.troubles, groups, handle, **options)

    def begun(self, worker: Any) -> Future[None]:
        """Let a worker run. Its end is the future's."""
        if self._loop is not None:
            return self.soon(worker.run())
        ended: Future[None] = Future()

        def run() -> None:
            try:
                ended.set_result(worker.run())
            except BaseException as error:
                ended.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return ended

    @contextmanager
    def works(self, handler: Handler, groups: Any = "g", **options: Any) -> Iterator[Any]:
        """Let a worker work meanwhile, and stop it."""
        worker = self.made(handler, groups, **options)
        ended = self.begun(worker)
        try:
            yield worker
        finally:
            worker.stop()
            ended.result(BOUND_S)

    def end(self) -> None:
        """Close everything."""
        self.call("close")
        if self._loop is not None and self._thread is not None:
            self.soon(self._loop.shutdown_default_executor()).result(BOUND_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def renewed(held: Any, times: int = 1) -> None:
    """Wait until a task was renewed so many times."""
    until(lambda: len(held.ids) > times)
