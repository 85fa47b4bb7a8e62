"""The floor: one conditional batch an operation, each thread on a token of its own in one partition, and no think time.

The batches are those that a grant and a release are without group commit. On Cassandra they go through the plain driver, set
up as well as it can be, and not through our store; the embedded store has no driver but itself.
"""

from __future__ import annotations

import itertools
import random
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from cassandra import ConsistencyLevel, DriverException, OperationTimedOut, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, TokenAwarePolicy
from cassandra.query import BatchStatement, dict_factory

from slotkeeper.database import (
    Applied,
    Batch,
    CassandraSettings,
    Key,
    Store,
    Value,
    delete,
    insert,
    open_store,
    parse,
    update,
)
from slotkeeper.owner import FREE, NONE
from slotkeeper.semaphore.rows import NO_TICKET, OWNER, QUEUE, QUEUE_KEY, TOKEN, TOKENS, owner_key, token_key

from .crowd import Readings, Window, in_threads, spread, timed
from .semaphores import owner

NOT_SAID = (OperationTimedOut, RequestExecutionException, DriverException)
Commit = Callable[["Slot"], None]

ROW = "domain_id = ? AND semaphore_name = ? AND bucket = ? AND type = ? AND token_id = ? AND owner_id = ?"
TEXTS = {
    "first": f"UPDATE semaphore_tokens SET holder = ?, updated_time = ? WHERE {ROW} "
    "IF holder IN (?, null) AND updated_time = null",
    "take": f"UPDATE semaphore_tokens SET holder = ?, updated_time = ? WHERE {ROW} "
    "IF holder IN (?, null) AND updated_time = ?",
    "give": f"UPDATE semaphore_tokens SET holder = ?, updated_time = ? WHERE {ROW} IF holder = ? AND updated_time = ?",
    "owner": "INSERT INTO semaphore_tokens (domain_id, semaphore_name, bucket, type, token_id, owner_id, held_token, "
    "updated_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS",
    "gone": f"DELETE FROM semaphore_tokens WHERE {ROW}",
    "queue": f"UPDATE semaphore_tokens SET holder = ? WHERE {ROW} IF holder IN (?, null)",
    "mark": f"UPDATE semaphore_tokens SET holder = ?, held_token = ? WHERE {ROW} IF holder IN (?, null)",
}


class Slot:
    """One thread's token, as the thread knows it. `again` gives it another one, where the fate of this one is unknown."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self.lost = -1
        self.again()

    def again(self) -> None:
        """Go on with another token."""
        self.number, self.version, self.held = next(self._numbers), 0, False
        self.owner_id = str(owner(self.number))
        self.lost += 1

    def moved(self) -> None:
        """Note that the batch applied."""
        self.version, self.held = self.version + 1, not self.held


def floor(url: str, seconds: float, *, threads: int, pause_s: tuple[float, float] = (0.0, 0.0)) -> Readings:
    """Return cycles a second, and p50 and p99 of one transaction in ms. `lost` is how many had no known outcome.

    After each transaction a thread pauses for a while between the two of `pause_s`.
    """
    settings = parse(url)
    open_floor = cassandra_floor if isinstance(settings, CassandraSettings) else sqlite_floor
    numbers = itertools.count(1)
    slots = [Slot(numbers) for _ in range(threads)]

    def pause() -> None:
        if pause_s[1]:
            time.sleep(random.uniform(*pause_s))

    with open_floor(url) as commit:
        window = Window.opening(seconds)
        took = in_threads(threads, lambda number: timed(lambda: commit(slots[number]), window, between=pause))
    together = list(itertools.chain.from_iterable(took))
    return {
        "cycles": len(together) / 2 / window.seconds,
        "transactions": len(together) / window.seconds,
        "lost": float(sum(slot.lost for slot in slots)),
        **spread(together),
    }


@contextmanager
def cassandra_floor(url: str) -> Iterator[Commit]:
    """Connect with the plain driver; what it yields sends the next transaction of a slot and waits for it."""
    settings = parse(url)
    assert isinstance(settings, CassandraSettings)
    cluster = Cluster(
        settings.contact_points(),
        port=settings.port,
        protocol_version=4,
        connect_timeout=settings.connect_timeout_s,
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        execution_profiles={EXEC_PROFILE_DEFAULT: _profile(settings)},
        monitor_reporting_enabled=False,
    )
    try:
        yield _RawSender(cluster.connect(settings.keyspace)).commit
    finally:
        cluster.shutdown()


def _profile(settings: CassandraSettings) -> ExecutionProfile:
    routing = TokenAwarePolicy(DCAwareRoundRobinPolicy(settings.local_dc or ""), shuffle_replicas=False)
    return ExecutionProfile(
        load_balancing_policy=routing,
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=settings.request_timeout_s,
        row_factory=dict_factory,
    )


class _RawSender:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._texts = {name: session.prepare(text) for name, text in TEXTS.items()}
        self._partition = (uuid4(), "floor", 0)

    def commit(self, slot: Slot) -> None:
        """Grant the slot's token to its owner, or release it."""
        batch = BatchStatement()
        for name, *values in self._release(slot) if slot.held else self._grant(slot):
            batch.add(self._texts[name].bind(values))
        try:
            (row, *_) = self._session.execute(batch)
        except NOT_SAID:
            slot.again()
            return
        if not row["[applied]"]:
            raise AssertionError(f"nobody else writes this slot's rows, and yet they refuse: {row}")
        slot.moved()

    def _grant(self, slot: Slot) -> Iterator[tuple[Any, ...]]:
        owner_id, partition, version = slot.owner_id, self._partition, slot.version
        key = (*partition, *token_key(slot.number))
        if version == 0:
            yield "first", owner_id, 1, *key, FREE
        else:
            yield "take", owner_id, version + 1, *key, FREE, version
        yield "owner", *partition, OWNER, -1, owner_id, slot.number, version + 1
        yield "queue", NO_TICKET, *partition, *QUEUE_KEY, NO_TICKET

    def _release(self, slot: Slot) -> Iterator[tuple[Any, ...]]:
        owner_id, partition, version = slot.owner_id, self._partition, slot.version
        yield "give", FREE, version + 1, *partition, TOKEN, slot.number, NONE, owner_id, version
        yield "gone", *partition, *owner_key(owner_id)
        yield "mark", NO_TICKET, version, *partition, QUEUE, 0, NONE, NO_TICKET


@contextmanager
def sqlite_floor(url: str) -> Iterator[Commit]:
    """Open the embedded store; what it yields commits the next transaction of a slot."""
    store = open_store(url)
    try:
        partition = (uuid4(), "floor", 0)
        yield lambda slot: _committed(store, partition, slot)
    finally:
        store.close()


def _committed(store: Store, partition: Key, slot: Slot) -> None:
    outcome = store.commit(_release_batch(partition, slot) if slot.held else _grant_batch(partition, slot))
    if not isinstance(outcome, Applied):
        raise AssertionError(f"nobody else writes this slot's rows, and yet: {outcome}")
    slot.moved()


def _grant_batch(partition: Key, slot: Slot) -> Batch:
    version = slot.version + 1
    free = {"holder": (FREE, None), "updated_time": (slot.version or None,)}
    writes = (
        update(token_key(slot.number), {"holder": slot.owner_id, "updated_time": version}, expect=free),
        insert(owner_key(slot.owner_id), {"held_token": slot.number, "updated_time": version}, absent=True),
        update(QUEUE_KEY, {"holder": NO_TICKET}, expect={"holder": (NO_TICKET, None)}),
    )
    return Batch(TOKENS, partition, writes)


def _release_batch(partition: Key, slot: Slot) -> Batch:
    held: Mapping[str, tuple[Value, ...]] = {"holder": (slot.owner_id,), "updated_time": (slot.version,)}
    queue: Mapping[str, Value] = {"holder": NO_TICKET, "held_token": slot.version}
    writes = (
        update(token_key(slot.number), {"holder": FREE, "updated_time": slot.version + 1}, expect=held),
        delete(owner_key(slot.owner_id)),
        update(QUEUE_KEY, queue, expect={"holder": (NO_TICKET, None)}),
    )
    return Batch(TOKENS, partition, writes)
