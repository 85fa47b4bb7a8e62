"""Those who wait for a task, in the order they came: a task that turns up goes to the first one that wants its group."""

from __future__ import annotations

from typing import cast

from .call import Call
from .operations import Claim
from .state import State


class Line:
    """Waiting claims. Only who has the engine's turn touches it.

    One of them, the `keeper`, keeps the time for all: it wakes up at `due_ns`, when the next task becomes available by itself.
    """

    __slots__ = ("by_group", "due_ns", "keeper")

    def __init__(self) -> None:
        self.by_group: dict[str, dict[Call, None]] = {}
        self.keeper: Call | None = None
        self.due_ns: int | None = None

    def __bool__(self) -> bool:
        return bool(self.by_group)

    def join(self, call: Call) -> None:
        """Let a claim stand in line. One that stood before gets its old place back."""
        call.standing = True
        for name in _groups(call):
            line = self.by_group.setdefault(name, {})
            line[call] = None
            if len(line) > 1 and call.number < max(other.number for other in line):
                self.by_group[name] = dict.fromkeys(sorted(line, key=lambda other: other.number))
        call.wake()  # it has another patience from now on

    def leave(self, call: Call) -> None:
        """Let a claim go. Does nothing for one that does not stand here."""
        call.standing = False
        for name in _groups(call):
            line = self.by_group.get(name, {})
            line.pop(call, None)
            if not line:
                self.by_group.pop(name, None)

    def next_due(self, state: State, now_ns: int) -> Call | None:
        """Return who is first in line for a group that has something."""
        due = [name for name in list(self.by_group) if (at := _first_at(state, name)) is not None and at <= now_ns]
        return min(filter(None, map(self._first, due)), key=lambda call: call.number, default=None)

    def calls(self) -> list[Call]:
        """Return everybody, in order."""
        return sorted({call for line in self.by_group.values() for call in line}, key=lambda call: call.number)

    def elect(self, state: State) -> None:
        """See to it that somebody keeps the time, and knows until when."""
        firsts = list(filter(None, map(self._first, list(self.by_group))))
        keeper = min(firsts, key=lambda call: call.number, default=None)
        times = [at for name in self.by_group if (at := _first_at(state, name)) is not None]
        due_ns = min(times, default=None)
        changed = keeper is not self.keeper or due_ns != self.due_ns
        self.keeper, self.due_ns = keeper, due_ns
        if changed and keeper is not None:
            keeper.wake()

    def _first(self, name: str) -> Call | None:
        """Return the first of a group's line whose caller is still there."""
        while (line := self.by_group.get(name)) is not None:
            call = next(iter(line))
            if not call.left:
                return call
            self.leave(call)
        return None


def _groups(call: Call) -> tuple[str, ...]:
    return cast("Claim", call.operation).groups


def _first_at(state: State, name: str) -> int | None:
    group = state.groups.get(name)
    return group.first_at_ns() if group is not None else None
