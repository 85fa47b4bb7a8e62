"""A mutex among the tasks of one thread: a loop's, or a schedule's. Between two waits a task is alone, so a flag will do."""

from __future__ import annotations


class Turn:
    """Keeps tasks apart. See port.Mutex."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = False

    def take(self) -> bool:
        """Take it and tell so, or tell that some task has it."""
        taken, self._taken = self._taken, True
        return not taken

    def give(self) -> None:
        """Let another task take it."""
        self._taken = False
