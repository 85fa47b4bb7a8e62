"""Those who have their answer, and are woken a few at a time: whoever comes back for more wakes the next one.

Threads that are all woken at once stand in line for the interpreter, and are woken again and again while they do.
"""

from __future__ import annotations

from collections import deque

from .call import Call


class Answered:
    """The calls of a bucket that are settled, and whose callers sleep yet. Any thread may wake some."""

    def __init__(self, at_once: int) -> None:
        self._calls: deque[Call] = deque()
        self._at_once = at_once

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, call: Call) -> None:
        """Let a caller be woken, sooner or later."""
        self._calls.append(call)

    def wake_one(self) -> None:
        """Wake the next one, if there is one: another has come back."""
        if self._calls:
            self._wake(1)

    def wake_some(self) -> None:
        """Wake as many as go well together."""
        self._wake(self._at_once)

    def wake_all(self) -> None:
        """Wake all of them: nobody may be there to do so for a while."""
        self._wake(len(self._calls))

    def _wake(self, most: int) -> None:
        for _ in range(most):
            try:
                self._calls.popleft().event.set()
            except IndexError:  # another thread was faster
                return
