"""Stores for the seat's behaviours: each of them runs in the simulator's store, in SQLite and in Cassandra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from eventually import until
from lockcluster import Cluster
from lockseats import Bench, HandPort

from slotkeeper import schema
from slotkeeper.database import BlockingPort, Store
from slotkeeper.database.simulated import SimulatedStore
from slotkeeper.database.sqlite import SqliteStore, wall_ms


@pytest.fixture(params=["simulated", "sqlite", "cassandra"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A cluster of its own, in a store of any kind."""
    cluster = f"c-{uuid4()}"
    if request.param == "cassandra":
        store: Store = request.getfixturevalue("cassandra_store")
        yield Bench(store, cluster, lambda: BlockingPort(store), until)
        return
    clock = [wall_ms()]

    def passes(holds: Callable[[], bool]) -> None:
        for _ in range(1000):
            if holds():
                return
            clock[0] += 50
        raise AssertionError(f"{holds} did not come about")

    moved = SqliteStore(":memory:", clock=lambda: clock[0]) if request.param == "sqlite" else None
    if moved is not None:
        schema.setup(moved)
    store = moved or SimulatedStore(clock=lambda: clock[0] / 1000)
    yield Bench(store, cluster, lambda: HandPort(store, clock), passes)
    store.close()


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., Cluster]]:
    """A way to have clusters without nodes."""
    made: list[Cluster] = []

    def make(*how: Any, **options: Any) -> Cluster:
        made.append(Cluster(*how, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture(params=["simulated", "sqlite"])
def empty(request: pytest.FixtureRequest, make_cluster: Callable[..., Cluster]) -> Cluster:
    """A cluster without nodes, in either store."""
    return make_cluster(request.param)


@pytest.fixture
def cluster(empty: Cluster) -> Cluster:
    """Three nodes, one of which speaks."""
    empty.start("a", "b", "c")
    empty.granting()
    return empty
