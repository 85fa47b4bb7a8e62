"""The port: all that the core may wait for, beside its journal."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ..database import Event, Store
from ..database import Port as DatabasePort
from ..database.port import Mutex

T = TypeVar("T")


class Background(Protocol):
    """Something that runs beside its callers."""

    async def ended(self) -> None:
        """Wait until it has ended."""
        ...


class Port(Protocol):
    """Waiting, and work that blocks. A face chooses one; see `slotkeeper.database.Port` for what is the same there."""

    def now(self) -> float:
        """Return seconds on a clock that only goes forward. Deadlines are counted on it."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def event(self) -> Event: ...

    def mutex(self) -> Mutex: ...

    def finish(self, core: Coroutine[Any, Any, None]) -> None:
        """Run a clean-up to its end, although its caller is cancelled or interrupted."""
        ...

    def begin(self, core: Coroutine[Any, Any, None]) -> Background:
        """Run something beside the callers: in a thread, or as a task."""
        ...

    async def run(self, work: Callable[[], T]) -> T:
        """Do work that blocks, one after the other and none left out: one that is begun goes on when its waiter leaves."""
        ...

    async def aside(self, work: Callable[[], T]) -> T:
        """Do work that blocks for long, beside what `run` does."""
        ...

    def over(self, store: Store) -> DatabasePort:
        """Return a port of the same kind over a database."""
        ...

    async def close(self) -> None:
        """End what the port itself has running."""
        ...
