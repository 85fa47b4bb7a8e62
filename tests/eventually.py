"""Waiting for what comes about by itself: bounded, and as short as it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

BOUND_S = 20.0
LOOK_S = 0.002


def until(holds: Callable[[], object], *, bound_s: float = BOUND_S) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + bound_s
    while not holds():
        assert time.monotonic() < deadline, f"{holds} did not come about within {bound_s:g} s"
        time.sleep(LOOK_S)


async def soon(holds: Callable[[], object], *, bound_s: float = BOUND_S) -> None:
    """Wait until something holds, and let the loop go on meanwhile."""
    deadline = time.monotonic() + bound_s
    while not holds():
        assert time.monotonic() < deadline, f"{holds} did not come about within {bound_s:g} s"
        await asyncio.sleep(LOOK_S)
