"""What was released within the last ten minutes, the longest that any lease can last."""

from __future__ import annotations

from collections import OrderedDict

from .lock import MAX_LEASE_S


class Remembered:
    """Pairs of a lock's name and an id, each for ten minutes. Of more than `most`, the oldest are forgotten."""

    __slots__ = ("_most", "_until")

    def __init__(self, most: int) -> None:
        self._most = most
        self._until: OrderedDict[tuple[str, str], float] = (
            OrderedDict()
        )  # all last equally long: the first is the oldest

    def __len__(self) -> int:
        return len(self._until)

    def add(self, name: str, some_id: str, now: float) -> None:
        """Remember an id from now on."""
        key = name, some_id
        self._until[key] = now + MAX_LEASE_S
        self._until.move_to_end(key)
        if len(self._until) > self._most:
            self._until.popitem(last=False)

    def has(self, name: str, some_id: str, now: float) -> bool:
        """Tell whether an id is remembered."""
        return self._until.get((name, some_id), now) > now

    def prune(self, now: float) -> None:
        """Forget what is old."""
        while self._until and next(iter(self._until.values())) <= now:
            self._until.popitem(last=False)
