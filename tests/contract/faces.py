"""The two ports with what runs a coroutine over them, so that a behaviour is written once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from slotkeeper.database import AsyncioPort, BlockingPort, Port, Store, drive

T = TypeVar("T")


class Run(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, core: Coroutine[Any, Any, T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class Face:
    """A kind of port, and the way to run a coroutine over one."""

    port_over: Callable[[Store], Port]
    run: Run


@contextmanager
def blocking_face() -> Iterator[Face]:
    """Give the face of threads: no loop runs."""
    yield Face(BlockingPort, drive)


@contextmanager
def asyncio_face() -> Iterator[Face]:
    """Give the face of one asyncio loop, which lives as long as the fixture."""
    with asyncio.Runner() as runner:
        yield Face(AsyncioPort, runner.run)


FACES = {"blocking": blocking_face, "asyncio": asyncio_face}
