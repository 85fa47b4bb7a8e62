"""The port: all that the core may wait for. Faces choose one; the core knows none."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from .batch import Batch, Outcome, Slice
from .table import Key, Row, Table

T_co = TypeVar("T_co", covariant=True)


class Pending(Protocol[T_co]):
    """A request on its way. It belongs to whoever keeps it, not to who waits for it: a waiter may leave, another come."""

    def done(self) -> bool: ...

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the answer, at most `timeout_s` seconds. Tell whether it is there."""
        ...

    def result(self) -> T_co:
        """Return the answer, or raise its error. Only once it is there."""
        ...


class Mutex(Protocol):
    """Keeps threads apart, where there are any."""

    def take(self) -> bool:
        """Take it and tell so, or tell that somebody has it. Never waits."""
        ...

    def give(self) -> None: ...


class Event(Protocol):
    """A flag that one party sets and others wait for. `set` may be called from any thread."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

    async def wait(self, timeout_s: float) -> bool:
        """Wait until the flag is set, at most `timeout_s` seconds. Tell whether it is."""
        ...


class Port(Protocol):
    """A database and a clock, as the core sees them. Of many who wait, `wakes_at_once` are best woken at a time."""

    wakes_at_once: int

    async def read(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """Return the rows of some slices of one partition, slice after slice; the slices are not one snapshot.

        `serial` finishes writes that are decided but not yet visible: what it does not show was not decided when it began.
        Without it, what is shown is decided, and what is not shown proves nothing.
        Raises Unavailable when there is no answer: a read changes nothing, so it may be repeated.
        """
        ...

    async def commit(self, batch: Batch) -> Outcome:
        """Apply a batch wholly or not at all, or say that nobody knows.

        Raises Unavailable, or another DatabaseError, when it certainly did not apply and never will.
        """
        ...

    def begin_read(
        self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool
    ) -> Pending[list[Row]]:
        """Begin what `read` does, without waiting for it."""
        ...

    def begin_commit(self, batch: Batch) -> Pending[Outcome]:
        """Begin what `commit` does, without waiting for it."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def give_way(self) -> None:
        """Let others who are ready go on first, for the blink of an eye."""
        ...

    def now(self) -> float:
        """Return seconds on a clock that only goes forward. Deadlines are counted on it."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch on this host's clock. Versions grow from it, nothing is decided by it."""
        ...

    def event(self) -> Event: ...

    def mutex(self) -> Mutex: ...

    def finish(self, core: Coroutine[Any, Any, None]) -> None:
        """Run a clean-up to its end, although its caller is cancelled or interrupted."""
        ...
