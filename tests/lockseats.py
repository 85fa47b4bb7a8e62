"""The speaker's seat on any store: seats of one cluster, its rows, and time that passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slotkeeper.database import BlockingPort, Slice, Store
from slotkeeper.locktable.node import Peer, Terms
from slotkeeper.locktable.node.rows import CLUSTERS
from slotkeeper.locktable.node.seat import Seat

BRIEF = Terms(speaker_lease_s=3, margin_s=0.2)


class HandPort(BlockingPort):
    """A port on which sleeping moves the clock, the store's with it."""

    def __init__(self, store: Store, clock: list[int]) -> None:
        super().__init__(store)
        self._clock = clock

    async def sleep(self, seconds: float) -> None:
        """Move the clock."""
        self._clock[0] += round(seconds * 1000)

    def now(self) -> float:
        """Return the moved time."""
        return self._clock[0] / 1000


@dataclass
class Bench:
    """A store, and seats of one cluster in it. `passes` lets time pass until something holds."""

    store: Store
    cluster: str
    port: Callable[[], BlockingPort]
    passes: Callable[[Callable[[], bool]], None]

    def seat(self, node: str, terms: Terms = BRIEF) -> Seat:
        """Return a node's seat."""
        return Seat(self.port(), self.cluster, Peer(node, f"i-{node}", f"http://{node}"), terms)

    def rows(self) -> dict[object, dict[str, object]]:
        """Read the cluster's rows by kind and instance."""
        found = self.store.read(CLUSTERS, (self.cluster,), (Slice(),), serial=True)
        return {(row["kind"], row["instance"]): dict(row) for row in found}
