"""A product of either face behind plain methods, so that a behaviour is written once."""

from __future__ import annotations

import asyncio
from typing import Any

FACES = ("threads", "asyncio")


class EitherFace:
    """It has the methods of what it is over, and what the asyncio face awaits runs to its end."""

    def __init__(self, face: str, over: Any) -> None:
        self._over = over
        self._runner = asyncio.Runner() if face == "asyncio" else None

    def __getattr__(self, method: str) -> Any:
        bound = getattr(self._over, method)
        if self._runner is None or not callable(bound):
            return bound
        return lambda *values, **named: self.run(bound(*values, **named))

    def run(self, core: Any) -> Any:
        """Run what the asyncio face awaits."""
        assert self._runner is not None
        return self._runner.run(core)

    def end(self) -> None:
        """End its loop, if it has one."""
        if self._runner is not None:
            self._runner.close()
