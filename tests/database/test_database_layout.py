"""What a store tells of its tables' form, and how it says that one is missing."""

from __future__ import annotations

import uuid
from pathlib import Path

from slotkeeper.database import Consistency, Layout, open_store


def test_an_embedded_store_shows_key_and_columns(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/lamps.db")
    store.shape("CREATE TABLE lamps (state TEXT, lamp INTEGER, room TEXT, PRIMARY KEY (room, lamp))")

    assert store.layout("lamps") == Layout(("room", "lamp"), (), {"state": "text", "lamp": "integer", "room": "text"})
    assert store.layout("stairs") is None
    assert (store.keyspace, store.consistency) == ("", None)
    store.close()


def test_cassandra_shows_partition_clustering_columns_and_id(cassandra_url: str, keyspace: str) -> None:
    store = open_store(cassandra_url)
    given = uuid.uuid4()
    store.shape(
        "CREATE TABLE lamps (house int, lamp int, room text, floor int, state text,"
        f" PRIMARY KEY ((room, house), lamp, floor)) WITH id = {given}"
    )

    columns = {"house": "int", "lamp": "int", "room": "text", "floor": "int", "state": "text"}
    assert store.layout("lamps") == Layout(("room", "house"), ("lamp", "floor"), columns, given)
    assert store.layout("stairs") is None
    assert (store.keyspace, store.consistency) == (keyspace, Consistency.LOCAL_QUORUM)
    store.close()
