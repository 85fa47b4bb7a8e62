"""The rows of a cluster of lock nodes, as the verb sees them; schema version 0.3 has the tables."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ...database import Key, Kind, Row, Slice, Table, Value, Write, insert, update

CLUSTERS = Table(
    "lock_clusters",
    {"cluster": Kind.TEXT},
    {"kind": Kind.INT, "instance": Kind.TEXT},
    {
        "epoch": Kind.BIGINT,
        "version": Kind.BIGINT,
        "speaker": Kind.TEXT,
        "node": Kind.TEXT,
        "address": Kind.TEXT,
        "witness": Kind.TEXT,
    },
)
NODES = Table(
    "lock_nodes",
    {"cluster": Kind.TEXT},
    {"instance": Kind.TEXT},
    {"node": Kind.TEXT, "address": Kind.TEXT, "since": Kind.TIMESTAMP},
)

SPEAKER, HORIZON = 0, 1
SPEAKER_KEY: Key = (SPEAKER, "")
SPEAKER_ROW = Slice(SPEAKER_KEY)
HORIZON_ROWS = Slice((HORIZON,), ttl_of="node")
GUARDED = ("epoch", "version", "speaker")


class Peer(msgspec.Struct, frozen=True):
    """A node of the cluster: its name, one run of its process, and where the others reach it."""

    node: str
    instance: str
    address: str


@dataclass(frozen=True, slots=True)
class Witnessed:
    """Which copy of what an instance's clients hold another node has, and where that one is reached."""

    copy: str
    address: str

    def __str__(self) -> str:
        return f"{self.copy} {self.address}"

    @classmethod
    def of(cls, row: Row) -> Witnessed | None:
        """Read it from a horizon row."""
        copy, _, address = text(row, "witness").partition(" ")
        return cls(copy, address) if address else None


@dataclass(frozen=True, slots=True)
class Seen:
    """The speaker row, as it was read. The epoch and the version are None before anybody ever spoke."""

    epoch: int | None = None
    version: int | None = None
    speaker: Peer | None = None

    @classmethod
    def of(cls, row: Row | None) -> Seen:
        """Read a row."""
        row = row or {}
        return cls(number(row, "epoch"), number(row, "version"), _speaker(row))

    @property
    def guard(self) -> dict[str, tuple[Value, ...]]:
        """What a write names that may only apply while the row is as it was read."""
        instance = self.speaker.instance if self.speaker is not None else None
        return {"epoch": (self.epoch,), "version": (self.version,), "speaker": (instance,)}


def horizon_key(instance: str) -> Key:
    """Return the key of an instance's horizon row."""
    return (HORIZON, instance)


def horizon_row(peer: Peer, ttl_s: int, witness: Witnessed | None = None) -> Write:
    """Write an instance's horizon row. It rides along with a change of the speaker row.

    A witness is written even where there is none: a cell left out would stay what it was.
    """
    values = {"node": peer.node, "address": peer.address, "witness": str(witness) if witness is not None else None}
    return insert(horizon_key(peer.instance), values, ttl_s=ttl_s)


def member_row(peer: Peer, since_ms: int, ttl_s: int) -> Write:
    """Write a node's own row. Nobody else writes it, so its guard always holds: the verb knows no batch without one."""
    values: dict[str, Value] = {"node": peer.node, "address": peer.address, "since": since_ms}
    return update((peer.instance,), values, expect={"node": (None, peer.node)}, ttl_s=ttl_s)


def peer_of(row: Row) -> Peer:
    """Read whose row it is."""
    return Peer(text(row, "node"), text(row, "instance"), text(row, "address"))


def number(row: Row, column: str) -> int | None:
    """Return a number of a row, or None."""
    value = row.get(column)
    return value if isinstance(value, int) else None


def text(row: Row, column: str) -> str:
    """Return a text of a row."""
    value = row.get(column)
    return value if isinstance(value, str) else ""


def _speaker(row: Row) -> Peer | None:
    instance = text(row, "speaker")
    return Peer(text(row, "node"), instance, text(row, "address")) if instance else None
