"""Values come back as they went, and meet the guards that name them, at the ends of every kind."""

from __future__ import annotations

from uuid import UUID

import pytest
from contract.rooms import Room, lamp

from slotkeeper.database import Applied, Refused, Value, insert, update

NOW_MS = 1_790_000_000_123

VALUES: list[tuple[str, Value]] = [
    ("holder", ""),
    ("holder", " "),
    ("holder", "0::30000000-0000-f000-f000-000000000000:-2"),
    ("holder", "12"),
    ("holder", "1e3"),
    ("holder", "null"),
    ("holder", "\x00"),
    ("holder", "a\x00b\x00"),
    ("holder", "'; DROP TABLE lamps; --\"%s ? {} \\"),
    ("holder", "é日🙂\U0010ffff\u200b\ufeff"),
    ("holder", "e\u0301"),  # never normalised: another text than é
    ("holder", "long " * 5000),
    ("slot", 0),
    ("slot", -1),
    ("slot", 2**31 - 1),
    ("slot", -(2**31)),
    ("total", 0),
    ("total", 2**53 + 1),
    ("total", 2**63 - 1),
    ("total", -(2**63)),
    ("version", 0),
    ("version", 1),
    ("version", 999),
    ("version", -1),
    ("version", -999),
    ("version", -1001),
    ("version", NOW_MS),
    ("version", NOW_MS + 876),
    ("version", 4_102_444_800_001),
    ("version", 253_402_300_799_999),
    ("version", 253_402_300_799_001),
    ("version", -62_135_596_800_000),
    ("version", -62_135_596_799_999),
    ("seal", UUID(int=0)),
    ("seal", UUID(int=2**128 - 1)),
    ("seal", UUID("30000000-0000-f000-f000-000000000000")),
    ("body", b""),
    ("body", b"\x00\xff"),
    ("body", bytes(range(256)) * 400),
]


@pytest.mark.parametrize(("column", "value"), VALUES, ids=lambda value: ascii(value)[:30])
def test_value_comes_back_and_meets_its_guard(room: Room, column: str, value: Value) -> None:
    room.put(lamp(1), {column: value})

    (row,) = room.rows()
    assert row[column] == value
    assert type(row[column]) is type(value)
    assert room.shown(update(lamp(1), {column: None}, expect={column: (None,)}))[lamp(1)][column] == value
    assert room.commit(update(lamp(1), {column: None}, expect={column: (value,)})) == Applied()
    assert isinstance(room.commit(update(lamp(1), {column: value}, expect={column: (value,)})), Refused)


def test_every_millisecond_of_a_second_survives(room: Room) -> None:
    keys = {lamp(number): (-1) ** number * (NOW_MS + number * 7) for number in range(143)}
    room.must(*(insert(key, {"version": version}, absent=True) for key, version in keys.items()))

    assert room.state() == {key: {"version": version} for key, version in keys.items()}


def test_guard_tells_neighbouring_milliseconds_apart(room: Room) -> None:
    room.put(lamp(1), {"version": NOW_MS})

    for other in (NOW_MS - 1, NOW_MS + 1, NOW_MS // 1000 * 1000, NOW_MS * 2):
        assert isinstance(room.commit(update(lamp(1), {"slot": 1}, expect={"version": (other,)})), Refused)


@pytest.mark.parametrize("name", ["", "\x00", "a/b:c", "é日🙂", "'", "x" * 60_000], ids=lambda name: ascii(name)[:20])
def test_text_of_any_kind_may_be_a_key(room: Room, name: str) -> None:
    elsewhere = room.elsewhere(name)
    elsewhere.put(lamp(-5, name), {"slot": 1})

    assert elsewhere.state() == {lamp(-5, name): {"slot": 1}}
    assert elsewhere.shown(insert(lamp(-5, name), {}, absent=True)).keys() == {lamp(-5, name)}
    assert room.state() == {}


def test_empty_text_and_null_are_different(room: Room) -> None:
    room.put(lamp(1), {"holder": "", "body": b""})
    room.put(lamp(2), {"holder": None, "body": None})

    for column, empty in (("holder", ""), ("body", b"")):
        assert isinstance(room.commit(update(lamp(1), {"slot": 1}, expect={column: (None,)})), Refused)
        assert isinstance(room.commit(update(lamp(2), {"slot": 1}, expect={column: (empty,)})), Refused)
        assert room.commit(update(lamp(1), {"slot": 1}, expect={column: (empty,)})) == Applied()
        assert room.commit(update(lamp(2), {"slot": 1}, expect={column: (None,)})) == Applied()
