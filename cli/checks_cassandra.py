"""What the doctor looks at on a Cassandra."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .checks import Check, Step, fail, ok, warn
from .exits import Exit
from .output import counted

if TYPE_CHECKING:
    from ..database.cassandra import CassandraStore
    from ..database.cassandra.store import Node

OLDEST = (4, 0)
# From these on, Paxos repairs itself under paxos_variant v2 and the known faults of lightweight transactions are mended.
RECOMMENDED = {(4, 1): 9, (5, 0): 4}
CLOCK_MS = 500
STRATEGY = "NetworkTopologyStrategy"


def cluster_steps(store: CassandraStore) -> list[Step]:
    """Return the checks of a cluster, on a session that has no keyspace yet."""
    return [
        ("driver", _driver),
        ("nodes", lambda: _nodes(store)),
        ("keyspace", lambda: _keyspace(store)),
    ]


def _driver() -> Iterator[Check]:
    """Look which loop serves the connections: the driver takes what it finds, and says nothing."""
    if "cassandra.io.libevwrapper" in sys.modules:
        yield ok("driver", "its connections are served by libev")
    else:
        fix = "install a wheel of cassandra-driver, which brings libev: without it every request takes longer"
        yield warn("driver", "its connections are not served by libev", fix)


def _nodes(store: CassandraStore) -> Iterator[Check]:
    _wait_for_connections(store)
    began_ms = time.time() * 1000
    nodes = store.nodes()
    ended_ms = time.time() * 1000
    yield from _all_up(store, nodes)
    for node in nodes:
        yield _release(node)
        yield _paxos(node)
        yield _clock(node, began_ms, ended_ms)


def _wait_for_connections(store: CassandraStore) -> None:
    """Wait until every node that is up answers: a session is there with its first connection, the others follow."""
    from ..database import Unavailable

    deadline = time.monotonic() + store.settings.connect_timeout_s
    while True:
        try:
            store.nodes()
            return
        except Unavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _all_up(store: CassandraStore, nodes: list[Node]) -> Iterator[Check]:
    here = store.settings.local_dc or nodes[0].data_center
    peers = store.query("SELECT data_center FROM system.peers")
    count = 1 + sum(peer["data_center"] == here for peer in peers)
    up = sum(node.data_center == here for node in nodes)
    message = f"{up} of {counted(count, 'node')} of {here} answer"
    if up >= count:
        yield ok("nodes", message)
    else:
        yield warn("nodes", message, "start the others: buckets whose majority is down cannot be used")


def _release(node: Node) -> Check:
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", node.release)
    major, minor, patch = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    message = f"{node.address} runs {node.release}"
    if (major, minor) < OLDEST:
        return fail("release", message, "update it: Cassandra 4.0 is the oldest that works", Exit.UNAVAILABLE)
    if (major, minor) == OLDEST or patch < RECOMMENDED.get((major, minor), 0):
        return warn("release", message, "update it to 4.1.9, 5.0.4 or newer")
    return ok("release", message)


def _paxos(node: Node) -> Check:
    message = f"{node.address} has paxos_variant {node.paxos_variant or 'v1 (it has no such setting)'}"
    if node.paxos_variant == "v2":
        return ok("paxos", message)
    fix = "set `paxos_variant: v2` in cassandra.yaml of every node and restart them one by one: half the round trips"
    return warn("paxos", message, fix)


def _clock(node: Node, began_ms: float, ended_ms: float) -> Check:
    """Compare a node's clock with ours in the middle of the time in which it answered."""
    apart_ms, half_ms = node.clock_ms - (began_ms + ended_ms) / 2, (ended_ms - began_ms) / 2
    message = f"{node.address} is {apart_ms:+.0f} ms from this host, give or take {half_ms:.0f}"
    if abs(apart_ms) - half_ms <= CLOCK_MS:
        return ok("clock", message)
    return warn(
        "clock",
        message,
        "let NTP or chrony keep both: times in tables mislead, and transactions get in each other's way",
    )


def _keyspace(store: CassandraStore) -> Iterator[Check]:
    from ..database import KeyspaceMissing, SettingsError
    from ..schema.keyspace import NOT_DURABLE, ONE_REPLICA, TWO_REPLICAS

    if not store.keyspace:
        raise SettingsError("The database URL names no keyspace: cassandra://HOST[:PORT]/KEYSPACE.")
    query = "SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = %s"
    rows = store.query(query, store.keyspace)
    if not rows:
        raise KeyspaceMissing(
            f"Keyspace {store.keyspace!r} does not exist. Create it with `slotkeeper schema create-keyspace`."
        )
    replication = dict(rows[0]["replication"])
    strategy = replication.pop("class").rpartition(".")[2]
    replicas = ", ".join(f"{name}: {count}" for name, count in replication.items())
    message, fewest = f"{store.keyspace} is kept {strategy} {{{replicas}}}", min(map(_count, replication.values()))
    if strategy != STRATEGY:
        yield warn(
            "keyspace", message, f"ALTER KEYSPACE to {STRATEGY}, which counts replicas a data centre; repair it after"
        )
    elif fewest < 3:
        yield warn("keyspace", message, ONE_REPLICA if fewest == 1 else TWO_REPLICAS)
    else:
        yield ok("keyspace", message)
    if not rows[0]["durable_writes"]:
        yield warn("durability", "durable_writes is false", NOT_DURABLE)


def _count(text: str) -> int:
    return int(text.partition("/")[0])  # 3/1: one of them transient
