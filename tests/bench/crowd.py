"""Many who do the same until a window of time is over; what ends within the window counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

T = TypeVar("T")
Readings = dict[str, float]
WARM_SHARE = 0.25


class NothingCounted(Exception):
    """Nothing ended within the window: measure for longer."""


@dataclass(frozen=True, slots=True)
class Window:
    """When counting begins and ends, on the monotonic clock, which all processes of a host share."""

    begins_at: float
    ends_at: float

    @classmethod
    def opening(cls, seconds: float, *, in_s: float = 0.0) -> Window:
        """Open a window of so many seconds after a warming up, for those who start `in_s` seconds from now."""
        begins_at = monotonic() + in_s + max(0.05, seconds * WARM_SHARE)
        return cls(begins_at, begins_at + seconds)

    @property
    def seconds(self) -> float:
        """How long it is open."""
        return self.ends_at - self.begins_at

    @property
    def over(self) -> bool:
        """Tell whether it has closed."""
        return monotonic() >= self.ends_at

    @property
    def counts(self) -> bool:
        """Tell whether what ends now counts."""
        return self.begins_at <= monotonic() < self.ends_at


def counted(step: Callable[[], object], window: Window) -> int:
    """Repeat a step until the window is over."""
    done = 0
    while not window.over:
        step()
        done += window.counts
    return done


async def counted_in_task(step: Callable[[], Awaitable[object]], window: Window) -> int:
    """Repeat a step of a task until the window is over."""
    done = 0
    while not window.over:
        await step()
        done += window.counts
    return done


def timed(step: Callable[[], object], window: Window, *, between: Callable[[], object] = lambda: None) -> list[float]:
    """Repeat a step until the window is over and return how many ms each took; `between` is not timed."""
    took = []
    while not window.over:
        began_at = monotonic()
        step()
        ms = (monotonic() - began_at) * 1000
        if window.counts:
            took.append(ms)
        between()
    return took


def in_threads(count: int, work: Callable[[int], T]) -> list[T]:
    """Let so many threads work at once, and return what each made."""
    with ThreadPoolExecutor(count) as pool:
        return [each.result() for each in [pool.submit(work, number) for number in range(count)]]


async def in_tasks(count: int, work: Callable[[int], Awaitable[T]]) -> list[T]:
    """Let so many tasks of this loop work at once, and return what each made."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_awaited(work(number))) for number in range(count)]
    return [task.result() for task in tasks]


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def percentile(values: list[float], percent: float) -> float:
    """Return the value that so many percent of the values do not exceed. Raises NothingCounted where there is none."""
    if not values:
        raise NothingCounted(NothingCounted.__doc__)
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def spread(took_ms: list[float]) -> Readings:
    """Return p50 and p99. Raises NothingCounted."""
    return {"p50": percentile(took_ms, 50), "p99": percentile(took_ms, 99)}
