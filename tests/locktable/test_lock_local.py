"""What a process has one of: its table and its `Held`; and a name for each that the reference exports."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest

from slotkeeper import locktable
from slotkeeper.locktable import (
    DEFAULT_LEASE_S,
    MAX_LEASE_S,
    Held,
    NotRebuilt,
    Request,
    Table,
    lease,
    local_held,
    speaker_table,
)

NAMES = {
    "DefaultLease": "DEFAULT_LEASE_S",
    "MaxLease": "MAX_LEASE_S",
    "ErrNotRebuilt": "NotRebuilt",
    "SpeakerTable": "speaker_table",
    "LocalHeld": "local_held",
    "Lease": "lease",
    "Lock": "Lock",
    "Request": "Request",
    "ErrHeld": "LockHeld",
    "NewTable": "Table",
    "NewHeld": "Held",
}
OF_A_TABLE = {
    "IsRebuilt": "is_rebuilt",
    "Generation": "generation",
    "Rebuild": "rebuild",
    "Drop": "drop",
    "Acquire": "acquire",
    "Release": "release",
    "List": "locks",
    "Granted": "granted",
    "Forget": "forget",
}
OF_HELD = {"Add": "add", "Remove": "remove", "List": "locks"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_each_name_of_the_reference_is_exported(name: str) -> None:
    assert name in locktable.__all__
    assert hasattr(locktable, name)


def test_tables_and_held_have_what_the_reference_has() -> None:
    assert [name for name in OF_A_TABLE.values() if not hasattr(Table, name)] == []
    assert [name for name in OF_HELD.values() if not hasattr(Held, name)] == []
    assert (DEFAULT_LEASE_S, MAX_LEASE_S, lease(-1)) == (30, 600, 30)


def test_a_process_has_one_table_and_one_held() -> None:
    with ThreadPoolExecutor(8) as pool:
        tables = {id(pool.submit(speaker_table).result()) for _ in range(8)}
        held = {id(pool.submit(local_held).result()) for _ in range(8)}
    assert tables == {id(speaker_table())}
    assert held == {id(local_held())}


def test_a_child_process_has_none_of_its_parents_locks() -> None:
    table, held = speaker_table(), local_held()
    assert table.rebuild(table.generation, []) == []
    lock = table.acquire(Request("network/blue")).lock
    held.add(lock)
    try:
        asked, told = multiprocessing.get_context("fork").Pipe()
        child = multiprocessing.get_context("fork").Process(target=_tell, args=(told,))
        child.start()
        assert asked.poll(20), "the child tells nothing"
        assert asked.recv() == (False, 0)
        child.join(20)
        assert table.locks() == held.locks() == [lock]
    finally:
        held.remove(lock.name, lock.id)
        table.drop()
        table.forget(lock.name, lock.id)
    with pytest.raises(NotRebuilt):
        table.acquire(Request("network/blue"))


def _tell(told: Connection) -> None:
    told.send((speaker_table().is_rebuilt, len(local_held().locks())))
