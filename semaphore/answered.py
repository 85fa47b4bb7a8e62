"""Those who have their answer, and are woken a few at a time: whoever comes back for more wakes the next one.

Threads that are all woken at once stand in line for the interpreter, and are woken again and again while they do. They
come back within a moment, and the next batch waits that moment for them, so that they leave together again.
"""

from __future__ import annotations

from collections import deque

from ..database import Port
from .call import Call
from .inbox import Inbox

GATHER_SHARE = 0.25  # of the last batch's trip, at most, is spent on waiting for company


class Answered:
    """The calls of a bucket that are settled, and whose callers sleep yet. Any thread may wake some."""

    def __init__(self, port: Port, inbox: Inbox) -> None:
        self._port, self._inbox = port, inbox
        self._calls: deque[Call] = deque()
        self._company = 0  # how many may come before the next batch leaves
        self._trip_s = 0.0  # how long the last one took

    def add(self, call: Call) -> None:
        """Let a caller be woken, sooner or later."""
        self._calls.append(call)

    def wake_one(self) -> None:
        """Wake the next one, if there is one: another has come back."""
        self._wake(1)

    def wake_some(self) -> None:
        """Wake as many as go well together."""
        self._wake(self._port.wakes_at_once)

    def wake_all(self) -> None:
        """Wake all of them: nobody may be there to do so for a while."""
        self._wake(len(self._calls))

    async def wake_until_back(self) -> None:
        """Wake some, and more until one has come back, who leads and wakes the others."""
        self.wake_some()
        while self._calls and not self._inbox:
            await self._port.give_way()
            self.wake_some()

    def expect(self, company: int, trip_s: float) -> None:
        """Note how many a batch has answered, those who came meanwhile included, and how long it took."""
        self._company, self._trip_s = company, trip_s

    async def gather(self) -> None:
        """Wait a moment for those whom the last batch answered, and wake more of them where none comes back.

        A lone caller waits for none.
        """
        until = self._port.now() + self._trip_s * GATHER_SHARE
        self.wake_some()
        while (here := len(self._inbox)) < self._company and (self._calls or self._port.now() < until):
            await self._port.give_way()
            if len(self._inbox) == here:
                if not self._calls:
                    break
                self.wake_some()
        self.wake_all()

    def _wake(self, most: int) -> None:
        for _ in range(min(most, len(self._calls))):
            try:
                self._calls.popleft().event.set()
            except IndexError:  # another thread was faster
                return
