"""The two faces: `TaskClient` for threads, `AsyncTaskClient` for asyncio. A store's names and errors, over HTTP."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterable
from types import TracebackType
from typing import Self, TypeVar

from ...database import drive
from ...web.address import Address
from ...web.caller import Caller, bearer
from ...web.callers import LoopCaller, ThreadsCaller
from ..errors import StoreClosed
from ..operations import Claim, Release, Renew, Update
from ..stats import Stats
from ..store import TIMEOUT_S, duration_ns, id_of, names_of
from ..task import Add, Change, Task
from . import questions
from .core import Core
from .errors import ForkedClient
from .questions import Question

T = TypeVar("T")
URL = "http://127.0.0.1:8048"
LARGEST_ID = 2**63 - 1
MOST_IDS = 1_000  # in one path: a longer one may be refused on its way


def new_client_id() -> str:
    """Return a random 64-bit number, for a client that keeps it as its owner all its life."""
    return str(secrets.randbits(64))


class _Remote:
    """What both faces are given, and what they open."""

    def __init__(
        self, url: str = URL, *, token: str | None = None, tls_ca_file: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.address = Address.parse(url)
        if token is not None:
            bearer(token)
        self._token, self._tls_ca_file, self._timeout_s = token, tls_ca_file, timeout_s
        self._core: Core | None = None
        self._process = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address} {'open' if self.is_open else 'not open'}>"

    @property
    def is_open(self) -> bool:
        """Tell whether the client is open."""
        return self._core is not None

    def _begin(self, caller: Caller) -> None:
        dice, new_key = random.Random().random, lambda: secrets.token_hex(16)
        self._core = Core(caller, timeout_s=self._timeout_s, dice=dice, new_key=new_key)
        self._process = os.getpid()

    def _opened(self) -> Core:
        if self._core is None:
            raise StoreClosed
        if self._process != os.getpid():
            raise ForkedClient
        return self._core

    def _key(self) -> str:
        return self._opened().new_key()

    async def _ask(self, question: Question[T]) -> T:
        return await self._opened().ask(question)

    async def _tasks(self, ids: Iterable[int]) -> list[Task | None]:
        core, wanted, found = self._opened(), tuple(ids), dict[int, Task]()
        possible = [task_id for task_id in wanted if 0 < task_id <= LARGEST_ID]
        for start in range(0, len(possible), MOST_IDS):
            some = await core.ask(questions.tasks(possible[start : start + MOST_IDS]))
            found.update((task.id, task) for task in some if task is not None)
        return [found.get(task_id) for task_id in wanted]

    async def _group(self, name: str, limit: int | None, owned: bool) -> list[Task]:
        try:
            question = questions.group(name, limit, owned=owned)
        except (UnicodeError, TypeError):  # no group can be called so
            self._opened()
            return []
        return await self._ask(question)

    async def _claim(self, op: Claim, wait_s: float) -> Task | None:
        return await self._opened().claim(op, wait_s)


class TaskClient(_Remote):
    """Tasks at a service, for threads: they may share one client. A forked child may not.

    It has the methods of a `TaskStore` and raises its errors. A change whose answer is lost is asked for again, under the same
    `Idempotency-Key`, until `timeout_s` seconds have passed; only then it raises OutcomeUnknown. Where nothing was sent in
    that time it raises ServiceUnreachable, which is a StoreBusy: nothing was changed.
    """

    _caller: ThreadsCaller

    def open(self) -> Self:
        """Prepare to ask. Raises BadTrust. Whether the service is there shows with the first call."""
        if self._core is None:
            self._caller = ThreadsCaller(self.address, token=self._token, tls_ca_file=self._tls_ca_file)
            self._begin(self._caller)
        return self

    def close(self) -> None:
        """Give up the connections: claims that wait raise StoreClosed. Safe to call twice."""
        core, self._core = self._core, None
        if core is not None and self._process == os.getpid():  # in a forked child they are the parent's
            drive(self._caller.close())

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def update(
        self,
        owner: str,
        *,
        adds: Iterable[Add] = (),
        changes: Iterable[Change] = (),
        deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> list[Task]:
        """See TaskStore.update."""
        op = Update(owner, tuple(adds), tuple(changes), tuple(deletes), tuple(depends))
        return drive(self._ask(questions.update(op, self._key())))

    def claim(
        self, owner: str, groups: str | Iterable[str], for_s: float, *, depends: Iterable[int] = (), wait_s: float = 0.0
    ) -> Task | None:
        """See TaskStore.claim. A long wait is asked for in slices, and between two of them others may come first."""
        return drive(self._claim(Claim(owner, names_of(groups), duration_ns(for_s), tuple(depends)), wait_s))

    def renew(self, owner: str, task: Task | int, for_s: float) -> Task:
        """See TaskStore.renew."""
        return drive(self._ask(questions.renew(Renew(owner, id_of(task), duration_ns(for_s)), self._key())))

    def release(self, owner: str, task: Task | int, *, after_s: float = 0.0, error: str | None = None) -> Task:
        """See TaskStore.release."""
        op = Release(owner, id_of(task), duration_ns(after_s), error)
        return drive(self._ask(questions.release(op, self._key())))

    def task(self, task_id: int) -> Task | None:
        """See TaskStore.task."""
        return self.tasks([task_id])[0]

    def tasks(self, ids: Iterable[int]) -> list[Task | None]:
        """See TaskStore.tasks. Beyond a thousand ids it is several looks."""
        return drive(self._tasks(ids))

    def every_task(self) -> list[Task]:
        """See TaskStore.every_task."""
        return drive(self._ask(questions.every_task()))

    def group(self, name: str, limit: int | None = None, *, owned: bool = False) -> list[Task]:
        """See TaskStore.group."""
        return drive(self._group(name, limit, owned))

    def groups(self) -> list[str]:
        """See TaskStore.groups."""
        return drive(self._ask(questions.groups()))

    def stats(self) -> Stats:
        """See TaskStore.stats."""
        return drive(self._ask(questions.stats()))

    def snapshot(self) -> None:
        """See TaskStore.snapshot."""
        drive(self._ask(questions.snapshot()))

    def flush(self) -> None:
        """See TaskStore.flush."""
        drive(self._ask(questions.flush()))


class AsyncTaskClient(_Remote):
    """Tasks at a service, for the tasks of one asyncio loop: they may share one client. As `TaskClient`, with `await`."""

    _caller: LoopCaller

    async def open(self) -> Self:
        """See TaskClient.open."""
        if self._core is None:
            caller = LoopCaller(self.address, token=self._token, tls_ca_file=self._tls_ca_file)
            await caller.open()
            self._caller = caller
            self._begin(caller)
        return self

    async def close(self) -> None:
        """See TaskClient.close."""
        core, self._core = self._core, None
        if core is not None and self._process == os.getpid():
            await self._caller.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def update(
        self,
        owner: str,
        *,
        adds: Iterable[Add] = (),
        changes: Iterable[Change] = (),
        deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> list[Task]:
        """See TaskStore.update."""
        op = Update(owner, tuple(adds), tuple(changes), tuple(deletes), tuple(depends))
        return await self._ask(questions.update(op, self._key()))

    async def claim(
        self, owner: str, groups: str | Iterable[str], for_s: float, *, depends: Iterable[int] = (), wait_s: float = 0.0
    ) -> Task | None:
        """See TaskClient.claim. Who is cancelled leaves the line; a task that was on its way comes back when its time ends."""
        return await self._claim(Claim(owner, names_of(groups), duration_ns(for_s), tuple(depends)), wait_s)

    async def renew(self, owner: str, task: Task | int, for_s: float) -> Task:
        """See TaskStore.renew."""
        return await self._ask(questions.renew(Renew(owner, id_of(task), duration_ns(for_s)), self._key()))

    async def release(self, owner: str, task: Task | int, *, after_s: float = 0.0, error: str | None = None) -> Task:
        """See TaskStore.release."""
        op = Release(owner, id_of(task), duration_ns(after_s), error)
        return await self._ask(questions.release(op, self._key()))

    async def task(self, task_id: int) -> Task | None:
        """See TaskStore.task."""
        return (await self.tasks([task_id]))[0]

    async def tasks(self, ids: Iterable[int]) -> list[Task | None]:
        """See TaskClient.tasks."""
        return await self._tasks(ids)

    async def every_task(self) -> list[Task]:
        """See TaskStore.every_task."""
        return await self._ask(questions.every_task())

    async def group(self, name: str, limit: int | None = None, *, owned: bool = False) -> list[Task]:
        """See TaskStore.group."""
        return await self._group(name, limit, owned)

    async def groups(self) -> list[str]:
        """See TaskStore.groups."""
        return await self._ask(questions.groups())

    async def stats(self) -> Stats:
        """See TaskStore.stats."""
        return await self._ask(questions.stats())

    async def snapshot(self) -> None:
        """See TaskStore.snapshot."""
        await self._ask(questions.snapshot())

    async def flush(self) -> None:
        """See TaskStore.flush."""
        await self._ask(questions.flush())
