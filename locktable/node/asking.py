"""A question to another node that its asker may stop waiting for: the speaker can change while one waits in its line."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import LockError
from .messages import Answer, Message
from .port import Port


class Asked:
    """A question on its way. `unheard` is given the answer when the asker has left before it came."""

    def __init__(self, port: Port, unheard: Callable[[Answer], None]) -> None:
        self._port, self._unheard = port, unheard
        self._arrived = port.event()
        self._answer: Answer | None = None
        self._error: LockError | None = None
        self._has_left = False

    async def answer(
        self, address: str, message: Message, timeout_s: float, *, goes_on: Callable[[], bool], beat_s: float
    ) -> Answer | None:
        """Ask, and return the answer; None once the question goes on no more. Raises Unreachable."""
        self._port.begin(self._ask(address, message, timeout_s))
        try:
            while not await self._arrived.wait(beat_s):
                if not goes_on():
                    return None
        finally:
            self._has_left = True
        if self._error is not None:
            raise self._error
        return self._answer

    async def _ask(self, address: str, message: Message, timeout_s: float) -> None:
        try:
            self._answer = await self._port.ask(address, message, timeout_s)
        except LockError as error:
            self._error = error
        if self._has_left and self._answer is not None:
            self._unheard(self._answer)
        self._arrived.set()
