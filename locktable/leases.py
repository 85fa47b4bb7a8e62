"""Locks whose leases end: each is found by its key, and the next one to end is always at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from .lock import Lock

K = TypeVar("K", str, tuple[str, str])
SLACK = 64


def by_name(lock: Lock) -> str:
    """Return the key of a table, where a name has one lock."""
    return lock.name


def by_id(lock: Lock) -> tuple[str, str]:
    """Return the key where two locks of one name may be: granted by two speakers, apart."""
    return lock.name, lock.id


class Leases(Generic[K]):
    """Locks by key. A lock has one entry in the heap, at its end or before it; what was removed leaves with the next sweep."""

    __slots__ = ("_due", "_heap", "_key", "_locks")

    def __init__(self, key: Callable[[Lock], K], locks: Iterable[Lock] = ()) -> None:
        self._key: Callable[[Lock], K] = key
        self._locks: dict[K, Lock] = {}
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, K]] = []
        for lock in locks:
            self.put(lock)

    def __len__(self) -> int:
        return len(self._locks)

    def __iter__(self) -> Iterator[Lock]:
        return iter(self._locks.values())

    def __contains__(self, key: K) -> bool:
        return key in self._locks

    def get(self, key: K) -> Lock | None:
        """Return a lock, lapsed or not."""
        return self._locks.get(key)

    def put(self, lock: Lock) -> None:
        """Add a lock, or replace the one of its key."""
        key = self._key(lock)
        self._locks[key] = lock
        due = self._due.get(key)
        if due is None or due > lock.until:
            self._push(key, lock.until)

    def pop(self, key: K) -> Lock | None:
        """Remove a lock."""
        self._due.pop(key, None)
        return self._locks.pop(key, None)

    def lapsed(self, now: float) -> list[Lock]:
        """Remove the locks whose leases have ended, and return them, the first to end first."""
        found: list[Lock] = []
        while self._heap and self._heap[0][0] <= now:
            due, key = heappop(self._heap)
            if self._due.get(key) != due:
                continue  # removed since, or replaced
            lock = self._locks[key]
            if lock.has_lapsed(now):
                self.pop(key)
                found.append(lock)
            else:
                self._push(key, lock.until)  # renewed since
        return found

    def ordered(self) -> list[Lock]:
        """Return the locks by name."""
        return sorted(self, key=by_id)

    def _push(self, key: K, due: float) -> None:
        self._due[key] = due
        heappush(self._heap, (due, key))
        if len(self._heap) > 2 * len(self._due) + SLACK:
            self._heap = [(due, key) for key, due in self._due.items()]
            heapify(self._heap)
