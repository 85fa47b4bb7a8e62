"""The one table that the contract suite writes to, with a column of every kind."""

from __future__ import annotations

from slotkeeper.database import Kind, Store, Table

LAMPS = Table(
    "lamps",
    {"house": Kind.UUID, "room": Kind.TEXT},
    {"shelf": Kind.INT, "name": Kind.TEXT},
    {
        "holder": Kind.TEXT,
        "slot": Kind.INT,
        "total": Kind.BIGINT,
        "version": Kind.TIMESTAMP,
        "seal": Kind.UUID,
        "body": Kind.BLOB,
    },
)

SHAPES = {
    "cql": """
        CREATE TABLE IF NOT EXISTS lamps (
            house uuid, room text, shelf int, name text,
            holder text, slot int, total bigint, version timestamp, seal uuid, body blob,
            PRIMARY KEY ((house, room), shelf, name)
        )""",
    "sql": """
        CREATE TABLE IF NOT EXISTS lamps (
            house TEXT, room TEXT, shelf INTEGER, name TEXT,
            holder TEXT, slot INTEGER, total INTEGER, version INTEGER, seal TEXT, body BLOB,
            marker_until INTEGER, expiry TEXT,
            PRIMARY KEY (house, room, shelf, name)
        )""",
}


def shape(store: Store) -> None:
    """Make the table in whichever dialect the store takes."""
    store.shape(SHAPES[store.dialect])
