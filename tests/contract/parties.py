"""Clients whose calls go on while the test does something else: in threads, or as tasks of a loop in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any

from slotkeeper.database import Store
from slotkeeper.semaphore import AsyncClient, Client

BOUND_S = 30.0
THREADS = 64
Begin = Callable[..., "Future[Any]"]


class Party:
    """One client, as a process of its own would have it. Its methods are the client's, and `begin` does not wait for them."""

    def __init__(self, client: Client | AsyncClient, begin: Begin) -> None:
        self.client, self._begin = client, begin

    def begin(self, method: str, *values: Any, **named: Any) -> Future[Any]:
        """Begin a call of the client."""
        return self._begin(getattr(self.client, method), *values, **named)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *values, **named: self.begin(method, *values, **named).result(BOUND_S)

    def do(self, method: Callable[..., Any], *values: Any) -> Any:
        """Call a method of something that the client gave, a hold for one."""
        return self._begin(method, *values).result(BOUND_S)

    def within(self, body: Callable[[Any], object], *values: Any, **named: Any) -> None:
        """Run a body in a with statement of the client's `hold`."""
        run = _body_in_thread if isinstance(self.client, Client) else _body_in_task
        self._begin(run, self.client, body, values, named).result(BOUND_S)


class Parties:
    """Opens clients of one face, and closes them at the end."""

    def __init__(self, store: Store, kind: type[Client | AsyncClient], begin: Begin, stack: ExitStack) -> None:
        self.store, self._kind, self._begin, self._stack = store, kind, begin, stack
        self.most = 500 if kind is AsyncClient else THREADS - 4  # calls at once

    def __call__(self, **options: Any) -> Party:
        """Open another client."""
        party = Party(self._kind(options.pop("store", self.store), **options), self._begin)
        party.open()
        self._stack.callback(party.close)
        return party


@contextmanager
def in_threads(store: Store) -> Iterator[Parties]:
    """Give clients for threads."""
    with ThreadPoolExecutor(THREADS) as threads, ExitStack() as stack:
        yield Parties(store, Client, threads.submit, stack)


@contextmanager
def in_tasks(store: Store) -> Iterator[Parties]:
    """Give clients for the tasks of one loop."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="loop of the parties", daemon=True)
    thread.start()

    def begin(method: Callable[..., Any], *values: Any, **named: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(_called(method, values, named), loop)

    with ExitStack() as stack:
        stack.callback(_end, loop, thread)
        yield Parties(store, AsyncClient, begin, stack)


FACES = {"threads": in_threads, "tasks": in_tasks}


async def _called(method: Callable[..., Any], values: tuple[Any, ...], named: dict[str, Any]) -> Any:
    found = method(*values, **named)
    return await found if isinstance(found, Coroutine) else found


def _body_in_thread(client: Client, body: Callable[[Any], object], values: tuple[Any, ...], named: Any) -> None:
    with client.hold(*values, **named) as hold:
        body(hold)


async def _body_in_task(
    client: AsyncClient, body: Callable[[Any], object], values: tuple[Any, ...], named: Any
) -> None:
    async with client.hold(*values, **named) as hold:
        body(hold)


def _end(loop: asyncio.AbstractEventLoop, thread: Thread) -> None:
    asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(BOUND_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(BOUND_S)
    loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
