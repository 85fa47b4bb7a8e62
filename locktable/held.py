"""The locks that a node's own clients were granted: what it tells whoever rebuilds the table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from .leases import Leases, by_id
from .lock import Lock


class Held:
    """Locks by name and id, so that two locks of one name, granted apart, are both told. `now` is the clock they count on."""

    def __init__(self, now: Callable[[], float], *, guard: AbstractContextManager[object] | None = None) -> None:
        self._now, self._guard = now, guard or nullcontext()
        self._locks = Leases(by_id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self._locks)} locks>"

    def add(self, lock: Lock) -> None:
        """Add a lock, or a renewal of it. A copy that ends earlier than what is known changes nothing: it came late."""
        with self._guard:
            self._locks.lapsed(self._now())
            known = self._locks.get(by_id(lock))
            if known is None or lock.until >= known.until:
                self._locks.put(lock)

    def remove(self, name: str, lock_id: str) -> Lock | None:
        """Remove a lock and return it. None: no lock of this name has this id."""
        with self._guard:
            self._locks.lapsed(self._now())
            return self._locks.pop((name, lock_id))

    def let_go(self, name: str, lock_id: str = "", request: str = "") -> None:
        """Remove a lock, by its id or its request's."""
        if lock_id:
            self.remove(name, lock_id)
        if request:
            with self._guard:
                for lock in [lock for lock in self._locks if (lock.name, lock.request) == (name, request)]:
                    self._locks.pop(by_id(lock))

    def has(self, lock: Lock) -> bool:
        """Tell whether a lock is known, for as long as this copy of it lasts."""
        with self._guard:
            known = self._locks.get(by_id(lock))
            return known is not None and known.until >= lock.until

    def locks(self) -> list[Lock]:
        """Return the locks whose leases have not ended, by name."""
        with self._guard:
            self._locks.lapsed(self._now())
            return self._locks.ordered()
