"""The two faces of a worker: `Worker` for threads, `AsyncWorker` for asyncio.

>>> from slotkeeper.taskstore import Add, HeldTask, Outcome, TaskStore, Worker
>>> def shout(task: HeldTask) -> Outcome:
...     return Outcome(adds=[Add("loud", task.data.upper())])
>>> with TaskStore("memory") as store:
...     _ = store.update("me", adds=[Add("quiet", b"hello")])
...     with Worker(store, "quiet", shout):
...         store.claim("me", "loud", for_s=30, wait_s=20).data
b'HELLO'
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Generic, Protocol, Self
from uuid import uuid4

from ..database import drive
from .errors import BadWorker
from .group import Dice
from .held import F, Held
from .outcome import Outcome
from .ports import LoopPort, ThreadsPort
from .shift import Pauses, Shift, Store, Terms
from .task import Add, Change, Task

HeldTask = Held[threading.Event]
AsyncHeldTask = Held[asyncio.Event]
Handler = Callable[[HeldTask], Outcome | None]
AsyncHandler = Callable[[AsyncHeldTask], Awaitable[Outcome | None]]


class BlockingStore(Protocol):
    """What a Worker asks of a store: a TaskStore has it, and so has its client over HTTP."""

    def claim(self, owner: str, groups: str | Iterable[str], for_s: float, *, wait_s: float = 0.0) -> Task | None: ...

    def update(
        self, owner: str, *, adds: Iterable[Add] = (), changes: Iterable[Change] = (), deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> list[Task]: ...  # fmt: skip

    def renew(self, owner: str, task: Task | int, for_s: float) -> Task: ...

    def release(self, owner: str, task: Task | int, *, after_s: float = 0.0, error: str | None = None) -> Task: ...

    def task(self, task_id: int) -> Task | None: ...

    def group(self, name: str, limit: int | None = None, *, owned: bool = False) -> list[Task]: ...


class _Worker(Generic[F]):
    """What both faces are given."""

    _shift: Shift[F] | None = None
    _stopped = False

    def __init__(
        self,
        store: Any,
        groups: str | Iterable[str],
        handle: Any,
        *,
        owner: str | None = None,
        for_s: float = 30.0,
        concurrency: int = 1,
        wait_s: float = 2.0,
        retry_s: float = 1.0,
        most_retry_s: float = 300.0,
        quarantine: str = "/quarantine",
        dice: Dice | None = None,
    ) -> None:
        names = (groups,) if isinstance(groups, str) else tuple(groups)
        named = owner if owner is not None else f"worker-{uuid4().hex[:16]}"
        retry = Pauses(retry_s, most_retry_s)
        self._terms = Terms(names, named, for_s, wait_s, concurrency, retry, quarantine)
        self._store, self._handler = store, handle
        self._dice = dice or random.Random().random

    def __repr__(self) -> str:
        shift = self._shift
        counts = f"done={shift.done} failed={shift.failed} lost={shift.lost}" if shift is not None else "not running"
        return f"<{type(self).__name__} {self._terms.owner} {', '.join(self._terms.groups)} {counts}>"

    @property
    def owner(self) -> str:
        """The name under which it owns tasks; each of several hands has `/1`, `/2` … behind it."""
        return self._terms.owner

    @property
    def done(self) -> int:
        """How many tasks it has done."""
        return self._shift.done if self._shift is not None else 0

    @property
    def failed(self) -> int:
        """How many times its handler has failed."""
        return self._shift.failed if self._shift is not None else 0

    @property
    def lost(self) -> int:
        """How many tasks it has lost, or gave back, before what became of them was recorded."""
        return self._shift.lost if self._shift is not None else 0

    def stop(self, timeout_s: float | None = None) -> None:
        """Claim nothing more, finish what is in hand, and end. Any thread may call it, and a signal handler: it does not wait.

        What is not finished `timeout_s` seconds from now is given back, and what the handler makes of it later is dropped;
        so it is at once when `stop` is called again.
        """
        self._stopped = True
        if self._shift is not None:
            self._shift.stop(timeout_s)

    def _begins(self, shift: Shift[F]) -> Shift[F]:
        if self._shift is not None:
            raise BadWorker("A worker runs once. Make another one.")
        self._shift = shift
        if self._stopped:
            shift.stop(None)
        return shift


class Worker(_Worker[threading.Event]):
    """Claims tasks from some groups and calls `handle` for each, in `concurrency` threads, until it is stopped.

    `handle` gets a HeldTask. When it returns, its task is deleted, together with what its Outcome says, if it returns
    one: all of it or nothing, and only if the task is still the worker's. While it works, the claim of `for_s` seconds is
    renewed at a third of it from a daemon thread; when the task is lost all the same, its `lost` is set, and what the
    handler makes of it is dropped.

    When it raises, the task is released with the error, to be tried again after `retry_s` seconds, twice as long each
    time up to `most_retry_s`; the store moves it to quarantine after its `most_attempts`. Raising Quarantine moves it there
    at once. A handler may run more than once for a task, but its outcome is recorded once.

    A store that is busy or cannot be reached is asked again after a while. `run` raises what does not pass: StoreClosed,
    Fenced, or an UpdateError for a claim that no store would grant. An `owner` is nobody else's; by default it is drawn.
    """

    def __init__(self, store: BlockingStore, groups: str | Iterable[str], handle: Handler, **options: Any) -> None:
        super().__init__(store, groups, handle, **options)
        self._thread: threading.Thread | None = None
        self._ended_by: BaseException | None = None

    def run(self) -> None:
        """Work until it is stopped. Ctrl-C gives back what is in hand. Raises what ended it otherwise."""
        handler = self._handler

        async def handle(held: HeldTask) -> Outcome | None:
            return _checked(handler(held))

        store = _Awaitable(self._store)
        shift = Shift(ThreadsPort(), store, self._terms, handle, _cannot, threading.Event, self._dice)
        drive(self._begins(shift).run())

    def start(self) -> Self:
        """Run in a thread of its own. `join` tells how it ended."""
        self._thread = threading.Thread(target=self._run, name=f"slotkeeper-{self.owner}", daemon=True)
        self._thread.start()
        return self

    def join(self) -> None:
        """Wait until it has ended. Raises what ended it, unless it was stopped."""
        if self._thread is not None:
            self._thread.join()
            if self._ended_by is not None:
                raise self._ended_by

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop(0.0 if error is not None else None)
        try:
            self.join()
        except Exception as problem:
            if error is None:
                raise
            error.add_note(f"and the worker ended with: {problem}")

    def _run(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self._ended_by = error


class AsyncWorker(_Worker[asyncio.Event]):
    """As `Worker`, in tasks of one asyncio loop: `handle` is awaited, and cancelled when its task is given back."""

    def __init__(self, store: Store, groups: str | Iterable[str], handle: AsyncHandler, **options: Any) -> None:
        super().__init__(store, groups, handle, **options)
        self._task: asyncio.Task[None] | None = None
        self._handling: set[asyncio.Task[Outcome | None]] = set()

    async def run(self) -> None:
        """See Worker.run. Cancelling it gives back what is in hand."""
        port = LoopPort()
        shift = Shift(port, self._store, self._terms, self._handle, self._interrupt, asyncio.Event, self._dice)
        await self._begins(shift).run()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop(0.0 if error is not None else None)
        if self._task is not None:
            try:
                await self._task
            except Exception as problem:
                if error is None:
                    raise
                error.add_note(f"and the worker ended with: {problem}")

    async def _handle(self, held: AsyncHeldTask) -> Outcome | None:
        task = asyncio.ensure_future(_awaited(self._handler(held)))
        self._handling.add(task)
        try:
            await asyncio.wait({task})
            if task.cancelled():
                raise HandlerCancelled
            return _checked(task.result())
        finally:
            self._handling.discard(task)
            task.cancel()

    def _interrupt(self) -> bool:
        for task in list(self._handling):
            task.cancel()
        return True


class HandlerCancelled(Exception):
    """The handler was cancelled."""

    def __str__(self) -> str:
        return str(self.__doc__)


class _Awaitable:
    """A store that blocks, for a core that awaits and never suspends."""

    def __init__(self, store: BlockingStore) -> None:
        self._store = store

    async def claim(self, owner: str, groups: str | Iterable[str], for_s: float, *, wait_s: float = 0.0) -> Task | None:
        return self._store.claim(owner, groups, for_s, wait_s=wait_s)

    async def update(
        self, owner: str, *, adds: Iterable[Add] = (), changes: Iterable[Change] = (), deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> list[Task]:  # fmt: skip
        return self._store.update(owner, adds=adds, changes=changes, deletes=deletes, depends=depends)

    async def renew(self, owner: str, task: Task | int, for_s: float) -> Task:
        return self._store.renew(owner, task, for_s)

    async def release(self, owner: str, task: Task | int, *, after_s: float = 0.0, error: str | None = None) -> Task:
        return self._store.release(owner, task, after_s=after_s, error=error)

    async def task(self, task_id: int) -> Task | None:
        return self._store.task(task_id)

    async def group(self, name: str, limit: int | None = None, *, owned: bool = False) -> list[Task]:
        return self._store.group(name, limit, owned=owned)


async def _awaited(outcome: Awaitable[Outcome | None]) -> Outcome | None:
    return await outcome


def _checked(outcome: object) -> Outcome | None:
    """Refuse what a handler may have returned by mistake: it would be lost without a word."""
    if outcome is None or isinstance(outcome, Outcome):
        return outcome
    raise TypeError(f"a handler returns None or an Outcome, not {outcome!r:.80}")


def _cannot() -> bool:
    """Interrupt no thread: it cannot be done."""
    return False
